/* SPDX-License-Identifier: MIT
 *
 * Load for a relay, or for what stands beside it.
 *
 *	post items PORT SESSION N SIZE < "SEED TOKEN" lines
 *		a line a client, each with one item outstanding; all are signed
 *		before the clock starts
 *	post gets PORT PATH N CONNECTIONS
 *	post sync FILE N SIZE		append and fdatasync, one at a time
 *
 * Prints seconds for all, then the median and the 99th percentile of one. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/enc.h"
#include "core/item.h"
#include "core/prim.h"
#include "tests/bench/tool.h"

#define CLIENTS 256

struct client {
	int fd;
	struct buf todo;	/* requests, one behind the other */
	size_t at;
	uint32_t size[4096];
	int next, n;
	double began;
	char got[4096];
	size_t have;
};

static struct client all[CLIENTS];
static double *took;
static int took_n;

static void dial(struct client *c, int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port) };
	int one = 1;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	c->fd = (int)tool_must(socket(AF_INET, SOCK_STREAM, 0), "socket");
	tool_must(connect(c->fd, (struct sockaddr *)&a, sizeof a), "connect");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void add_item(struct client *c, const char *sid, const uint8_t *seed,
		     const char *token, int size)
{
	struct timespec t;
	uint8_t sha[32], blob[65536] = { 0 };
	struct buf head = { 0 }, env = { 0 };
	size_t before = c->todo.len, blob_n = (size_t)size + BLOB_OVERHEAD;
	clock_gettime(CLOCK_REALTIME, &t);
	struct item_header h = {
		.created_at_ms = t.tv_sec * 1000, .size = size,
		.kind = ITEM_TEXT, .type = TYPE_NONE };
	item_new_id(h.id);
	snprintf(h.session_id, sizeof h.session_id, "%s", sid);
	prim_pub(h.author, seed);
	prim_random(blob, 12);
	hash_sha256(sha, blob, blob_n);
	item_put_header(&head, &h);
	envelope_build(&env, buf_bytes(&head), sha, seed);
	buf_addf(&c->todo, "POST /v1/sessions/%s/items HTTP/1.1\r\nHost: x\r\n"
		 "Authorization: Bearer %s\r\nContent-Length: %zu\r\n\r\n",
		 sid, token, 4 + env.len + blob_n);
	buf_add_u32be(&c->todo, (uint32_t)env.len);
	buf_add(&c->todo, env.data, env.len);
	buf_add(&c->todo, blob, blob_n);
	c->size[c->n++] = (uint32_t)(c->todo.len - before);
	buf_free(&head);
	buf_free(&env);
}

static int read_clients(int port, const char *sid, int n, int size)
{
	char seed[80], token[64];
	uint8_t raw[32];
	int k = 0;
	while (k < CLIENTS && scanf("%79s %63s", seed, token) == 2) {
		tool_must(enc_hex_decode(raw, 32, bytes_str(seed)), "seed");
		dial(&all[k++], port);
		for (int i = 0; i < n && i < 4096; i++)
			add_item(&all[k - 1], sid, raw, token, size);
	}
	return k;
}

static void ask(struct client *c)
{
	size_t n = c->size[c->next++];
	c->began = tool_us();
	c->have = 0;
	while (n) {
		ssize_t w = tool_must(write(c->fd, c->todo.data + c->at, n),
				      "write");
		c->at += (size_t)w;
		n -= (size_t)w;
	}
}

/* Whether the answer is all here. */
static int hear(struct client *c, const char *want)
{
	ssize_t n = tool_must(read(c->fd, c->got + c->have,
				   sizeof c->got - c->have - 1), "read");
	c->have += (size_t)n;
	c->got[c->have] = 0;
	char *end = strstr(c->got, "\r\n\r\n");
	const char *len = strcasestr(c->got, "content-length: ");
	if (n == 0 || (c->have > 12 && memcmp(c->got + 9, want, 3) != 0)) {
		fprintf(stderr, "post: answered %.300s\n", c->got);
		exit(1);
	}
	return end && c->have >= (size_t)(end + 4 - c->got) +
	       (size_t)(len && len < end ? atoi(len + 16) : 0);
}

static void run(int k, const char *want)
{
	int epfd = epoll_create1(0), left = k;
	for (int i = 0; i < k; i++) {
		struct epoll_event ev = { EPOLLIN, { .ptr = &all[i] } };
		epoll_ctl(epfd, EPOLL_CTL_ADD, all[i].fd, &ev);
		ask(&all[i]);
	}
	while (left) {
		struct epoll_event ev[64];
		int n = epoll_wait(epfd, ev, 64, 20000);
		if (n <= 0) {
			fputs("post: no answer\n", stderr);
			exit(1);
		}
		for (int i = 0; i < n; i++) {
			struct client *c = ev[i].data.ptr;
			if (!hear(c, want))
				continue;
			took[took_n++] = tool_us() - c->began;
			if (c->next < c->n)
				ask(c);
			else
				left--;
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(double began)
{
	double all_us = tool_us() - began;
	qsort(took, (size_t)took_n, sizeof *took, compare);
	printf("%.0f\n%.1f\n%.1f\n", all_us, took[took_n / 2],
	       took[took_n * 99 / 100]);
}

static void sync_loop(const char *path, int n, size_t size)
{
	char data[65536] = "x";
	int fd = (int)tool_must(open(path, O_WRONLY | O_CREAT | O_APPEND,
				     0600), path);
	for (int i = 0; i < n; i++) {
		double began = tool_us();
		tool_must(write(fd, data, size), "write");
		tool_must(fdatasync(fd), "fdatasync");
		took[took_n++] = tool_us() - began;
	}
}

static void make_gets(int port, const char *path, int n, int k)
{
	for (int i = 0; i < k; i++) {
		struct client *c = &all[i];
		dial(c, port);
		for (c->n = 0; c->n < n / k && c->n < 4096; c->n++) {
			size_t before = c->todo.len;
			buf_addf(&c->todo, "GET %s HTTP/1.1\r\nHost: x\r\n"
				 "\r\n", path);
			c->size[c->n] = (uint32_t)(c->todo.len - before);
		}
	}
}

int main(int argc, char **argv)
{
	if (argc < 5 || prim_init() < 0)
		return tool_usage("post items|gets|sync ...");
	took = calloc(CLIENTS * 4096, sizeof *took);
	int k = 0;
	if (strcmp(argv[1], "items") == 0)
		k = read_clients(atoi(argv[2]), argv[3], atoi(argv[4]),
				 atoi(argv[5]));
	else if (strcmp(argv[1], "gets") == 0)
		make_gets(atoi(argv[2]), argv[3], atoi(argv[4]),
			  k = atoi(argv[5]));
	double began = tool_us();
	if (strcmp(argv[1], "sync") == 0)
		sync_loop(argv[2], atoi(argv[3]), (size_t)atoi(argv[4]));
	else
		run(k, argv[1][0] == 'g' ? "200" : "201");
	report(began);
	return 0;
}
