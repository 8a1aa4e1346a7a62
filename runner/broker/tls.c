/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "runner/broker/tls.h"

#define LEAVES 128u
#define DAYS_OF_CA 30

static struct {
	SSL_CTX *server, *client;
	BIO_METHOD *bio;
	EVP_PKEY *ca_key, *leaf_key;
	X509 *ca;
	struct leaf {
		char *name;
		X509 *cert;
	} leaf[LEAVES];
	unsigned next;
} tls;

struct tls {
	SSL *ssl;
	int fd;
	struct buf ahead;
	size_t ahead_at;
	bool wants_write, broken, only_h2;
	char why[120];
};

static int fail(struct err *e, const char *what)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());
	ERR_clear_error();
	return err_set(e, ERR_SYS, "%s: %s", what, why ? why : "out of memory");
}

/* --- bytes: what was read ahead, then the socket --- */

static int bio_read(BIO *bio, char *p, int n)
{
	struct tls *t = BIO_get_data(bio);
	size_t left = t->ahead.len - t->ahead_at;
	BIO_clear_retry_flags(bio);
	if (left) {
		size_t m = left < (size_t)n ? left : (size_t)n;
		memcpy(p, t->ahead.data + t->ahead_at, m);
		t->ahead_at += m;
		if (m == left) {
			buf_free(&t->ahead);
			t->ahead_at = 0;
		}
		return (int)m;
	}
	ssize_t got = recv(t->fd, p, (size_t)n, 0);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_read(bio);
	return (int)got;
}

static int bio_write(BIO *bio, const char *p, int n)
{
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	ssize_t sent = send(t->fd, p, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		BIO_set_retry_write(bio);
	return (int)sent;
}

static long bio_ctrl(BIO *bio, int what, long n, void *p)
{
	(void)bio;
	(void)n;
	(void)p;
	return what == BIO_CTRL_FLUSH;
}

static int open_bio(struct err *e)
{
	tls.bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
			       "socket");
	if (!tls.bio || !BIO_meth_set_read(tls.bio, bio_read) ||
	    !BIO_meth_set_write(tls.bio, bio_write) ||
	    !BIO_meth_set_ctrl(tls.bio, bio_ctrl))
		return fail(e, "cannot prepare TLS");
	return 0;
}

/* --- the authority --- */

static int add_ext(X509 *cert, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, tls.ca ? tls.ca : cert, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	int ok = ext && X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	return ok ? 0 : -1;
}

static int set_serial(X509 *cert)
{
	BIGNUM *bn = BN_new();
	int ok = bn && BN_rand(bn, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) &&
		 BN_to_ASN1_INTEGER(bn, X509_get_serialNumber(cert));
	BN_free(bn);
	return ok ? 0 : -1;
}

static X509 *new_cert(EVP_PKEY *key, const char *cn)
{
	X509 *cert = X509_new();
	if (!cert)
		return NULL;
	X509_NAME *name = X509_get_subject_name(cert);
	if (X509_set_version(cert, 2) && set_serial(cert) == 0 &&
	    X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
	    X509_time_adj_ex(X509_getm_notAfter(cert), DAYS_OF_CA, 0, NULL) &&
	    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				       (const unsigned char *)cn, -1, -1, 0) &&
	    X509_set_issuer_name(cert, tls.ca ?
				 X509_get_subject_name(tls.ca) : name) &&
	    X509_set_pubkey(cert, key))
		return cert;
	X509_free(cert);
	return NULL;
}

static int put_pem(struct buf *out, X509 *cert)
{
	BIO *mem = BIO_new(BIO_s_mem());
	char *p = NULL;
	int ok = mem && PEM_write_bio_X509(mem, cert);
	long n = ok ? BIO_get_mem_data(mem, &p) : 0;
	if (n > 0)
		buf_add(out, p, (size_t)n);
	BIO_free(mem);
	return n > 0 ? 0 : -1;
}

static int make_ca(struct buf *pem, struct err *e)
{
	tls.ca_key = EVP_EC_gen("P-256");
	tls.leaf_key = EVP_EC_gen("P-256");
	X509 *ca = tls.ca_key && tls.leaf_key ?
		   new_cert(tls.ca_key, "airlox-box, for one run") : NULL;
	if (!ca || add_ext(ca, NID_basic_constraints,
			   "critical,CA:TRUE,pathlen:0") < 0 ||
	    add_ext(ca, NID_key_usage, "critical,keyCertSign,cRLSign") < 0 ||
	    add_ext(ca, NID_subject_key_identifier, "hash") < 0 ||
	    !X509_sign(ca, tls.ca_key, EVP_sha256()) || put_pem(pem, ca) < 0) {
		X509_free(ca);
		return fail(e, "cannot make an authority");
	}
	tls.ca = ca;
	return 0;
}

