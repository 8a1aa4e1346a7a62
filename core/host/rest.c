/* SPDX-License-Identifier: MIT
 *
 * One easy handle, driven through a multi handle of its own: that way the
 * wait is a poll of ours, which rest_abort ends at once, and which notices a
 * silent peer by itself.  (libcurl's low-speed limit counts bytes a second;
 * a stream with a keepalive every 15 s is always below it.) */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/host/refusal.h"
#include "core/host/rest.h"
#include "core/prim.h"

#define CONNECT_MS 10000
#define STALL_MS 30000
#define DROP_MAX (64 * 1024)
#define UPLOAD_CHUNK (256L * 1024)
#define UPLOAD_SMALL (32L * 1024)	/* made and freed for each request */
#define DOWNLOAD_CHUNK (128L * 1024)
#define HEADERS_MAX 6

struct rest {
	CURL *easy;
	CURLM *multi;
	char *base;
	char *bearer;		/* "Authorization: Bearer ...", or NULL */
	struct clock *clock;
	_Atomic bool aborted;

	/* of the running call */
	struct rest_call *call;
	struct buf error_body;
	int64_t moved_ms;	/* when a byte last went either way */
	int64_t sent_ms;	/* Unix time the request left */
	bool stopped;		/* a callback said -1 */
	bool too_much;
};

int rest_init(void)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? 0 : -1;
}

static long status_of(struct rest *r)
{
	long http = 0;
	curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &http);
	return http;
}

static size_t on_header(char *p, size_t one, size_t n, void *arg)
{
	struct rest *r = arg;
	static const char date[] = "date:", retry[] = "retry-after:";
	char value[64];

	r->moved_ms = clock_mono_ms();
	n *= one;
	size_t name_n = n > 5 && !strncasecmp(p, date, 5) ? 5 :
		n > 12 && !strncasecmp(p, retry, 12) ? 12 : 0;
	if (!name_n || n - name_n >= sizeof value)
		return n;
	memcpy(value, p + name_n, n - name_n);
	value[n - name_n] = 0;
	if (name_n == 12) {
		long s = strtol(value, NULL, 10);
		if (s >= 0 && s <= 24 * 3600)
			r->call->retry_after_ms = s * 1000;
		return n;
	}
	time_t t = curl_getdate(value, NULL);
	if (t > 0 && r->clock)
		clock_learn(r->clock, (int64_t)t * 1000, r->sent_ms,
			    clock_now_ms());
	return n;
}

static int take_answer(struct rest *r, const char *p, size_t n)
{
	struct rest_call *c = r->call;
	uint64_t max = c->take || c->answer ? c->answer_max : DROP_MAX;
	if (n > max || c->received > max - n) {
		r->too_much = true;
		return -1;
	}
	c->received += n;
	if (c->take && c->take(c->take_arg, p, n) < 0) {
		r->stopped = true;
		return -1;
	}
	if (!c->take && c->answer) {
		buf_add(c->answer, p, n);
		return buf_failed(c->answer) ? -1 : 0;
	}
	return 0;
}

static size_t on_body(char *p, size_t one, size_t n, void *arg)
{
	struct rest *r = arg;
	long http = status_of(r);
	n *= one;
	r->moved_ms = clock_mono_ms();
	if (http >= 200 && http < 300)
		return take_answer(r, p, n) < 0 ? 0 : n;
	if (r->error_body.len < REFUSAL_BODY_MAX)
		buf_add(&r->error_body, p,
			n < REFUSAL_BODY_MAX - r->error_body.len ? n :
			REFUSAL_BODY_MAX - r->error_body.len);
	return n;
}

static size_t on_read(char *to, size_t one, size_t n, void *arg)
{
	struct rest *r = arg;
	struct rest_call *c = r->call;
	n *= one;
	r->moved_ms = clock_mono_ms();
	ssize_t m = c->read ? c->read(c->read_arg, to, n) : 0;
	if (m >= 0)
		return (size_t)m;
	r->stopped = true;
	return CURL_READFUNC_ABORT;
}

