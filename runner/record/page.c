/* SPDX-License-Identifier: MIT */
#include "runner/record/page.h"

#include <string.h>

#include "core/enc.h"
#include "runner/record/chain.h"

/* The assembler puts the two files here as they are. */
__asm__(".section .rodata\n"
	"page_css: .incbin \"runner/record/page.css\"\n"
	"page_css_end: .byte 0\n"
	"page_js: .incbin \"runner/record/page.js\"\n"
	"page_js_end: .byte 0\n"
	".previous\n");
extern const uint8_t page_css[], page_css_end[], page_js[], page_js_end[];

static struct bytes css(void)
{
	return (struct bytes){ page_css, (size_t)(page_css_end - page_css) };
}

static struct bytes js(void)
{
	return (struct bytes){ page_js, (size_t)(page_js_end - page_js) };
}

/* A source of a content policy: padded base64 of the other alphabet. */
static void put_source(struct buf *out, struct bytes text)
{
	uint8_t hash[HASH_SIZE];
	cleanup_buf struct buf b = { 0 };
	hash_sha256(hash, text.p, text.n);
	enc_b64(&b, hash, sizeof hash);
	for (size_t i = 0; i < b.len; i++)
		b.data[i] = b.data[i] == '-' ? '+' : b.data[i] == '_' ? '/'
			: b.data[i];
	buf_add_str(out, "'sha256-");
	buf_add(out, b.data, b.len);
	buf_add_str(out, "='");
}

static void put_head(struct buf *out, struct bytes run)
{
	buf_add_str(out, "<!doctype html>\n<html lang=\"en\"><head>\n"
		    "<meta charset=\"utf-8\">\n"
		    "<meta http-equiv=\"Content-Security-Policy\" content=\""
		    "default-src 'none'; style-src ");
	put_source(out, css());
	buf_add_str(out, "; script-src ");
	put_source(out, js());
	buf_add_str(out, "; base-uri 'none'; form-action 'none'\">\n"
		    "<meta name=\"viewport\" "
		    "content=\"width=device-width, initial-scale=1\">\n"
		    "<meta name=\"color-scheme\" content=\"light dark\">\n"
		    "<meta name=\"referrer\" content=\"no-referrer\">\n"
		    "<title>Record of ");
	buf_add(out, run.p, run.n);
	buf_add_str(out, "</title>\n<style>");
	buf_add(out, css().p, css().n);
	buf_add_str(out, "</style>\n</head><body>\n"
		    "<main id=\"view\"><noscript><p>This page is drawn by its "
		    "own script. Without one, read the record with "
		    "<code>airlox-box show FILE</code>.</p></noscript>"
		    "</main>\n");
}

/* A script element's content ends at the first "</script", and changes its
 * rules at "<!--": so no "<" is left in it. */
static void put_escaped(struct buf *out, struct bytes text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '<')
			buf_add_str(out, "\\u003c");
		else
			buf_add_byte(out, text.p[i]);
	}
}

int page_unescape(struct buf *out, struct bytes line)
{
	static const char less[] = "\\u003c";
	for (size_t i = 0; i < line.n; i++) {
		bool pair = line.p[i] == '\\' && i + 1 < line.n;
		if (pair && line.n - i >= 6 &&
		    memcmp(line.p + i, less, 6) == 0) {
			buf_add_byte(out, '<');
			i += 5;
			continue;
		}
		buf_add_byte(out, line.p[i]);
		if (pair)
			buf_add_byte(out, line.p[++i]);
	}
	return buf_failed(out) ? -1 : 0;
}

/* The bytes of the lines that are whole, and where the chain stands then. */
static int walk(struct chain_walk *w, struct bytes run, struct bytes *lines,
		struct err *e)
{
	size_t n = lines->n;
	while (n && lines->p[n - 1] != '\n')
		n--;
	lines->n = n;
	chain_begin(w, run, *lines);
	struct part p;
	int rc;
	while ((rc = chain_next(w, &p, e)) > 0)
		part_free(&p);
	return rc;
}

static void put_signature(struct buf *out, const struct chain_walk *w,
			  const struct signer *s)
{
	uint8_t file[HASH_SIZE], pub[PRIM_PUB], sig[PRIM_SIG];
	char hex[2 * HASH_SIZE + 1];
	cleanup_buf struct buf said = { 0 };
	hash_sha256(file, out->data, out->len);
	signer_pub(s, pub);
	buf_add(&said, PAGE_STATEMENT, sizeof PAGE_STATEMENT);
	buf_add_str(&said, "key ");
	enc_b64(&said, pub, sizeof pub);
	enc_hex(hex, file, sizeof file);
	buf_addf(&said, "\nfile %s\n", hex);
	enc_hex(hex, w->hash, HASH_SIZE);
	buf_addf(&said, "head %s\nparts %zu\n", hex, w->at);
	out->failed |= said.failed;
	if (said.failed)
		return;
	signer_sign(s, sig, buf_bytes(&said));
	buf_add_str(out, PAGE_SIGNATURE);
	buf_add(out, said.data + sizeof PAGE_STATEMENT,
		said.len - sizeof PAGE_STATEMENT);
	buf_add_str(out, "sig ");
	enc_b64(out, sig, sizeof sig);
	buf_add_str(out, "\n" PAGE_END);
}

int page_put(struct buf *out, struct bytes run, struct bytes lines,
	     const struct signer *s, struct err *e)
{
	struct chain_walk w;
	if (!chain_is_run(run))
		return err_set(e, ERR_INVALID, "not a run's name");
	if (walk(&w, run, &lines, e) < 0)
		return -1;
	put_head(out, run);
	buf_add_str(out, PAGE_DATA);
	buf_add(out, run.p, run.n);
	buf_add_byte(out, '\n');
	put_escaped(out, lines);
	buf_add_str(out, PAGE_DATA_END "<script>");
	buf_add(out, js().p, js().n);
	buf_add_str(out, "</script>\n");
	if (!buf_failed(out))
		put_signature(out, &w, s);
	return buf_failed(out) ? err_set(e, ERR_MEMORY, "out of memory") : 0;
}
