"use strict";
/* Draws the record.  Everything in it is hostile: it becomes text nodes,
   never markup or an attribute, and nothing is fetched. */
(function () {
  var lines = document.getElementById("record").textContent.split("\n");
  var run = lines[1], parts = [], view = document.getElementById("view");
  for (var i = 2; i < lines.length; i++)
    if (lines[i].length > 65)
      parts.push(JSON.parse(lines[i].slice(65)));

  /* What cannot be seen, or moves what is seen, is spelled out. */
  var hidden = new RegExp("[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f" +
    "\\u061c\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff]", "g");
  function visible(text) {
    return String(text).replace(hidden, function (c) {
      return "\\u{" + c.charCodeAt(0).toString(16).toUpperCase() + "}";
    });
  }
  function make(tag, text, cls) {
    var el = document.createElement(tag);
    if (text !== undefined && text !== null) el.textContent = visible(text);
    if (cls) el.className = cls;
    return el;
  }
  function add(to) {
    for (var i = 1; i < arguments.length; i++)
      if (arguments[i]) to.appendChild(arguments[i]);
    return to;
  }
  function plain(v) {
    return typeof v === "string" ? v : JSON.stringify(v, null, 2);
  }
  function of(kind) {
    return parts.filter(function (p) { return p.kind === kind; });
  }
  /* A class is one of ours, whatever a part says. */
  var words = ["allowed", "denied", "failed", "notice", "added", "changed",
    "removed", "mode", "wrote", "sent", "job", "tool", "session"];
  function pill(word) {
    return make("span", word, "pill" + (words.indexOf(word) >= 0 ? " " + word
      : word === "not sent" ? " denied" : ""));
  }
  function bytes(n) {
    var u = ["B", "KiB", "MiB", "GiB", "TiB"], i = 0;
    if (typeof n !== "number") return "";
    while (n >= 1024 && i < 4) { n /= 1024; i++; }
    return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + u[i];
  }
  function span(ms) {
    if (typeof ms !== "number") return "";
    var s = Math.round(ms / 1000);
    return ms < 1000 ? ms + " ms" : s < 120 ? (ms / 1000).toFixed(1) + " s"
      : s < 7200 ? Math.floor(s / 60) + " min " + s % 60 + " s"
      : Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  }
  var t0 = parts.length ? parts[0].at_ms : 0;
  function when(p) {
    var d = Math.max(0, p.at_ms - t0), s = Math.floor(d / 1000);
    return make("span", Math.floor(s / 60) + ":" +
      String(s % 60).padStart(2, "0") + "." +
      String(d % 1000).padStart(3, "0"), "when");
  }
  function table(data) {
    var t = make("table"), b = add(t, make("tbody")).firstChild;
    Object.keys(data).forEach(function (k) {
      add(b, add(make("tr"), make("td", k), make("td", plain(data[k]))));
    });
    return t;
  }
  /* A row that opens: its insides are made when it does. */
  function fold(p, badge, target, inside) {
    var d = make("details"), done = false;
    add(d, add(make("summary", null, p ? "" : "two"), p && when(p), badge,
      target));
    d.addEventListener("toggle", function () {
      if (!done && d.open) add(d, inside());
      done = done || d.open;
    });
    return d;
  }
  /* So many at once; the rest when it is asked for. */
  var PAGE = 1000;
  function list(to, rows, from) {
    var end = Math.min(rows.length, from + PAGE);
    for (var i = from; i < end; i++) add(to, rows[i]());
    if (end === rows.length) return;
    var b = make("button", "show more: " + (rows.length - end) + " are left",
      "more");
    b.addEventListener("click", function () {
      to.removeChild(b);
      list(to, rows, end);
    });
    add(to, b);
  }

  /* --- what it comes to --- */

  var first = of("run")[0], last = of("end")[0], egress = of("egress");
  var files = of("file"), sent = of("session"), notices = of("notice");
  var ends = {}, lines_of = {};
  egress.forEach(function (p) {
    if (p.data.decision === "end" || p.data.decision === "failed")
      ends[p.data.n] = p.data;
  });
  var asked = egress.filter(function (p) {
    return p.data.decision !== "end" &&
      !(p.data.decision === "failed" && lines_of[p.data.n]) &&
      (lines_of[p.data.n] = true);
  });
  function decided(word) {
    return asked.filter(function (p) { return p.data.decision === word; });
  }
  function edits(diff) {
    var n = { plus: 0, minus: 0 };
    (diff || "").split("\n").forEach(function (l) {
      if (l[0] === "+") n.plus++;
      if (l[0] === "-") n.minus++;
    });
    return n;
  }
  var all = files.reduce(function (n, p) {
    var e = edits(p.data.diff);
    return { plus: n.plus + e.plus, minus: n.minus + e.minus };
  }, { plus: 0, minus: 0 });
  function signs(n) {
    return n.plus + n.minus === 0 ? null : add(make("span", null, "count"),
      make("span", "+" + n.plus, "plus"), make("span", " "),
      make("span", "\u2212" + n.minus, "minus"));
  }

  /* --- the top --- */

  var argv = first && Array.isArray(first.data.argv) ? first.data.argv : [];
  var head = make("header"), over = make("div", null, "over");
  var code = last ? last.data.exit : undefined;
  add(over, make("span", last ? (code === 0 ? "exit 0" : "exit " + code +
    (last.data.reason && last.data.reason !== "exited" ? ", " +
      last.data.reason : "")) : "cut off: its end is not here",
    "pill " + (code === 0 ? "good" : "bad")));
  add(over, make("span", run, "mono"));
  if (first) add(over, make("span", new Date(first.at_ms).toLocaleString()));
  add(head, over, make("h1", argv.join(" ") || "Record of " + run));
  var cards = make("div", null, "cards");
  function stat(id, value, what, cls) {
    var s = make(id ? "a" : "div", null, "stat");
    if (id) s.href = "#" + id;
    add(cards, add(s, typeof value === "object" ? value
      : make("b", value, cls), make("span", what)));
  }
  if (last) stat("run", span(last.data.wall_ms), "took");
  stat("egress", String(decided("allowed").length), "requests allowed");
  stat("egress", String(decided("denied").length), "denied",
    decided("denied").length ? "alarm" : "");
  stat("files", String(files.length), "files changed, +" + all.plus + " \u2212"
    + all.minus);
  stat("session", String(sent.filter(function (p) {
    return p.data.change === "wrote";
  }).length), "written to the session");
  if (last && last.data.peak_bytes)
    stat("run", bytes(last.data.peak_bytes), "memory at most");
  add(view, add(head, cards));

  var nav = make("nav"), sections = [];
  nav.setAttribute("aria-label", "parts of the record");
  add(view, nav);
  function section(id, title, count) {
    var s = make("section"), a = make("a", title), h = make("div", null,
      "head"), box = make("div", null, "box");
    s.id = id;
    a.href = "#" + id;
    if (count !== undefined) add(a, make("i", String(count)));
    add(nav, a);
    add(view, add(s, add(h, make("h2", title)), box));
    sections.push({ el: s, link: a });
    return { head: h, box: box };
  }
  function nothing(box, text) { add(box, make("div", text, "none")); }
  function toggle(to, title, on, change) {
    var b = make("button", title);
    b.type = "button";
    b.setAttribute("aria-pressed", on ? "true" : "false");
    b.addEventListener("click", function () { change(b); });
    add(to, b);
    return b;
  }

  /* --- rows --- */

  function text_row(p) {
    var by = p.data.stream;
    return add(make("div", null, "row" + (by === "stderr" ? " stderr" :
      by === "stdout" ? " stdout" : "")), when(p), make("span", by, "what"),
      make("div", String(p.data.text).replace(/\n$/, ""), "text"));
  }
  function tool_row(p) {
    var t = make("span", p.data.title || p.data.name || p.data.request || "",
      "target");
    if (p.data.status) add(t, make("span", p.data.status, "why"));
    return fold(p, pill("tool"), t, function () { return table(p.data); });
  }
  function egress_row(p) {
    var d = p.data, e = ends[d.n] || {};
    var place = (d.host || "") + (d.port && d.port !== 443 ? ":" + d.port
      : "") + (d.path || "");
    var t = make("span", (d.method ? d.method + " " : "") + place, "target");
    var how = [e.status || d.status, e.down ? bytes(e.down) : "",
      e.ms ? span(e.ms) : "", d.decision === "allowed" ? e.reason
        : d.reason].filter(Boolean).join(", ");
    if (how) add(t, make("span", how, "why"));
    return fold(p, pill(d.decision || ""), t, function () {
      return table(Object.assign({}, e, d));
    });
  }
  function session_row(p) {
    var d = p.data, t = make("span", d.name || d.path || "", "target");
    var how = [bytes(d.bytes), d.state, d.reason, d.seq ? "item " + d.seq
      : ""].filter(Boolean).join(", ");
    if (how) add(t, make("span", how, "why"));
    return fold(p, pill(d.change || ""), t, function () { return table(d); });
  }
  function notice_row(p) {
    return add(make("div", null, "row notice"), when(p),
      make("span", "notice", "what"), make("div", p.data.text ||
        plain(p.data)));
  }
  function diff(text) {
    var pre = make("pre", null, "diff");
    text.replace(/\n$/, "").split("\n").forEach(function (l) {
      add(pre, make("span", l, l[0] === "+" ? "add" : l[0] === "-" ? "del"
        : l[0] === "@" ? "at" : ""));
    });
    return pre;
  }
  function file_row(p) {
    var d = p.data, t = make("span", d.path || "", "target");
    add(t, signs(edits(d.diff)));
    var how = [d.type === "link" ? "\u2192 " + d.to : d.diff ? "" :
      d.type === "file" ? bytes(d.bytes) : d.type, d.mode ? "mode " + d.mode
      : "", d.applied === "yes" ? "taken back" : d.applied
    ].filter(Boolean).join(", ");
    if (how) add(t, make("span", how, "why"));
    return fold(null, pill(d.change || ""), t, function () {
      var rest = Object.assign({}, d);
      ["diff", "change", "path", "type"].forEach(function (k) {
        delete rest[k];
      });
      return add(make("div"), d.diff ? diff(d.diff) : null, table(rest));
    });
  }

  /* --- what happened, in its order --- */

  var kinds = [["text", "output", text_row], ["tool", "tools", tool_row],
    ["egress", "network", egress_row], ["session", "session", session_row],
    ["notice", "notices", notice_row]];
  var on = {}, maker = {};
  var story = parts.filter(function (p) {
    return kinds.some(function (k) { return k[0] === p.kind; }) &&
      (p.kind !== "egress" || asked.indexOf(p) >= 0);
  });
  var s = section("timeline", "Timeline", story.length);
  function tell() {
    s.box.textContent = "";
    var rows = story.filter(function (p) { return on[p.kind]; });
    if (!rows.length) nothing(s.box, "nothing");
    list(s.box, rows.map(function (p) {
      return function () { return maker[p.kind](p); };
    }), 0);
  }
  var timeline = s;
  kinds.forEach(function (k) {
    maker[k[0]] = k[2];
    on[k[0]] = true;
    if (story.some(function (p) { return p.kind === k[0]; }))
      toggle(timeline.head, k[1], true, function (b) {
        on[k[0]] = !on[k[0]];
        b.setAttribute("aria-pressed", on[k[0]] ? "true" : "false");
        s = timeline;
        tell();
      });
  });
  tell();

  /* --- the way out --- */

  var net = section("egress", "Egress", asked.length), find = make("input");
  var count = make("span", "", "dim"), pick = "all", picks = [];
  find.type = "search";
  find.placeholder = "filter";
  find.setAttribute("aria-label", "filter the decisions");
  function filter() {
    var q = find.value.toLowerCase();
    var rows = asked.filter(function (p) {
      return (pick === "all" || p.data.decision === pick) &&
        plain(p.data).toLowerCase().indexOf(q) >= 0;
    });
    net.box.textContent = "";
    if (!rows.length) nothing(net.box, asked.length ? "none of these"
      : "nothing was asked for");
    list(net.box, rows.map(function (p) {
      return function () { return egress_row(p); };
    }), 0);
    count.textContent = rows.length + " of " + asked.length;
  }
  ["all", "allowed", "denied"].forEach(function (w) {
    picks.push(toggle(net.head, w, w === "all", function (b) {
      pick = w;
      picks.forEach(function (o) {
        o.setAttribute("aria-pressed", o === b ? "true" : "false");
      });
      filter();
    }));
  });
  add(net.head, find, count);
  find.addEventListener("input", filter);
  filter();

  /* --- what it changed --- */

  var f = section("files", "Files", files.length);
  add(f.head, signs(all));
  if (!files.length) nothing(f.box, "nothing that it may write in changed");
  list(f.box, files.map(function (p) {
    return function () { return file_row(p); };
  }), 0);
  if (files.length && files.length <= 8)
    f.box.querySelectorAll("details").forEach(function (d, i) {
      d.open = !!files[i].data.diff;
    });
  var w = section("session", "Session", sent.length);
  if (!sent.length) nothing(w.box, "nothing was written to a session");
  list(w.box, sent.map(function (p) {
    return function () { return session_row(p); };
  }), 0);

  /* --- what it was --- */

  if (first) {
    var pol = section("policy", "Policy");
    add(pol.box, add(make("div", null, "pad"), make("pre",
      String(first.data.policy || "").trim())));
    var info = Object.assign({}, first.data), lim = info.limits || {};
    delete info.policy;
    delete info.argv;
    delete info.limits;
    info.limits = [lim.memory_bytes ? "memory " + bytes(lim.memory_bytes) : "",
      lim.disk_bytes ? "disk " + bytes(lim.disk_bytes) : "", lim.processes
        ? lim.processes + " processes" : "", lim.time_ms ? span(lim.time_ms)
        : "no time limit"].filter(Boolean).join(", ");
    var about = section("run", "Run");
    add(about.box, add(make("div", null, "pad"), table(Object.assign({
      command: argv.length === 1 ? argv[0] : argv,
      began: new Date(first.at_ms).toISOString()
    }, info, last ? last.data : {}))));
  }

  var foot = make("footer"), keys = make("p", null, "keys");
  [["/", "filter"], ["j", "next"], ["k", "previous"], ["e", "open all"],
    ["1-" + sections.length, "sections"]].forEach(function (k) {
    add(keys, make("kbd", k[0]), make("span", " " + k[1] + "  "));
  });
  add(view, add(foot, make("p", "Drawn from the file itself, by its own " +
    "script; nothing is loaded. That nobody changed it is not for a page to " +
    "say:"), make("pre", "airlox-box verify airlox-" + run +
    ".html --key FINGERPRINT"), keys));

  /* --- keys --- */

  function move(by) {
    var rows = Array.prototype.filter.call(
      document.querySelectorAll("summary"), function (x) {
        return x.getClientRects().length;
      });
    var at = rows.indexOf(document.activeElement) + by;
    if (rows[at]) rows[at].focus();
    else if (rows.length && by > 0) rows[0].focus();
  }
  function open_all() {
    var all = document.querySelectorAll(".box>details");
    var some = Array.prototype.some.call(all, function (d) {
      return !d.open;
    });
    all.forEach(function (d) { d.open = some; });
  }
  document.addEventListener("keydown", function (ev) {
    if (ev.ctrlKey || ev.metaKey || ev.altKey) return;
    if (document.activeElement === find) {
      if (ev.key === "Escape") find.blur();
      return;
    }
    if (ev.key === "/") find.focus();
    else if (ev.key === "j") move(1);
    else if (ev.key === "k") move(-1);
    else if (ev.key === "e") open_all();
    else if (ev.key >= "1" && ev.key <= String(sections.length))
      sections[+ev.key - 1].el.scrollIntoView();
    else return;
    ev.preventDefault();
  });
  function here() {
    var at = sections[0];
    sections.forEach(function (x) {
      if (x.el.getBoundingClientRect().top < 120) at = x;
    });
    sections.forEach(function (x) {
      x.link.className = x === at ? "here" : "";
    });
  }
  window.addEventListener("scroll", here, { passive: true });
  here();
})();
