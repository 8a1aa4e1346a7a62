/* SPDX-License-Identifier: MIT */
#include "airloxfs/jobs_state.h"

static const char *const words[] = {
	[JOBS_DRAFT] = "draft", [JOBS_WAITING] = "waiting",
	[JOBS_ASSIGNED] = "assigned", [JOBS_RUNNING] = "running",
	[JOBS_COMPLETED] = "completed", [JOBS_FAILED] = "failed",
	[JOBS_TIMED_OUT] = "timed_out", [JOBS_CANCELLED] = "cancelled",
	[JOBS_REFUSED] = "refused", [JOBS_LOST] = "lost",
};
#define WORDS (sizeof words / sizeof *words)

#define BIT(s) (1u << (s))
#define OPEN (BIT(JOBS_WAITING) | BIT(JOBS_ASSIGNED) | BIT(JOBS_RUNNING))

static const struct move {
	unsigned from;
	enum jobs_state to;
} moves[] = {
	[JOBS_RUN] = { BIT(JOBS_DRAFT), JOBS_WAITING },
	[JOBS_POSTED] = { BIT(JOBS_WAITING), JOBS_ASSIGNED },
	[JOBS_NO_RUNNER] = { BIT(JOBS_WAITING) | BIT(JOBS_ASSIGNED),
			     JOBS_WAITING },
	[JOBS_CLAIMED] = { BIT(JOBS_WAITING) | BIT(JOBS_ASSIGNED),
			   JOBS_RUNNING },
	[JOBS_GIVEN_UP] = { OPEN, JOBS_FAILED },
	[JOBS_DROPPED] = { BIT(JOBS_WAITING), JOBS_CANCELLED },
	[JOBS_SILENT] = { OPEN, JOBS_CANCELLED },
	[JOBS_ABANDONED] = { OPEN, JOBS_LOST },
};

const char *jobs_state_word(enum jobs_state s) { return words[s]; }

int jobs_state_parse(enum jobs_state *s, struct bytes word)
{
	for (size_t i = 0; i < WORDS; i++)
		if (bytes_eq(word, bytes_str(words[i]))) {
			*s = (enum jobs_state)i;
			return 0;
		}
	return -1;
}

bool jobs_state_is_final(enum jobs_state s) { return s >= JOBS_COMPLETED; }

bool jobs_state_next(enum jobs_state *s, enum jobs_event ev)
{
	if (!(moves[ev].from & BIT(*s)))
		return false;
	*s = moves[ev].to;
	return true;
}

enum jobs_state jobs_state_of(enum result_status status)
{
	switch (status) {
	case RESULT_COMPLETED: return JOBS_COMPLETED;
	case RESULT_REFUSED: return JOBS_REFUSED;
	case RESULT_TIMED_OUT: return JOBS_TIMED_OUT;
	case RESULT_CANCELLED: return JOBS_CANCELLED;
	case RESULT_FAILED: break;
	}
	return JOBS_FAILED;
}
