/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>

#include "core/name.h"
#include "core/sniff.h"

static const struct {
	const char *ext;
	struct sniff is;
} kinds[] = {
	{ ".py",       { TYPE_PY,    "text/x-python" } },
	{ ".md",       { TYPE_MD,    "text/markdown" } },
	{ ".markdown", { TYPE_MD,    "text/markdown" } },
	{ ".zip",      { TYPE_ZIP,   "application/zip" } },
	{ ".png",      { TYPE_IMAGE, "image/png" } },
	{ ".jpg",      { TYPE_IMAGE, "image/jpeg" } },
	{ ".jpeg",     { TYPE_IMAGE, "image/jpeg" } },
	{ ".webp",     { TYPE_IMAGE, "image/webp" } },
};

int sniff_name(struct bytes name, struct sniff *out)
{
	size_t at = name_ext(name);

	*out = (struct sniff){ TYPE_NONE, "" };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const char *ext = kinds[i].ext;
		if (name.n - at == strlen(ext) &&
		    strncasecmp((const char *)name.p + at, ext,
				name.n - at) == 0) {
			*out = kinds[i].is;
			return 0;
		}
	}
	return -1;
}

static bool begins(const uint8_t *head, size_t n, const char *magic, size_t m)
{
	return n >= m && memcmp(head, magic, m) == 0;
}

int sniff_magic(const char *mime, const uint8_t *head, size_t n, struct err *e)
{
	bool agrees = false;

	if (strcmp(mime, "image/png") == 0)
		agrees = begins(head, n, "\x89PNG\r\n\x1a\n", 8);
	else if (strcmp(mime, "image/jpeg") == 0)
		agrees = begins(head, n, "\xff\xd8\xff", 3);
	else if (strcmp(mime, "image/webp") == 0)
		agrees = begins(head, n, "RIFF", 4) && n >= 12 &&
			 begins(head + 8, 4, "WEBP", 4);
	if (!agrees)
		return err_set(e, ERR_CONTENT,
			       "the file does not begin as %s does", mime);
	return 0;
}
