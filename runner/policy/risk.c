/* SPDX-License-Identifier: MIT
 *
 * What `check` warns of, what a run would miss, and what would happen to a
 * URL. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "runner/policy/show.h"

/* Where anybody may put things: what may go there may leave. */
static bool is_public_store(const char *name)
{
	static const char *const stores[] = {
		"github.com", "api.github.com", "gist.github.com",
		"gitlab.com", "bitbucket.org", "pastebin.com", "huggingface.co",
		"s3.amazonaws.com", "amazonaws.com", "storage.googleapis.com",
		"googleapis.com", "blob.core.windows.net", "workers.dev",
		"herokuapp.com", "ngrok.io", "discord.com", "slack.com",
		"api.telegram.org", NULL
	};
	for (int i = 0; stores[i]; i++)
		if (!strcmp(stores[i], name))
			return true;
	return false;
}

static size_t risk(struct buf *out, unsigned line, const char *name,
		   const char *why)
{
	buf_addf(out, "line %u: %s: %s\n", line, name, why);
	return 1;
}

static bool only_reads(const struct policy_words *methods)
{
	for (size_t i = 0; i < methods->n; i++)
		if (strcmp(methods->word[i], "GET") != 0 &&
		    strcmp(methods->word[i], "HEAD") != 0)
			return false;
	return methods->n > 0;
}

static size_t rule_risks(struct buf *out, const struct policy_rule *r)
{
	const char *name = r->place.host.name;
	size_t n = 0;
	if (r->place.below)
		n += risk(out, r->line, name, "every name below it is meant, "
			  "also those that others can get");
	if (r->tls == POLICY_PASSTHROUGH)
		n += risk(out, r->line, name, "passthrough: only the name is "
			  "checked; methods, paths and content are not seen");
	if (r->tls == POLICY_PLAIN && !r->place.local)
		n += risk(out, r->line, name, "http:// can be read and changed "
			  "by anybody on the way");
	if (r->place.local)
		n += risk(out, r->line, name, "a service of this machine or "
			  "network, without the check of addresses");
	if (is_public_store(name) && !only_reads(&r->methods))
		n += risk(out, r->line, name, "others have accounts there too: "
			  "what is readable in the box can be sent to them; "
			  "name methods and paths");
	return n;
}

static size_t credential_risks(struct buf *out,
			       const struct policy_credential *c)
{
	const char *name = c->place.host.name;
	size_t n = 0;
	if (!c->path)
		n += risk(out, c->line, name, "the credential goes to every "
			  "path; name those it is for");
	if (c->place.below)
		n += risk(out, c->line, name, "the credential goes to every "
			  "name below it");
	if (c->plaintext)
		n += risk(out, c->line, name, "the credential may go without "
			  "TLS");
	if (c->surfaces & POLICY_IN_BODY)
		n += risk(out, c->line, name, "bodies are searched for the "
			  "placeholder, so at most 1 MiB each");
	return n;
}

size_t show_risks(struct buf *out, const struct policy *p)
{
	size_t n = 0;
	for (size_t i = 0; i < p->rule_n; i++)
		n += rule_risks(out, &p->rule[i]);
	for (size_t i = 0; i < p->credential_n; i++)
		n += credential_risks(out, &p->credential[i]);
	return n;
}

/* --- missing --- */

static const char *check_env(const char *name)
{
	const char *v = getenv(name);
	if (!v || !*v)
		return "is not set";
	if (strlen(v) < SHOW_SECRET_MIN)
		return "is shorter than 8 bytes";
	return strlen(v) > SHOW_SECRET_MAX ? "is longer than 4096 bytes" : NULL;
}

static const char *check_file(const char *path)
{
	struct stat st;
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return "is not a file";
	if (st.st_size < (off_t)SHOW_SECRET_MIN)
		return "is shorter than 8 bytes";
	if (st.st_size > (off_t)SHOW_SECRET_MAX + 1)
		return "is longer than 4096 bytes";
	return st.st_mode & 0077 ? "can be read by others; chmod 600" : NULL;
}

/* Where execvp would look, with the PATH that the program will get. */
static const char *check_program(const char *name)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/bin",
					    "/bin", NULL };
	if (strchr(name, '/'))
		return access(name, X_OK) == 0 ? NULL : strerror(errno);
	for (int i = 0; dirs[i]; i++) {
		cleanup_buf struct buf path = { 0 };
		buf_addf(&path, "%s/%s", dirs[i], name);
		const char *s = buf_cstr(&path);
		if (s && access(s, X_OK) == 0)
			return NULL;
	}
	return "is not in /usr/local/bin, /usr/bin or /bin";
}

/* The agent itself is looked up here, by whoever runs it. */
static bool has_agent(const char *name)
{
	const char *path = getenv("PATH");
	if (strchr(name, '/'))
		return access(name, X_OK) == 0;
	while (path && *path) {
		size_t n = strcspn(path, ":");
		cleanup_buf struct buf b = { 0 };
		buf_addf(&b, "%.*s/%s", (int)n, path, name);
		const char *s = buf_cstr(&b);
		if (n && s && access(s, X_OK) == 0)
			return true;
		path += n + (path[n] == ':');
	}
	return false;
}

