/* SPDX-License-Identifier: MIT
 *
 * Goal: an extension names the type and the exact mime; magic must agree. */
#include "core/sniff.h"
#include "tests/unit/tap.h"

static void is_kind(const char *name, enum item_type type, const char *mime)
{
	struct sniff s;
	int r = sniff_name(bytes_str(name), &s);

	is_int(r, type == TYPE_NONE ? -1 : 0, "%s is known or not", name);
	is_int(s.type, type, "  its type is %s", type_word(type));
	is_str(s.mime, mime, "  its mime is %s", mime);
}

static void is_magic(const char *mime, const char *head, size_t n, int want)
{
	is_int(sniff_magic(mime, (const uint8_t *)head, n, NULL), want,
	       "%s, %zu bytes: %d", mime, n, want);
}

int main(void)
{
	is_kind("a.py", TYPE_PY, "text/x-python");
	is_kind("R.MD", TYPE_MD, "text/markdown");
	is_kind("r.Markdown", TYPE_MD, "text/markdown");
	is_kind("a.b.zip", TYPE_ZIP, "application/zip");
	is_kind("a.png", TYPE_IMAGE, "image/png");
	is_kind("a.jpg", TYPE_IMAGE, "image/jpeg");
	is_kind("a.JPEG", TYPE_IMAGE, "image/jpeg");
	is_kind("a.webp", TYPE_IMAGE, "image/webp");
	is_kind("a.gif", TYPE_NONE, "");
	is_kind("py", TYPE_NONE, "");
	is_kind(".py", TYPE_NONE, "");
	is_kind("a.py.", TYPE_NONE, "");
	is_kind("", TYPE_NONE, "");
	is_magic("image/png", "\x89PNG\r\n\x1a\n....", 12, 0);
	is_magic("image/png", "\x89PNG\r\n\x1a\n", 8, 0);
	is_magic("image/png", "\x89PNG\r\n\x1a", 7, -1);
	is_magic("image/jpeg", "\xff\xd8\xff", 3, 0);
	is_magic("image/jpeg", "\x89PNG\r\n\x1a\n", 8, -1);
	is_magic("image/webp", "RIFF....WEBP", 12, 0);
	is_magic("image/webp", "RIFF....WAVE", 12, -1);
	is_magic("image/webp", "RIFF....WEB", 11, -1);
	is_magic("image/gif", "GIF89a", 6, -1);
	is_int(type_parse(bytes_str("image")), TYPE_IMAGE, "image");
	is_int(type_parse(bytes_str("Image")), TYPE_NONE, "case counts");
	is_int(type_parse(bytes_str("")), TYPE_NONE, "no word is no type");
	return done_testing();
}