static X509 *make_leaf(const char *name, bool literal)
{
	char san[300];
	snprintf(san, sizeof san, "%s:%s", literal ? "IP" : "DNS", name);
	X509 *cert = new_cert(tls.leaf_key, "airlox-box");
	if (cert && add_ext(cert, NID_basic_constraints,
			    "critical,CA:FALSE") == 0 &&
	    add_ext(cert, NID_key_usage, "critical,digitalSignature") == 0 &&
	    add_ext(cert, NID_ext_key_usage, "serverAuth") == 0 &&
	    add_ext(cert, NID_subject_key_identifier, "hash") == 0 &&
	    add_ext(cert, NID_authority_key_identifier, "keyid") == 0 &&
	    add_ext(cert, NID_subject_alt_name, san) == 0 &&
	    X509_sign(cert, tls.ca_key, EVP_sha256()))
		return cert;
	X509_free(cert);
	ERR_clear_error();
	return NULL;
}

/* The cache is a ring: the box may ask for as many names as it likes. */
static X509 *find_leaf(const char *name, bool literal)
{
	for (unsigned i = 0; i < LEAVES; i++)
		if (tls.leaf[i].name && !strcmp(tls.leaf[i].name, name))
			return tls.leaf[i].cert;
	char *copy = strdup(name);
	X509 *cert = copy ? make_leaf(name, literal) : NULL;
	if (!cert) {
		free(copy);
		return NULL;
	}
	struct leaf *to = &tls.leaf[tls.next++ % LEAVES];
	free(to->name);
	X509_free(to->cert);
	*to = (struct leaf){ copy, cert };
	return cert;
}

/* --- contexts --- */

/* HTTP/1.1 is what is spoken here; a client that asks for other protocols
 * alone is told so. */
static int pick_protocol(SSL *s, const unsigned char **out,
			 unsigned char *out_n, const unsigned char *in,
			 unsigned in_n, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *picked;
	(void)s;
	(void)arg;
	if (SSL_select_next_proto(&picked, out_n, ours, sizeof ours - 1, in,
				  in_n) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = picked;
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *new_context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
			    SSL_OP_NO_COMPRESSION | SSL_OP_CLEANSE_PLAINTEXT);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	return ctx;
}

static int open_contexts(struct err *e)
{
	tls.server = new_context(TLS_server_method());
	tls.client = new_context(TLS_client_method());
	if (!tls.server || !tls.client)
		return fail(e, "cannot prepare TLS");
	SSL_CTX_set_num_tickets(tls.server, 0);
	SSL_CTX_set_alpn_select_cb(tls.server, pick_protocol, NULL);
	SSL_CTX_set_verify(tls.client, SSL_VERIFY_PEER, NULL);
	if (!SSL_CTX_set_default_verify_paths(tls.client))
		return fail(e, "cannot read the system's certificates");
	return 0;
}

int tls_open(struct buf *ca, struct err *e)
{
	if (open_bio(e) < 0 || open_contexts(e) < 0 || make_ca(ca, e) < 0) {
		tls_close();
		return -1;
	}
	ERR_clear_error();
	return 0;
}

void tls_close(void)
{
	for (unsigned i = 0; i < LEAVES; i++) {
		free(tls.leaf[i].name);
		X509_free(tls.leaf[i].cert);
	}
	SSL_CTX_free(tls.server);
	SSL_CTX_free(tls.client);
	BIO_meth_free(tls.bio);
	EVP_PKEY_free(tls.ca_key);
	EVP_PKEY_free(tls.leaf_key);
	X509_free(tls.ca);
	memset(&tls, 0, sizeof tls);
}

/* --- connections --- */

