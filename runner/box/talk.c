/* SPDX-License-Identifier: MIT */
#include "runner/box/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runner/box/program.h"
#include "runner/box/say.h"
#include "runner/box/tell_record.h"
#include "runner/hand/hand.h"

#define HAND "/run/airlox/hand"
#define TICK_MS 100
#define FLUSH_MS 100		/* what is said goes to the record so late */
#define FLUSH_BYTES 8192u
#define CANCEL_MS 5000		/* an agent has to answer a cancel */
#define END_MS 2000		/* and to end when it is told to */
#define OUT_MAX (128u << 20)	/* what the box has not read */

static struct talk *of(struct launch *l)
{
	return (struct talk *)((char *)l - offsetof(struct talk, launch));
}

static int64_t now_ms(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* --- the room --- */

/* hand ROOT... -- AGENT...; the roots are the workspace: its directory, the
 * session and what `files` of the policy names. */
static int set_command(struct launch *l, const char *const *agent,
		       struct err *e)
{
	const struct policy *p = l->policy;
	size_t n = 0, most = p->file_n + p->agent.n + 8;
	const char **all = calloc(most, sizeof *all);
	if (!all)
		return err_set(e, ERR_MEMORY, "out of memory");
	all[n++] = HAND;
	all[n++] = HAND_ARG;
	all[n++] = "/work";
	all[n++] = "/session";
	for (size_t i = 0; i < p->file_n; i++)
		all[n++] = p->file[i].at;
	all[n++] = "--";
	for (; *agent; agent++)
		all[n++] = *agent;
	l->inner = all;
	return 0;
}

static int furnish(struct launch *l, struct err *e)
{
	const char *const *agent = NULL;
	char *self = realpath("/proc/self/exe", NULL);
	if (!self)
		return err_sys(e, "cannot find this program");
	room_mount(&l->room, PLAN_RO, room_keep(&l->room, "%s", self), HAND,
		   0);
	free(self);
	if (ask_open(&of(l)->asks, l->run.dir, of(l)->patience_ms, e) < 0)
		return -1;
	if (program_place(&l->room, &l->policy->agent, &agent, e) < 0 ||
	    set_command(l, agent, e) < 0)
		return -1;
	return l->room.failed ? err_set(e, ERR_MEMORY, "too much for a box") :
				0;
}

/* --- what the protocol's machine says --- */

static void tell_box(struct talk *t, char kind, struct bytes line)
{
	buf_add_byte(&t->out, (uint8_t)kind);
	buf_add(&t->out, line.p, line.n);
	buf_add_byte(&t->out, '\n');
}

static void on_send(void *arg, struct bytes line)
{
	tell_box(arg, HAND_AGENT, line);
}

static void flush(struct talk *t)
{
	static const char *const names[] = { "agent", "thought", "plan" };
	if (t->said.len)
		account_say(&t->launch.account, names[t->voice],
			    buf_bytes(&t->said));
	buf_reset(&t->said);
}

static void on_say(void *arg, enum acp_voice voice, struct bytes text)
{
	struct talk *t = arg;
	if (t->said.len && (t->voice != voice || voice == ACP_PLAN ||
			    t->said.len > FLUSH_BYTES))
		flush(t);
	if (!t->said.len)
		t->said_ms = now_ms();
	t->voice = voice;
	size_t n = launch_within_output(&t->launch, text.n);
	buf_add(&t->said, text.p, n);
}

static void on_serve(void *arg, struct bytes method, struct bytes about,
		     struct bytes line)
{
	struct talk *t = arg;
	flush(t);
	tell_served(&t->launch.account, method, about);
	tell_box(t, HAND_SERVE, line);
}

static void on_tool(void *arg, const struct acp_call *c)
{
	struct talk *t = arg;
	flush(t);
	tell_call(&t->launch.account, c);
}

static void on_notice(void *arg, struct bytes text)
{
	struct talk *t = arg;
	flush(t);
	account_notice(&t->launch.account, text);
}

/* "execute: Run tests {"command":"make"}" */
static void question_text(struct buf *b, const struct acp_call *c)
{
	struct bytes title = c->title.n ? c->title : c->id;
	if (c->kind.n)
		buf_addf(b, "%.*s: ", (int)c->kind.n,
			 (const char *)c->kind.p);
	buf_add(b, title.p, title.n);
	buf_add_byte(b, ' ');
	buf_add(b, c->input.p, c->input.n);
}

static void say_waits(struct talk *t)
{
	struct rundir *run = &t->launch.run;
	char text[RUNDIR_TEXT];
	if (t->asks.n)
		snprintf(text, sizeof text, "an answer: %u %.200s",
			 t->asks.q[0].tag, t->asks.q[0].text);
	(void)rundir_say(run, t->asks.n ? RUNDIR_WAITING : RUNDIR_RUNNING,
			 t->asks.n ? text : NULL, NULL);
}

static void on_ask(void *arg, unsigned tag, const struct acp_call *c,
		   unsigned offers)
{
	struct talk *t = arg;
	cleanup_buf struct buf text = { 0 };
	flush(t);
	tell_question(&t->launch.account, tag, c, offers);
	if (t->auto_allow) {
		t->fresh[t->fresh_n].tag = tag;
		t->fresh[t->fresh_n++].offers = offers;
		return;
	}
	question_text(&text, c);
	ask_add(&t->asks, tag, buf_bytes(&text), now_ms());
	say_waits(t);
}

static void on_unask(void *arg, unsigned tag)
{
	struct talk *t = arg;
	ask_drop(&t->asks, tag);
	for (size_t i = 0; i < t->fresh_n; i++)
		if (t->fresh[i].tag == tag)
			t->fresh[i] = t->fresh[--t->fresh_n];
	tell_answer(&t->launch.account, tag, "cancelled", "nobody");
	say_waits(t);
}

/* --- questions --- */

static void answer(struct talk *t, unsigned tag, enum acp_choice want,
		   const char *who)
{
	enum acp_choice told = acp_answer(t->acp, tag, want);
	tell_answer(&t->launch.account, tag, acp_choice_word(told), who);
	ask_drop(&t->asks, tag);
	say_waits(t);
}

static void answer_questions(struct talk *t)
{
	static const enum acp_choice want[ASK_WORDS] = {
		[ASK_YES] = ACP_ALLOW_ONCE, [ASK_NO] = ACP_REJECT_ONCE,
		[ASK_ALWAYS] = ACP_ALLOW_ALWAYS,
	};
	struct ask_answer a;
	cleanup_buf struct buf bad = { 0 }, text = { 0 };
	while (t->fresh_n)
		answer(t, t->fresh[--t->fresh_n].tag, ACP_ALLOW_ONCE,
		       "--permissions auto_allow");
	while (ask_read(&t->asks, &a, &bad))
		answer(t, a.tag, want[a.word], a.who);
	if (bad.len) {
		buf_add_str(&text, "not an answer to an open question: ");
		buf_add(&text, bad.data, bad.len);
		account_notice(&t->launch.account, buf_bytes(&text));
	}
	while (ask_expire(&t->asks, &a, now_ms()))
		answer(t, a.tag, want[a.word], a.who);
	ask_offer(&t->asks, now_ms());
}

/* --- the box's lines --- */

static void take(struct talk *t, struct bytes line)
{
	struct bytes rest = { line.p + 1, line.n - 1 };
	char number[12] = "";
	switch (line.n ? line.p[0] : 0) {
	case HAND_AGENT:
		acp_line(t->acp, rest);
		break;
	case HAND_SERVE:
		acp_served(t->acp, rest);
		break;
	case HAND_END:
		memcpy(number, rest.p, rest.n < 11 ? rest.n : 11);
		t->code = atoi(number);
		t->over = true;
		break;
	default:
		on_notice(t, bytes_str("the box wrote what is none of its "
				       "lines"));
		t->ends = true;
	}
}

static void name_agent(struct talk *t)
{
	char text[160];
	if (t->named || !acp_agent(t->acp)[0])
		return;
	t->named = true;
	snprintf(text, sizeof text, "the agent is %s", acp_agent(t->acp));
	account_notice(&t->launch.account, bytes_str(text));
}

/* false at its end. */
static bool read_box(struct talk *t)
{
	uint8_t block[65536];
	struct bytes line;
	ssize_t n = read(t->launch.box.out, block, sizeof block);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	if (lines_add(&t->in, (struct bytes){ block, (size_t)n }) < 0) {
		on_notice(t, bytes_str("a line of the agent is longer than "
				       "16 MiB"));
		t->ends = true;
		return false;
	}
	while (lines_next(&t->in, &line)) {
		take(t, line);
		answer_questions(t);
	}
	name_agent(t);
	return true;
}

static bool read_errors(struct talk *t)
{
	uint8_t block[16384];
	ssize_t n = read(t->launch.box.err, block, sizeof block);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	size_t m = launch_within_output(&t->launch, (size_t)n);
	if (m) {
		flush(t);
		account_say(&t->launch.account, "stderr",
			    (struct bytes){ block, m });
	}
	return n > 0;
}

static void write_box(struct talk *t)
{
	while (t->out.len && t->launch.box.in >= 0) {
		ssize_t n = write(t->launch.box.in, t->out.data, t->out.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			buf_reset(&t->out);
			return;
		}
		buf_consume(&t->out, (size_t)n);
	}
	if (t->out.len > OUT_MAX)
		t->ends = true;
}

/* --- from its start to its end --- */

/* The first signal cancels; a second one, or an agent that does not heed it,
 * ends it. */
static void heed_signals(struct talk *t)
{
	int number = launch_stop;
	launch_stop = 0;
	if (number && t->stop) {
		t->ends = true;
	} else if (number) {
		t->stop = number;
		t->stop_ms = now_ms();
		on_notice(t, bytes_str("told to stop"));
		t->ends |= !acp_cancel(t->acp);
	}
	if (t->stop && now_ms() - t->stop_ms > CANCEL_MS)
		t->ends = true;
}

/* Whatever has come to its end has END_MS to go by itself. */
static void see_to_end(struct talk *t)
{
	enum acp_state s = acp_state(t->acp);
	heed_signals(t);
	if (s == ACP_DONE || s == ACP_BROKEN || t->over)
		t->ends = true;
	if (!t->ends)
		return;
	if (!t->end_ms) {
		t->end_ms = now_ms();
		tell_box(t, HAND_KILL, bytes_str(""));
	}
	if (!t->killed && now_ms() - t->end_ms > END_MS) {
		t->killed = true;
		box_kill(&t->launch.box);
	}
}

static void begin(struct talk *t)
{
	struct launch *l = &t->launch;
	char text[CHAIN_RUN + 8];
	account_say(&l->account, "prompt", buf_bytes(&t->prompt));
	fcntl(l->box.in, F_SETFL, O_NONBLOCK);
	fcntl(l->box.out, F_SETFL, O_NONBLOCK);
	acp_begin(t->acp);
	int n = snprintf(text, sizeof text, "ok %s", l->run.run);
	(void)!write(t->ready, text, (size_t)n);
	close(t->ready);
	t->ready = -1;
}

#define FDS 6

static void fill(const struct talk *t, struct pollfd p[FDS])
{
	const struct box *b = &t->launch.box;
	const int fds[FDS] = { b->out, b->err, b->control, t->asks.answer,
			       t->out.len ? b->in : -1,
			       t->launch.way.control };
	for (int i = 0; i < FDS; i++) {
		if (p[i].fd != -2)
			p[i].fd = fds[i];
		p[i].events = i == 4 ? POLLOUT : i == 5 ? 0 : POLLIN;
		p[i].revents = 0;
	}
}

/* Without a broker nothing is decided and nothing written down. */
static void lose_broker(struct talk *t)
{
	t->lost = t->killed = t->ends = true;
	on_notice(t, bytes_str("the broker has ended: the box is stopped"));
	box_kill(&t->launch.box);
}

static void drive(struct launch *l, struct box_end *end)
{
	struct talk *t = of(l);
	struct pollfd p[FDS] = { { 0 } };
	bool over = false;
	begin(t);
	while (!over || p[0].fd != -2 || p[1].fd != -2) {
		fill(t, p);
		if (poll(p, FDS, TICK_MS) < 0 && errno != EINTR)
			break;
		if (p[0].fd >= 0 && p[0].revents && !read_box(t))
			p[0].fd = -2;
		if (p[1].fd >= 0 && p[1].revents && !read_errors(t))
			p[1].fd = -2;
		if (!over && p[2].fd >= 0 && p[2].revents) {
			box_ended(&l->box, end);
			over = true;
			p[2].fd = -2;
		}
		if (!over && p[5].fd >= 0 && p[5].revents) {
			p[5].fd = -2;
			lose_broker(t);
		}
		answer_questions(t);
		if (!over)
			see_to_end(t);
		write_box(t);
		account_follow(&l->account);
		if (t->said.len && now_ms() - t->said_ms > FLUSH_MS)
			flush(t);
	}
	flush(t);
	ask_close(&t->asks);
}

/* --- how it went --- */

static void conclude(struct talk *t, const char *text)
{
	account_notice(&t->launch.account, bytes_str(text));
}

static int by_reason(struct talk *t)
{
	const char *reason = acp_stop_reason(t->acp);
	char text[100];
	if (!strcmp(reason, "end_turn"))
		return 0;
	if (!strcmp(reason, "cancelled"))
		return 128 + (t->stop ? t->stop : SIGINT);
	snprintf(text, sizeof text, "the agent stopped: %s", reason);
	conclude(t, text);
	return 1;
}

static int verdict(struct launch *l, const struct box_end *end)
{
	struct talk *t = of(l);
	char text[200];
	enum acp_state s = acp_state(t->acp);
	if (s == ACP_DONE)
		return by_reason(t);
	if (t->lost)
		return err_exit(ERR_SYS);
	if (end->how != BOX_EXITED && end->how != BOX_KILLED)
		return launch_verdict(end);
	if (s == ACP_BROKEN) {
		conclude(t, acp_why(t->acp)->why);
		return err_exit(acp_why(t->acp)->code);
	}
	if (t->stop)
		return 128 + t->stop;
	snprintf(text, sizeof text, "the agent ended (exit %d) before it "
		 "answered %s", t->over ? t->code : end->code,
		 acp_state_word(s));
	conclude(t, text);
	return TALK_DIED;
}

int talk_run(struct talk *t, struct err *e)
{
	static const struct launch_use use = {
		.talks = true, .furnish = furnish, .drive = drive,
		.verdict = verdict,
	};
	const struct acp_ask ask = {
		.side = { t, on_send, on_serve, on_say, on_tool, on_ask,
			  on_unask, on_notice },
		.cwd = "/work", .prompt = buf_bytes(&t->prompt),
		.auth = t->auth, .version = AIRLOX_VERSION,
	};
	t->acp = acp_new(&ask);
	if (!t->acp)
		return err_set(e, ERR_MEMORY, "out of memory");
	int r = launch_box(&t->launch, &use, e);
	ask_close(&t->asks);
	launch_clean_up(&t->launch);
	acp_free(t->acp);
	lines_free(&t->in);
	buf_free(&t->out);
	buf_free(&t->said);
	free((void *)(uintptr_t)t->launch.inner);
	return r;
}
