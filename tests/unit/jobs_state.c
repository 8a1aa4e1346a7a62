/* SPDX-License-Identifier: MIT
 *
 * Goal: a job moves forward only, in the order that airloxfs(4) tells; what
 * has ended is moved by no event (a verified result is no event: it is the
 * last word); each state's word reads back. */
#include "airloxfs/jobs_state.h"
#include "tests/unit/tap.h"

#define STATES (JOBS_LOST + 1)
#define EVENTS (JOBS_ABANDONED + 1)
#define NO (-1)

/* From each state, by each event: the state after, or NO. */
static const int table[STATES][EVENTS] = {
	/*  RUN  POSTED  NO_RUNNER  CLAIMED  GIVEN_UP  DROPPED  SILENT  ABANDONED */
	[JOBS_DRAFT] = { JOBS_WAITING, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_WAITING] = { NO, JOBS_ASSIGNED, JOBS_WAITING, JOBS_RUNNING,
			   JOBS_FAILED, JOBS_CANCELLED, JOBS_CANCELLED,
			   JOBS_LOST },
	[JOBS_ASSIGNED] = { NO, NO, JOBS_WAITING, JOBS_RUNNING, JOBS_FAILED,
			    NO, JOBS_CANCELLED, JOBS_LOST },
	[JOBS_RUNNING] = { NO, NO, NO, NO, JOBS_FAILED, NO, JOBS_CANCELLED,
			   JOBS_LOST },
	[JOBS_COMPLETED] = { NO, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_FAILED] = { NO, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_TIMED_OUT] = { NO, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_CANCELLED] = { NO, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_REFUSED] = { NO, NO, NO, NO, NO, NO, NO, NO },
	[JOBS_LOST] = { NO, NO, NO, NO, NO, NO, NO, NO },
};

static void test_moves(void)
{
	for (int from = 0; from < STATES; from++)
		for (int ev = 0; ev < EVENTS; ev++) {
			enum jobs_state s = (enum jobs_state)from;
			bool moved = jobs_state_next(&s, (enum jobs_event)ev);
			int want = table[from][ev];
			ok(moved == (want != NO) &&
			   (int)s == (want == NO ? from : want),
			   "%s, event %d: %s", jobs_state_word(
				   (enum jobs_state)from), ev,
			   jobs_state_word(s));
		}
}

static void test_words(void)
{
	static const char *const words[] = {
		"draft", "waiting", "assigned", "running", "completed",
		"failed", "timed_out", "cancelled", "refused", "lost" };
	enum jobs_state s;
	for (int i = 0; i < STATES; i++) {
		is_str(jobs_state_word((enum jobs_state)i), words[i], "a word");
		ok(jobs_state_parse(&s, bytes_str(words[i])) == 0 &&
		   (int)s == i, "%s reads back", words[i]);
		ok(jobs_state_is_final((enum jobs_state)i) == (i > 3),
		   "whether %s is final", words[i]);
	}
	ok(jobs_state_parse(&s, bytes_str("done")) < 0, "done is no state");
	ok(jobs_state_parse(&s, bytes_str("")) < 0, "nor is nothing");
}

static void test_results(void)
{
	ok(jobs_state_of(RESULT_COMPLETED) == JOBS_COMPLETED, "completed");
	ok(jobs_state_of(RESULT_FAILED) == JOBS_FAILED, "failed");
	ok(jobs_state_of(RESULT_REFUSED) == JOBS_REFUSED, "refused");
	ok(jobs_state_of(RESULT_TIMED_OUT) == JOBS_TIMED_OUT, "timed out");
	ok(jobs_state_of(RESULT_CANCELLED) == JOBS_CANCELLED, "cancelled");
}

int main(void)
{
	test_moves();
	test_words();
	test_results();
	return done_testing();
}
