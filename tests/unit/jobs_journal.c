/* SPDX-License-Identifier: MIT
 *
 * What is read again of jobs and of decisions on runners. */
#include "airloxfs/jobs_journal.c"
#include "tests/unit/tap.h"

static const char whole[] =
	"{\"cancelling\":1,\"exit\":-3,\"has_exit\":1,\"has_runner\":1,"
	"\"n\":7,\"name\":\"train\",\"out\":[{\"path\":\"a/b.csv\",\"size\":5,"
	"\"vault\":\"j7-o0\"}],\"peak_mem_mb\":9,\"reason\":\"why\","
	"\"removed\":0,"
	"\"runner\":\"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA\","
	"\"sealed\":{\"blob\":\"j7-blob\",\"blob_n\":100,\"envelope\":\"{}\","
	"\"id\":\"AAAAAAAAAAAAAAAAAAAAAA\","
	"\"sha256\":\"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA\"},"
	"\"sizes\":[1,2,3,4],\"spec\":{\"entry\":\"a.py\",\"labels\":\"gpu\","
	"\"memory_mb\":64,\"nowait\":1,"
	"\"pub\":\"AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA\","
	"\"requirements\":\"numpy\",\"runner\":\"box\",\"target\":1,"
	"\"timeout_s\":30},\"state\":\"failed\",\"tried\":1,\"verified\":1,"
	"\"wall_ms\":12}";

static int load(struct jobs *j, const char *text)
{
	struct err e;
	struct json *doc = json_parse(bytes_str(text), &e);
	int rc = doc ? load_one(j, doc, &e) : -1;
	json_free(doc);
	return rc;
}

static void clear(struct jobs *j)
{
	for (struct submitted *s = j->first, *next; s; s = next) {
		next = s->next;
		s->m = j->m;
		jobs_free_parts(s);
		buf_free(&s->spec.labels);
		buf_free(&s->spec.requirements);
		free(s->name);
		free(s);
	}
	j->first = NULL;
	j->last_at = &j->first;
	j->newest = 0;
}

/* The record with one place of it replaced. */
static int load_with(struct jobs *j, const char *from, const char *to)
{
	cleanup_buf struct buf b = { 0 };
	const char *at = strstr(whole, from);
	buf_add(&b, whole, (size_t)(at - whole));
	buf_add_str(&b, to);
	buf_add_str(&b, at + strlen(from));
	int rc = load(j, buf_cstr(&b));
	clear(j);
	return rc;
}

static void check_whole(struct jobs *j)
{
	cleanup_buf struct buf b = { 0 };
	is_int(load(j, whole), 0, "a record");
	const struct submitted *s = j->first;
	put_record(&b, s);
	is_str(buf_cstr(&b), whole, "written again it is the same");
	is_str(s->name, "train", "name");
	is_int(s->state, JOBS_FAILED, "state");
	is_int((int)s->exit_code, -3, "exit code");
	is_int((int)s->out_n, 1, "a file");
	is_str(s->out[0].path, "a/b.csv", "its path");
	is_int((int)s->text_n[JOBS_META], 4, "sizes");
	is_int((int)j->newest, 7, "its number is not given again");
	is_int(load(j, whole), 0, "a later one of that number");
	ok(!j->first->next, "takes its place");
	clear(j);
	is_int(load_with(j, "\"failed\"", "\"running\""), 0, "a running one");
}

static void check_refused(struct jobs *j)
{
	static const char *const bad[][2] = {
		{ "\"failed\"", "\"odd\"" }, { "\"n\":7", "\"n\":0" },
		{ "\"n\":7", "\"n\":-7" }, { "train", "" },
		{ "\"blob\":\"j7-blob\"", "\"blob\":\"../j7\"" },
		{ "AAAAAAAAAAAAAAAAAAAAAA", "AAAA" },
		{ "\"size\":5", "\"size\":-5" }, { "[1,2,3,4]", "[\"1\"]" },
		{ "[1,2,3,4]", "[-1]" }, { "\"target\":1", "\"target\":9" },
		{ "\"removed\":0,", "" }, { "\"tried\":1", "\"tried\":2" },
		{ "\"exit\":-3", "\"exit\":9999999999" },
		{ "\"wall_ms\":12}", "\"wall_ms\":12,\"x\":1}" },
		{ "\"wall_ms\":12}", "" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		is_int(load_with(j, bad[i][0], bad[i][1]), -1, "%s",
		       bad[i][1]);
}

int main(void)
{
	static struct mount m;
	static struct jobs j = { .m = &m, .dir = -1 };
	j.last_at = &j.first;
	m.jobs = &j;
	check_whole(&j);
	check_refused(&j);
	return done_testing();
}
