/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <string.h>

#include "relay/tls.h"

static struct {
	pthread_mutex_t lock;	/* ctx */
	SSL_CTX *ctx;
	const char *cert, *key;
} tls = { .lock = PTHREAD_MUTEX_INITIALIZER };

struct tls {
	SSL *ssl;
	bool wants_write, broken;
};

static int fail(struct err *e, const char *what, const char *path)
{
	char why[160];
	ERR_error_string_n(ERR_peek_last_error(), why, sizeof why);
	ERR_clear_error();
	return err_set(e, ERR_USAGE, "%s %s: %s", what, path, why);
}

/* HTTP/1.1 is what is spoken here; a client that asks for other protocols as
 * well is told so. */
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

static SSL_CTX *read_files(struct err *e)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	if (!ctx) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
			    SSL_OP_IGNORE_UNEXPECTED_EOF |
			    SSL_OP_NO_COMPRESSION |
			    SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			 SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(ctx, pick_protocol, NULL);
	int rc = 0;
	if (SSL_CTX_use_certificate_chain_file(ctx, tls.cert) != 1)
		rc = fail(e, "cannot use the certificate", tls.cert);
	else if (SSL_CTX_use_PrivateKey_file(ctx, tls.key,
					     SSL_FILETYPE_PEM) != 1)
		rc = fail(e, "cannot use the key", tls.key);
	else if (SSL_CTX_check_private_key(ctx) != 1)
		rc = fail(e, "not the certificate's key:", tls.key);
	if (rc == 0)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

int tls_reload(struct err *e)
{
	if (!tls.cert)
		return 0;
	SSL_CTX *ctx = read_files(e);
	if (!ctx)
		return -1;
	pthread_mutex_lock(&tls.lock);
	SSL_CTX *old = tls.ctx;
	tls.ctx = ctx;
	pthread_mutex_unlock(&tls.lock);
	SSL_CTX_free(old);	/* connections hold it as long as they last */
	return 0;
}

int tls_open(const char *cert, const char *key, struct err *e)
{
	tls.cert = cert;
	tls.key = key;
	return tls_reload(e);
}

void tls_close(void)
{
	SSL_CTX_free(tls.ctx);
	tls.ctx = NULL;
	tls.cert = NULL;
}

struct tls *tls_new(int fd)
{
	struct tls *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	pthread_mutex_lock(&tls.lock);
	t->ssl = tls.ctx ? SSL_new(tls.ctx) : NULL;
	pthread_mutex_unlock(&tls.lock);
	if (!t->ssl || SSL_set_fd(t->ssl, fd) != 1) {
		tls_free(t);
		return NULL;
	}
	SSL_set_accept_state(t->ssl);
	return t;
}

void tls_free(struct tls *t)
{
	if (t)
		SSL_free(t->ssl);
	free(t);
}

bool tls_wants_write(const struct tls *t) { return t->wants_write; }

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
	t->broken = why != SSL_ERROR_ZERO_RETURN;
	ERR_clear_error();
	if (!t->broken)
		return 0;
	errno = ECONNRESET;
	return -1;
}

ssize_t tls_recv(struct tls *t, void *p, size_t n)
{
	size_t got = 0;
	ERR_clear_error();
	int rc = SSL_read_ex(t->ssl, p, n, &got);
	return verdict(t, rc, got);
}

ssize_t tls_send(struct tls *t, const void *p, size_t n)
{
	size_t sent = 0;
	ERR_clear_error();
	int rc = SSL_write_ex(t->ssl, p, n, &sent);
	return verdict(t, rc, sent);
}

void tls_shutdown(struct tls *t)
{
	if (!t->broken && SSL_is_init_finished(t->ssl)) {
		ERR_clear_error();
		SSL_shutdown(t->ssl);
		ERR_clear_error();
	}
}