static int on_ready(void *arg, char *to, char *from, int to_port,
		    int from_port)
{
	struct rest *r = arg;
	(void)to, (void)from, (void)to_port, (void)from_port;
	r->moved_ms = clock_mono_ms();
	if (r->call->leaves)
		r->call->leaves(r->call->leaves_arg);
	return CURL_PREREQFUNC_OK;
}

/* libcurl starts over when a kept connection turns out to be dead. */
static int on_seek(void *arg, curl_off_t off, int origin)
{
	struct rest *r = arg;
	if (off != 0 || origin != SEEK_SET)
		return CURL_SEEKFUNC_CANTSEEK;
	if (!r->call->rewind || r->call->rewind(r->call->read_arg) < 0)
		return CURL_SEEKFUNC_CANTSEEK;
	return CURL_SEEKFUNC_OK;
}

#define SET(opt, value) \
	(ok = ok && curl_easy_setopt(r->easy, opt, value) == CURLE_OK)

/* What holds for every call to this relay. */
static bool set_up(struct rest *r)
{
	bool ok = true, tls = !strncasecmp(r->base, "https:", 6);
	const char *only = tls ? "https" : "http";
	const char *bundle = getenv("SSL_CERT_FILE");

	SET(CURLOPT_PROTOCOLS_STR, only);
	SET(CURLOPT_REDIR_PROTOCOLS_STR, only);
	SET(CURLOPT_FOLLOWLOCATION, 0L);
	SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	SET(CURLOPT_NOSIGNAL, 1L);
	SET(CURLOPT_TCP_NODELAY, 1L);
	SET(CURLOPT_TCP_KEEPALIVE, 1L);
	SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	SET(CURLOPT_SSL_VERIFYPEER, 1L);
	SET(CURLOPT_SSL_VERIFYHOST, 2L);
	SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	SET(CURLOPT_USERAGENT, "airloxfs/" AIRLOX_VERSION);
	SET(CURLOPT_BUFFERSIZE, DOWNLOAD_CHUNK);
	SET(CURLOPT_HEADERFUNCTION, on_header);
	SET(CURLOPT_HEADERDATA, (void *)r);
	SET(CURLOPT_WRITEFUNCTION, on_body);
	SET(CURLOPT_WRITEDATA, (void *)r);
	SET(CURLOPT_READFUNCTION, on_read);
	SET(CURLOPT_READDATA, (void *)r);
	SET(CURLOPT_SEEKFUNCTION, on_seek);
	SET(CURLOPT_SEEKDATA, (void *)r);
	SET(CURLOPT_PREREQFUNCTION, on_ready);
	SET(CURLOPT_PREREQDATA, (void *)r);
	if (!tls)		/* this machine needs no proxy */
		SET(CURLOPT_PROXY, "");
	if (tls && bundle && *bundle)
		SET(CURLOPT_CAINFO, bundle);
	return ok;
}

struct rest *rest_new(const char *base_url, struct clock *clock, struct err *e)
{
	if (strncasecmp(base_url, "https://", 8) != 0 &&
	    strncasecmp(base_url, "http://", 7) != 0) {
		err_set(e, ERR_INVALID, "that is no relay's address");
		return NULL;
	}
	struct rest *r = calloc(1, sizeof *r);
	if (!r) {
		err_set(e, ERR_MEMORY, "out of memory");
		return NULL;
	}
	r->clock = clock;
	r->base = strdup(base_url);
	r->easy = curl_easy_init();
	r->multi = curl_multi_init();
	if (!r->base || !r->easy || !r->multi || !set_up(r)) {
		err_set(e, ERR_MEMORY, "cannot set up HTTP");
		rest_free(r);
		return NULL;
	}
	curl_multi_setopt(r->multi, CURLMOPT_MAXCONNECTS, 1L);
	return r;
}