static size_t agent_missing(struct buf *out, const struct policy *p)
{
	size_t i = 0;
	if (p->agent.n && !strcmp(p->agent.word[0], "env"))
		for (i = 1; i < p->agent.n && strchr(p->agent.word[i], '=');)
			i++;
	if (i >= p->agent.n || has_agent(p->agent.word[i]))
		return 0;
	buf_addf(out, "agent: %s is not in PATH\n", p->agent.word[i]);
	return 1;
}

size_t show_missing(struct buf *out, const struct policy *p)
{
	size_t n = agent_missing(out, p);
	for (size_t i = 0; i < p->credential_n; i++) {
		const struct policy_credential *c = &p->credential[i];
		const char *name = c->from.word[0];
		const char *why = c->source == POLICY_ENV ? check_env(name) :
				  c->source == POLICY_FILE ? check_file(name) :
				  check_program(name);
		if (!why)
			continue;
		buf_addf(out, "line %u: ", c->line);
		show_source(out, c);
		buf_addf(out, " %s\n", why);
		n++;
	}
	return n;
}

/* --- a URL --- */

static int split_url(const char *url, struct policy_ask *ask, struct host *h,
		     struct bytes *query, struct err *e)
{
	struct bytes s = bytes_str(url);
	ask->tls = s.n > 8 && !memcmp(s.p, "https://", 8);
	if (!ask->tls && (s.n <= 7 || memcmp(s.p, "http://", 7) != 0))
		return err_set(e, ERR_USAGE, "a URL begins with https:// or "
			       "http://");
	s.p += ask->tls ? 8 : 7;
	s.n -= ask->tls ? 8 : 7;
	size_t n = 0;
	while (n < s.n && !strchr("/?#", s.p[n]))
		n++;
	if (host_parse(h, (struct bytes){ s.p, n }) < 0)
		return err_set(e, ERR_USAGE, "not a host in this URL");
	ask->host = h;
	ask->port = h->port ? h->port : ask->tls ? 443 : 80;
	s.p += n, s.n -= n;
	n = 0;
	while (n < s.n && s.p[n] != '?' && s.p[n] != '#')
		n++;
	ask->path = n ? (struct bytes){ s.p, n } : bytes_str("/");
	*query = (struct bytes){ s.p + n, s.n - n };
	if (ask->path.p[0] != '/')
		return err_set(e, ERR_USAGE, "not a path in this URL");
	return 0;
}

static void put_credentials(struct buf *out, const struct policy *p,
			    const struct policy_ask *ask)
{
	static const char *const does[] = {
		"its Authorization is dropped and a bearer token set",
		"its Authorization is dropped and user and password set",
		"its header of that name is dropped and ours set",
		"the placeholder is replaced where it stands",
	};
	bool any = false;
	for (size_t i = 0; i < p->credential_n; i++) {
		const struct policy_credential *c = &p->credential[i];
		if (!policy_credential_holds(c, ask))
			continue;
		any = true;
		buf_addf(out, "credential of line %u, ", c->line);
		show_source(out, c);
		buf_addf(out, ": %s\n", !ask->tls && !c->plaintext ?
			 "not without TLS, so the request is denied" :
			 does[c->scheme]);
	}
	if (!any)
		buf_add_str(out, "no credential is put in\n");
	if (policy_has_credential(p, ask->host, ask->port))
		buf_add_str(out, "Range and Accept-Encoding are dropped, and "
			    "the answer is searched for the credential\n");
}

int show_url(struct buf *out, const struct policy *p, const char *method,
	     const char *url, bool *allowed, struct err *e)
{
	struct policy_ask ask = { .method = bytes_str(method) };
	struct policy_answer a;
	struct bytes query;
	struct host h;
	if (split_url(url, &ask, &h, &query, e) < 0)
		return -1;
	policy_decide(p, &ask, &a);
	*allowed = a.allowed;
	for (size_t i = 0; a.allowed && i < p->credential_n; i++)
		if (policy_credential_holds(&p->credential[i], &ask) &&
		    !ask.tls && !p->credential[i].plaintext)
			*allowed = false;
	buf_addf(out, "%s: %s ", *allowed ? "allowed" : "denied", method);
	host_put(out, h.name, h.kind, ask.port);
	buf_addf(out, "%.*s%s%s\n", (int)ask.path.n, (const char *)ask.path.p,
		 *a.why ? ": " : "", a.why);
	if (a.rule) {
		buf_addf(out, "%s line %u: ", a.allowed ? "by" : "nearest is",
			 a.rule->line);
		show_rule_line(out, a.rule);
		buf_add_byte(out, '\n');
	}
	if (!a.allowed)
		return 0;
	if (a.rule->tls == POLICY_PASSTHROUGH)
		buf_add_str(out, "carried as it is, without a credential\n");
	else
		put_credentials(out, p, &ask);
	if (!a.rule->place.local)
		buf_add_str(out, "if its name resolves to an address of this "
			    "machine or a private network, it is refused\n");
	return 0;
}