static struct tls *new_tls(SSL_CTX *ctx, int fd)
{
	struct tls *t = calloc(1, sizeof *t);
	BIO *bio = t ? BIO_new(tls.bio) : NULL;
	if (!bio) {
		free(t);
		return NULL;
	}
	t->fd = fd;
	t->ssl = SSL_new(ctx);
	BIO_set_data(bio, t);
	BIO_set_init(bio, 1);
	if (!t->ssl) {
		BIO_free(bio);
		free(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	return t;
}

struct tls *tls_accept(int fd, const char *name, bool literal,
		       struct bytes ahead)
{
	X509 *leaf = find_leaf(name, literal);
	struct tls *t = leaf ? new_tls(tls.server, fd) : NULL;
	if (!t)
		return NULL;
	buf_add(&t->ahead, ahead.p, ahead.n);
	if (SSL_use_certificate(t->ssl, leaf) != 1 ||
	    SSL_use_PrivateKey(t->ssl, tls.leaf_key) != 1 ||
	    buf_failed(&t->ahead)) {
		tls_free(t);
		return NULL;
	}
	SSL_set_accept_state(t->ssl);
	return t;
}

struct tls *tls_connect(int fd, const char *name, bool literal)
{
	static const unsigned char h1[] = "\x08http/1.1";
	struct tls *t = new_tls(tls.client, fd);
	if (!t)
		return NULL;
	SSL_set_hostflags(t->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	int ok = literal ?
		 X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), name) :
		 SSL_set1_host(t->ssl, name) &&
		 SSL_set_tlsext_host_name(t->ssl, name);
	if (!ok || SSL_set_alpn_protos(t->ssl, h1, sizeof h1 - 1) != 0) {
		tls_free(t);
		return NULL;
	}
	SSL_set_connect_state(t->ssl);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	buf_free(&t->ahead);
	free(t);
}

bool tls_wants_write(const struct tls *t) { return t->wants_write; }
const char *tls_why(const struct tls *t) { return t->why; }
bool tls_only_h2(const struct tls *t) { return t->only_h2; }

/* Keeps the reason of a failure: the certificate's, or the first error. */
static void keep_why(struct tls *t, int why)
{
	unsigned long first = ERR_peek_error();
	long verdict = SSL_get_verify_result(t->ssl);
	const char *words = ERR_reason_error_string(first);
	t->broken = true;
	t->only_h2 = ERR_GET_REASON(first) ==
		     SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL;
	if (verdict != X509_V_OK)
		snprintf(t->why, sizeof t->why, "its certificate is not "
			 "trusted: %s", X509_verify_cert_error_string(verdict));
	else
		snprintf(t->why, sizeof t->why, "TLS failed: %s",
			 words ? words : why == SSL_ERROR_SYSCALL && errno ?
			 strerror(errno) : "the connection was closed");
	ERR_clear_error();
}

/* What an answer of OpenSSL's means in recv's and send's words. */
static ssize_t verdict(struct tls *t, int rc, size_t n)
{
	t->wants_write = false;
	if (rc > 0)
		return (ssize_t)n;
	int why = SSL_get_error(t->ssl, rc);
	t->wants_write = why == SSL_ERROR_WANT_WRITE;
	if (why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ) {
		errno = EAGAIN;
		return -1;
	}
	if (why == SSL_ERROR_ZERO_RETURN)
		return 0;
	keep_why(t, why);
	errno = ECONNRESET;
	return -1;
}

int tls_handshake(struct tls *t)
{
	ERR_clear_error();
	errno = 0;
	ssize_t r = verdict(t, SSL_do_handshake(t->ssl), 1);
	return r > 0 ? 1 : r < 0 && errno == EAGAIN ? 0 : -1;
}

ssize_t tls_recv(struct tls *t, void *p, size_t n)
{
	size_t got = 0;
	ERR_clear_error();
	errno = 0;
	int rc = SSL_read_ex(t->ssl, p, n, &got);
	return verdict(t, rc, got);
}

ssize_t tls_send(struct tls *t, const void *p, size_t n)
{
	size_t sent = 0;
	ERR_clear_error();
	errno = 0;
	int rc = SSL_write_ex(t->ssl, p, n, &sent);
	return verdict(t, rc, sent);
}

bool tls_pending(const struct tls *t)
{
	return t->ahead.len > t->ahead_at || SSL_has_pending(t->ssl);
}

void tls_rest(struct tls *t) { (void)SSL_free_buffers(t->ssl); }

void tls_shutdown(struct tls *t)
{
	if (!t->broken && SSL_is_init_finished(t->ssl)) {
		ERR_clear_error();
		SSL_shutdown(t->ssl);
		ERR_clear_error();
	}
}