static void bearer_free(struct rest *r)
{
	if (r->bearer)
		prim_wipe(r->bearer, strlen(r->bearer));
	free(r->bearer);
	r->bearer = NULL;
}

int rest_set_token(struct rest *r, const char *token, struct err *e)
{
	bearer_free(r);
	if (!token)
		return 0;
	size_t n = strlen(token);
	for (size_t i = 0; i < n; i++)
		if (token[i] <= ' ' || token[i] > '~')
			n = 0;
	if (n == 0 || n > REST_TOKEN_MAX)
		return err_set(e, ERR_INVALID, "that is no relay token");
	if (asprintf(&r->bearer, "Authorization: Bearer %s", token) < 0) {
		r->bearer = NULL;
		return err_set(e, ERR_MEMORY, "out of memory");
	}
	return 0;
}

void rest_free(struct rest *r)
{
	if (!r)
		return;
	curl_easy_cleanup(r->easy);
	curl_multi_cleanup(r->multi);
	bearer_free(r);
	buf_free(&r->error_body);
	free(r->base);
	free(r);
}

void rest_abort(struct rest *r)
{
	atomic_store(&r->aborted, true);
	curl_multi_wakeup(r->multi);
}

void rest_resume(struct rest *r) { atomic_store(&r->aborted, false); }

/* The list does not copy: libcurl copies it, and `text` outlives the call.
 * So the token is in one place that bearer_free wipes. */
static struct curl_slist *add_header(struct curl_slist **last,
				     struct curl_slist *slot, char *text)
{
	slot->data = text;
	slot->next = NULL;
	if (*last)
		(*last)->next = slot;
	*last = slot;
	return slot;
}

static void list_headers(struct rest *r, struct curl_slist slot[HEADERS_MAX],
			 char *type)
{
	static char no_expect[] = "Expect:", octets[] =
		"Content-Type: application/octet-stream";
	struct rest_call *c = r->call;
	struct curl_slist *last = NULL;
	size_t n = 0;

	add_header(&last, &slot[n++], no_expect);
	if (r->bearer)
		add_header(&last, &slot[n++], r->bearer);
	if (strcmp(c->method, "GET") != 0)
		add_header(&last, &slot[n++], c->type ? type : octets);
	for (int i = 0; i < 2; i++)
		if (c->header[i])
			add_header(&last, &slot[n++], (char *)c->header[i]);
}

static bool set_call(struct rest *r, const char *url, struct curl_slist *list)
{
	struct rest_call *c = r->call;
	curl_off_t n = (curl_off_t)(c->read ? c->body_n : c->body.n);
	bool ok = true;

	SET(CURLOPT_URL, url);
	SET(CURLOPT_HTTPHEADER, list);
	SET(CURLOPT_CONNECTTIMEOUT_MS,
	    (long)(c->connect_ms ? c->connect_ms : CONNECT_MS));
	SET(CURLOPT_TIMEOUT_MS, (long)c->total_ms);
	SET(CURLOPT_UPLOAD_BUFFERSIZE, n > UPLOAD_SMALL ? UPLOAD_CHUNK :
	    UPLOAD_SMALL);
	if (!strcmp(c->method, "GET")) {
		SET(CURLOPT_HTTPGET, 1L);
	} else if (!strcmp(c->method, "PUT")) {
		SET(CURLOPT_UPLOAD, 1L);
		SET(CURLOPT_INFILESIZE_LARGE, n);
	} else {
		SET(CURLOPT_UPLOAD, 0L);
		SET(CURLOPT_POST, 1L);
		SET(CURLOPT_POSTFIELDS, c->read ? NULL :
		    c->body.n ? (const char *)c->body.p : "");
		SET(CURLOPT_POSTFIELDSIZE_LARGE, n);
	}
	return ok;
}

static int patience(const struct rest_call *c)
{
	if (c->first_ms && !c->received)
		return c->first_ms;
	return c->stall_ms ? c->stall_ms : STALL_MS;
}

