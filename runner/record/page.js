"use strict";
/* Draws the record.  Everything in it is hostile: it becomes text nodes,
   never markup, and nothing is fetched. */
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
    for (var i = 1; i < arguments.length; i++) to.appendChild(arguments[i]);
    return to;
  }
  function plain(v) {
    return typeof v === "string" ? v : JSON.stringify(v, null, 2);
  }
  function of(kind) {
    return parts.filter(function (p) { return p.kind === kind; });
  }
  var t0 = parts.length ? parts[0].at_ms : 0;
  function when(p) {
    var d = p.at_ms - t0, s = Math.floor(d / 1000), ms = d - s * 1000;
    return "+" + Math.floor(s / 60) + ":" + String(s % 60).padStart(2, "0") +
      "." + String(ms).padStart(3, "0");
  }
  function table(data) {
    var t = make("table"), b = add(t, make("tbody")).firstChild;
    Object.keys(data).forEach(function (k) {
      add(b, add(make("tr"), make("td", k), make("td", plain(data[k]))));
    });
    return add(make("div", null, "wrap"), t);
  }
  function row(p, word, text, cls) {
    return add(make("div", null, "row"), make("span", when(p), "dim"),
               make("span", word, cls), make("span", text));
  }

  var nav = make("nav");
  nav.setAttribute("aria-label", "parts of the record");
  var first = of("run")[0], last = of("end")[0];
  add(view, make("h1", "Record of " + run), nav);
  add(view, make("p", "Drawn from the file itself. That nobody changed it is "
    + "not for a page to say: airlox-box verify FILE", "dim"));

  function section(id, title, count) {
    var s = make("section"), a = make("a", title + (count === undefined ? ""
      : " " + count));
    s.id = id;
    a.href = "#" + id;
    add(nav, a);
    add(s, make("h2", title));
    add(view, s);
    return s;
  }

  var s = section("run", "Run");
  if (first)
    add(s, make("p", new Date(first.at_ms).toISOString()), table(first.data));
  s = section("end", "End");
  add(s, last ? table(last.data)
    : make("p", "The run was cut off: its end is not in the record.",
           "denied"));
  of("notice").forEach(function (p) {
    add(s, row(p, "notice", p.data.text || plain(p.data), "denied"));
  });

  var said = parts.filter(function (p) {
    return p.kind === "text" || p.kind === "tool";
  });
  s = section("transcript", "Transcript", said.length);
  said.forEach(function (p) {
    if (p.kind === "text")
      add(s, row(p, p.data.stream, p.data.text, p.data.stream));
    else
      add(s, add(make("details"), make("summary", when(p) + "  tool  " +
        (p.data.title || p.data.name || "")), table(p.data)));
  });

  var egress = of("egress");
  s = section("egress", "Egress", egress.length);
  var bar = make("div", null, "bar"), pick = make("select"),
    find = make("input"), count = make("span", "", "dim");
  ["all", "allowed", "denied"].forEach(function (w) {
    add(pick, make("option", w));
  });
  pick.setAttribute("aria-label", "which decisions");
  find.type = "search";
  find.placeholder = "filter, key /";
  find.setAttribute("aria-label", "filter the decisions");
  add(s, add(bar, pick, find, count));
  var rows = egress.map(function (p) {
    var d = p.data, word = d.decision || "";
    var text = [d.method, (d.host || "") + (d.port ? ":" + d.port : "") +
      (d.path || ""), d.status, d.reason].filter(Boolean).join("  ");
    var el = add(make("details"), make("summary", when(p) + "  " + word +
      "  " + text, word), table(d));
    add(s, el);
    return { el: el, word: word, text: plain(d).toLowerCase() };
  });
  function filter() {
    var n = 0, q = find.value.toLowerCase();
    rows.forEach(function (r) {
      var on = (pick.value === "all" || pick.value === r.word) &&
        r.text.indexOf(q) >= 0;
      r.el.hidden = !on;
      n += on ? 1 : 0;
    });
    count.textContent = n + " of " + rows.length;
  }
  pick.addEventListener("change", filter);
  find.addEventListener("input", filter);
  document.addEventListener("keydown", function (ev) {
    if (ev.key === "/" && document.activeElement !== find) {
      ev.preventDefault();
      find.focus();
    }
  });
  filter();

  var files = of("file");
  s = section("files", "Files", files.length);
  files.forEach(function (p) {
    var d = add(make("details"), make("summary", (p.data.change || "") +
      "  " + (p.data.path || "")));
    var pre = make("pre");
    (p.data.diff || "").split("\n").forEach(function (l) {
      add(pre, make("span", l + "\n", l[0] === "+" ? "add"
        : l[0] === "-" ? "del" : ""));
    });
    var rest = Object.assign({}, p.data);
    delete rest.diff;
    add(s, add(d, table(rest), pre));
  });

  var sent = of("session");
  s = section("session", "Session", sent.length);
  sent.forEach(function (p) {
    add(s, row(p, p.data.change || "wrote", plain(p.data)));
  });
})();