/* Runs the transfer to its end; CURLE_ABORTED_BY_CALLBACK after rest_abort,
 * CURLE_OPERATION_TIMEDOUT where nothing moved. */
static CURLcode drive(struct rest *r)
{
	for (;;) {
		int running = 0, left = 0;
		int stall = patience(r->call);
		if (atomic_load(&r->aborted))
			return CURLE_ABORTED_BY_CALLBACK;
		if (curl_multi_perform(r->multi, &running) != CURLM_OK)
			return CURLE_OUT_OF_MEMORY;
		CURLMsg *m = curl_multi_info_read(r->multi, &left);
		if (m && m->msg == CURLMSG_DONE)
			return m->data.result;
		int64_t quiet = clock_mono_ms() - r->moved_ms;
		if (quiet >= stall)
			return CURLE_OPERATION_TIMEDOUT;
		if (running)
			curl_multi_poll(r->multi, NULL, 0,
					(int)(stall - quiet), NULL);
	}
}

static int net_fail(struct rest *r, CURLcode code, struct err *e)
{
	if (r->stopped)
		return err_set(e, ERR_SYS, "stopped");
	if (r->too_much)
		return err_set(e, ERR_PROTO,
			       "the relay's answer is larger than it may be");
	switch ((int)code) {
	case CURLE_ABORTED_BY_CALLBACK:
		return err_set(e, ERR_NET, "interrupted");
	case CURLE_OPERATION_TIMEDOUT:
		return err_set(e, ERR_NET, "the relay does not answer");
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return err_set(e, ERR_NET, "the relay's certificate: %s",
			       curl_easy_strerror(code));
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
		return err_set(e, ERR_PROTO, "the relay does not speak HTTP");
	case CURLE_URL_MALFORMAT:
		return err_set(e, ERR_INVALID, "that is no relay's address");
	case CURLE_OUT_OF_MEMORY:
		return err_set(e, ERR_MEMORY, "out of memory");
	default:
		return err_set(e, ERR_NET, "cannot reach the relay: %s",
			       curl_easy_strerror(code));
	}
}

static int finish(struct rest *r, CURLcode code, struct err *e)
{
	struct rest_call *c = r->call;
	c->http = (int)status_of(r);
	bool refused = c->http >= 300 && c->http < 600;
	/* a refusal in the middle of our upload is an answer all the same */
	if (refused && !r->stopped &&
	    (code == CURLE_OK || code == CURLE_SEND_ERROR ||
	     code == CURLE_RECV_ERROR || code == CURLE_PARTIAL_FILE))
		return refusal_read(c->http, buf_bytes(&r->error_body),
				    c->word, e);
	if (code != CURLE_OK)
		return net_fail(r, code, e);
	if (c->http < 200 || c->http >= 300)
		return err_set(e, ERR_PROTO, "the relay does not speak HTTP");
	return 0;
}

int rest_do(struct rest *r, struct rest_call *c, struct err *e)
{
	struct curl_slist slot[HEADERS_MAX] = { { 0 } };
	cleanup_free char *url = NULL, *type = NULL;
	int res;

	r->call = c;
	c->http = 0;
	c->word[0] = 0;
	c->retry_after_ms = -1;
	c->received = 0;
	r->stopped = r->too_much = false;
	buf_reset(&r->error_body);
	r->moved_ms = clock_mono_ms();
	r->sent_ms = clock_now_ms();
	if (asprintf(&url, "%s%s", r->base, c->path) < 0 ||
	    asprintf(&type, "Content-Type: %s", c->type ? c->type : "") < 0)
		return err_set(e, ERR_MEMORY, "out of memory");
	list_headers(r, slot, type);
	if (!set_call(r, url, slot) ||
	    curl_multi_add_handle(r->multi, r->easy) != CURLM_OK)
		return err_set(e, ERR_MEMORY, "cannot set up a request");
	CURLcode code = drive(r);
	res = finish(r, code, e);
	curl_multi_remove_handle(r->multi, r->easy);
	curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, NULL);
	r->call = NULL;
	return res;
}
