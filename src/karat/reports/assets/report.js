(() => {
  const live = data.live || null;
  const PAGE = 50, TOP = 5;
  const number = (value) => value === null || value === undefined ? "–" : value.toFixed(4);
  const signed = (value) => value === null ? "–" : Math.abs(value) < 5e-5 ? "0" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(4);
  window.addEventListener("beforeprint", () => document.querySelectorAll(".passage").forEach((each) => each.classList.add("whole")));

  if (live) {
    watch();
  }
  if (!data.systems) return;

  /* ---- one of several charts at a time ---- */
  document.querySelectorAll(".one-of").forEach((group) => {
    const select = group.querySelector("select");
    const show = () => group.querySelectorAll("figure").forEach((figure) => { figure.hidden = figure.id !== select.value; });
    select.addEventListener("change", show);
    show();
  });

  /* ---- the queries ---- */
  const systems = data.systems;
  const lower = data.query.map((id, at) => `${id}\n${data.question ? data.question[at] : ""}`.toLowerCase());
  const start = () => ({
    m: data.lead, a: 0, b: systems.length > 1 ? 1 : -1, f: null, s: "", by: null, down: false,
    shown: PAGE, open: null, slices: data.facets.map(() => -1),
  });
  let state = start();

  const value = (system, at) => system < 0 ? null : data.values[system][state.m][at];
  const higher = () => data.measures[state.m].higher;
  const difference = (at) => {
    const one = value(state.a, at), other = value(state.b, at);
    return one === null || other === null ? null : other - one;
  };
  const gain = (at) => { const each = difference(at); return each === null ? null : higher() ? each : -each; };
  const FILTERS = {
    zero: { label: () => `${data.measures[state.m].name} is 0`, test: (at) => value(state.a, at) === 0 || value(state.b, at) === 0 },
    worse: { two: true, label: () => `worse with ${systems[state.b]}`, test: (at) => gain(at) < -5e-5 },
    better: { two: true, label: () => `better with ${systems[state.b]}`, test: (at) => gain(at) > 5e-5 },
    none: { label: () => "no value", test: (at) => value(state.a, at) === null || (state.b >= 0 && value(state.b, at) === null) },
    all: { label: () => "all", test: () => true },
  };

  function inSlices(at) {
    return data.facets.every((facet, number) => state.slices[number] < 0 || facet.codes[at] === state.slices[number]);
  }
  function matching() {
    const words = state.s.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [];
    for (let at = 0; at < data.query.length; at++) {
      if (inSlices(at) && words.every((word) => lower[at].includes(word))) found.push(at);
    }
    return found;
  }
  function ordered(rows) {
    const by = state.by || { worse: "d", better: "d" }[state.f] || "v";
    const down = state.by ? state.down : state.f === "better" ? higher() : !higher();
    const key = {
      q: (at) => data.query[at],
      v: (at) => {
        const both = [value(state.a, at), value(state.b, at)].filter((each) => each !== null);
        return both.length ? (higher() ? Math.min(...both) : Math.max(...both)) : null;
      },
      a: (at) => value(state.a, at), b: (at) => value(state.b, at), d: difference,
    }[by];
    const keyed = rows.map((at) => [key(at), difference(at), at]);
    keyed.sort((one, other) => {
      if (one[0] === null || other[0] === null) return compare(one[0], other[0]) || one[2] - other[2];
      return (down ? -1 : 1) * compare(one[0], other[0]) || compare(one[1], other[1]) || one[2] - other[2];
    });
    return keyed.map((each) => each[2]);
  }

  function meter(system, at) {
    const each = value(system, at);
    const part = each === null || !data.measures[state.m].unit ? 0 : Math.max(0, Math.min(1, each));
    const bar = h("svg", { width: 52, height: 6, "aria-hidden": "true" },
      h("rect", { width: 52, height: 6, rx: 3 }),
      h("rect", { width: 52 * part, height: 6, rx: 3, class: `c${system % 8}` }));
    return h("span", { class: "meter" }, bar, h("span", {}, number(each)));
  }

  function chips(rows) {
    const counted = Object.entries(FILTERS).filter(([, filter]) => !filter.two || state.b >= 0)
      .map(([name, filter]) => [name, filter, rows.filter(filter.test).length]);
    if (!state.f) state.f = (counted.find(([name, , count]) => count && name !== "none") || ["all"])[0];
    $("chips").replaceChildren(...counted.map(([name, filter, count]) =>
      h("button", { type: "button", "aria-pressed": String(state.f === name), "data-filter": name,
        on: { click: () => change({ f: name, by: null, shown: PAGE }) } }, `${filter.label()} (${count.toLocaleString("en")})`)));
  }

  function head() {
    const sorts = (key, text, left) => h("th", { scope: "col", class: left ? "left" : null,
      "aria-sort": state.by === key ? (state.down ? "descending" : "ascending") : null },
      h("button", { type: "button", "data-sort": key, on: { click: () => change({ by: key, down: state.by === key && !state.down }) } }, text));
    const cells = [sorts("q", "Query", true), sorts("a", systems[state.a])];
    if (state.b >= 0) cells.push(sorts("b", systems[state.b]), sorts("d", "Difference"));
    return h("tr", {}, cells);
  }

  function row(at) {
    const id = data.query[at], open = state.open === id;
    const ask = data.question && data.question[at];
    const label = h("span", {}, h("span", { class: "ask" }, ask || id), ask ? h("span", { class: "id" }, id) : null);
    const cells = [
      h("td", { class: "q" }, h("button", { type: "button", "aria-expanded": String(open), "data-query": id,
        on: { click: () => { change({ open: open ? null : id }); focusOn(id); } } }, label)),
      h("td", {}, meter(state.a, at)),
    ];
    if (state.b >= 0) {
      const each = difference(at), good = gain(at);
      cells.push(h("td", {}, meter(state.b, at)),
        h("td", { class: good > 5e-5 ? "up" : good < -5e-5 ? "down" : null }, signed(each)));
    }
    const line = h("tr", { class: open ? "open" : null }, cells);
    if (!open) return [line];
    const place = h("td", { colspan: cells.length }, h("p", { class: "empty", role: "status" }, "Loading…"));
    load(at).then((details) => place.replaceChildren(...detail(at, details)),
      () => place.replaceChildren(h("p", { class: "empty" }, "This query could not be loaded: is karat view still running?")));
    return [line, h("tr", { class: "detail" }, place)];
  }
  function focusOn(id) {
    const found = [...document.querySelectorAll("[data-query]")].find((each) => each.dataset.query === id);
    if (found) found.focus({ preventScroll: true });
  }

  function render() {
    const within = matching();
    chips(within);
    const rows = ordered(within.filter(FILTERS[state.f].test));
    let shown = rows.slice(0, state.shown);
    const opened = state.open === null ? -1 : data.query.indexOf(state.open);
    if (opened >= 0 && !shown.includes(opened)) shown = [opened, ...shown];
    $("query-head").replaceChildren(head());
    $("query-rows").replaceChildren(...shown.flatMap(row));
    $("query-count").textContent = rows.length ? `${many(rows.length, "query").replace("querys", "queries")}` : "";
    $("query-empty").hidden = rows.length > 0;
    const left = rows.length - state.shown;
    $("query-more").hidden = left <= 0;
    $("query-more").textContent = `Show ${Math.min(PAGE, left)} more of ${left.toLocaleString("en")}`;
    write();
  }
  function change(news) { Object.assign(state, news); controls(); render(); }

  /* ---- one query ---- */
  function load(at) {
    const kept = data.cases[at];
    if (kept) return Promise.resolve({ ...kept, texts: data.texts });
    if (!live) return Promise.resolve(null);
    return fetch(`${live.case}&query=${at}`).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    });
  }
  const MARKS = {
    hit: ["✓ hit", "good"], again: ["✓ again", "good"], repeated: ["= repeated", ""],
    rejected: ["✗ not relevant", "bad"], unjudged: ["? not judged", ""], miss: ["· no match", ""],
  };
  function detail(at, details) {
    const sides = [state.a, state.b].filter((each) => each >= 0);
    const parts = [values(at, sides)];
    if (!details) {
      parts.push(h("p", { class: "note" }, "This file holds the failures first, as many as fit. To open this query too, run ",
        h("code", {}, "karat view"), " on the folder of the result."));
      return parts;
    }
    const facts = Object.entries(details.about);
    if (facts.length) parts.unshift(h("dl", { class: "facts" }, facts.map(([name, each]) => h("div", {}, h("dt", {}, name), h("dd", {}, each)))));
    parts.push(h("div", { class: "sides" }, sides.map((each) => side(each, details))));
    return parts;
  }
  function values(at, sides) {
    const heads = ["Measure", ...sides.map((each) => systems[each]), ...(sides.length > 1 ? ["Difference"] : [])];
    const rows = data.measures.map((measure, number_) => {
      const each = sides.map((system) => data.values[system][number_][at]);
      const moved = each.length > 1 && each[0] !== null && each[1] !== null ? each[1] - each[0] : null;
      return h("tr", {}, h("th", { scope: "row", class: "left" }, measure.name), each.map((one) => h("td", {}, number(one))),
        sides.length > 1 ? h("td", {}, signed(moved)) : null);
    });
    return h("details", {}, h("summary", {}, "All measures of this query"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measures of this query" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((text, place) => h("th", { scope: "col", class: place ? null : "left" }, text)))), h("tbody", {}, rows))));
  }
  function side(system, details) {
    const mine = details.systems[system];
    const title = h("h3", { class: `s${system % 8}` }, systems[system]);
    if (!mine) return h("div", { class: "side" }, title, h("p", { class: "empty" }, "The lists of this system are not held here."));
    const listed = mine.list.map((chunk) => ranked(chunk, details.texts));
    const rest = listed.slice(TOP);
    rest.forEach((each) => { each.hidden = true; });
    const all = rest.length ? h("button", { type: "button", class: "more", on: { click: () => {
      rest.forEach((each) => { each.hidden = false; });
      all.remove();
    } } }, `Show ranks ${TOP + 1} to ${listed.length}`) : null;
    const more = mine.depth - mine.list.length;
    return h("div", { class: "side" }, title,
      mine.gold.map(goldOf),
      h("h4", {}, `What was retrieved (${!mine.depth ? "nothing" : mine.list.length < mine.depth ? `first ${mine.list.length} of ${mine.depth}` : many(mine.depth, "result")})`),
      listed.length ? [h("ol", { class: "ranking" }, listed), all] : h("p", { class: "empty" }, "Nothing was retrieved."),
      more > 0 ? h("p", { class: "note" }, `and ${more.toLocaleString("en")} more`) : null,
      (mine.verdicts || []).map(verdict),
      h("h4", {}, "How the numbers come about"), h("ul", { class: "steps" }, mine.steps.map((step) => h("li", {}, step))));
  }
  function goldOf(gold) {
    const seen = [gold.relation === "ids" ? "" : gold.relation, gold.counts].filter(Boolean).join(", ");
    const title = `The gold${seen ? ` (${seen})` : ""}: ${gold.met} of ${gold.relevant} met`;
    const items = gold.items.map((item) => h("li", {},
      item.rank === null ? h("span", { class: "tag bad" }, "✗ missed") : h("span", { class: "tag good" }, `✓ at rank ${item.rank}`),
      h("span", {}, h("strong", {}, `${item.number}. `), item.docs.join("  or  "), h("span", { class: "tag" }, `  grade ${item.grade}`),
        (item.texts || []).map((each) => h("span", { class: "about" }, each)))));
    const hidden = gold.relevant - gold.items.length;
    return [h("h4", {}, title),
      items.length ? h("ul", { class: "gold" }, items) : h("p", { class: "empty" }, "Nothing relevant is known for this query."),
      hidden > 0 ? h("p", { class: "note" }, `and ${hidden} more`) : null];
  }
  // JSON has no word for a score that is infinite or not a number: such a score comes as a text
  const shortScore = (score) => typeof score === "number" ? Number(score.toPrecision(5)) : score;
  function ranked(chunk, texts) {
    const [label, kind] = MARKS[chunk.mark] || ["", ""];
    const covers = Object.entries(chunk.covers).map(([relation, items]) =>
      h("span", { class: "tag" }, `${relation === "ids" ? "" : relation + ": "}item ${items.join(", ")}`));
    const body = [];
    if (chunk.text !== undefined) body.push(...passage(chunk, typeof chunk.text === "number" ? texts[chunk.text] : chunk.text));
    body.push(...(chunk.verdicts || []).map(verdict));
    return h("li", { class: `chunk ${chunk.mark}` }, h("span", { class: "rank" }, String(chunk.rank)),
      h("div", { class: "head" }, chunk.doc ? h("span", { class: "doc" }, chunk.doc) : null, h("span", { class: `tag ${kind}` }, label), covers,
        chunk.grade !== undefined ? h("span", { class: "tag" }, `grade ${chunk.grade}`) : null,
        chunk.score !== undefined ? h("span", { class: "tag" }, `score ${shortScore(chunk.score)}`) : null),
      body.length ? h("div", { class: "body" }, body) : null);
  }
  function verdict(each) {
    const said = each.value === null ? "failed" : each.aspect === "relevance" || each.value > 1 ? `grade ${each.value}` : each.value ? "yes" : "no";
    return h("p", { class: "verdict" }, h("strong", {}, `judge · ${each.aspect}: ${said}`), each.item ? ` · ${each.item}` : "",
      each.reason ? ` — ${each.reason}` : "", each.unproven ? h("span", { class: "tag bad" }, " quote not in the text") : "");
  }
  function passage(chunk, text) {
    const pieces = [];
    let at = 0;
    for (const [from, to] of chunk.matched || []) {
      pieces.push(text.slice(at, from), h("mark", {}, text.slice(from, to)));
      at = to;
    }
    pieces.push(text.slice(at));
    const whole = Boolean(chunk.matched);
    const node = h("p", { class: `passage${whole ? " whole" : ""}`, dir: "auto" }, chunk.cut && chunk.cut[0] ? "… " : "", pieces, chunk.cut ? " …" : "");
    const parts = [node];
    if (!whole && text.length > 180) {
      const more = h("button", { type: "button", class: "more", "aria-expanded": "false", on: { click: () => {
        const open = node.classList.toggle("whole");
        more.textContent = open ? "Less" : "More";
        more.setAttribute("aria-expanded", String(open));
      } } }, "More");
      parts.push(more);
    }
    if (chunk.cut) parts.push(h("p", { class: "note" }, `${text.length.toLocaleString("en")} of ${chunk.cut[1].toLocaleString("en")} characters shown`));
    return parts;
  }

  /* ---- controls, and the state as a link ---- */
  function choice(label, id, options, chosen, act) {
    const select = h("select", { id, on: { change: () => act(Number(select.value)) } },
      options.map(([each, text]) => h("option", { value: each, selected: each === chosen }, text)));
    return h("label", {}, label, select);
  }
  function controls() {
    const numbered = (names) => names.map((name, at) => [at, name]);
    const parts = [choice("Measure", "pick-measure", numbered(data.measures.map((each) => each.name)), state.m, (m) => change({ m, f: null, by: null }))];
    if (systems.length > 1) {
      parts.push(choice("System", "pick-a", numbered(systems), state.a, (a) => change({ a })),
        choice("Compared with", "pick-b", [[-1, "nothing"], ...numbered(systems)], state.b, (b) => change({ b, f: null, by: null })));
    }
    data.facets.forEach((facet, at) => parts.push(choice(facet.name, `slice-${at}`, [[-1, "all"], ...numbered(facet.labels)], state.slices[at], (code) => {
      const slices = [...state.slices];
      slices[at] = code;
      change({ slices, shown: PAGE });
    })));
    const focused = document.activeElement && document.activeElement.id;
    $("pickers").replaceChildren(...parts);
    if (focused && $("pickers").querySelector("#" + CSS.escape(focused))) $(focused).focus();
    if ($("search").value !== state.s) $("search").value = state.s;
  }
  const search = $("search");
  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.s = search.value; state.shown = PAGE; render(); }, data.query.length > 5000 ? 150 : 0);
  });
  $("query-more").addEventListener("click", () => change({ shown: state.shown + PAGE }));

  function write() {
    const link = new URLSearchParams();
    const plain = start();
    if (state.open !== null) link.set("query", state.open);
    if (state.m !== plain.m) link.set("measure", data.measures[state.m].name);
    if (state.a !== plain.a) link.set("a", systems[state.a]);
    if (state.b !== plain.b) link.set("b", state.b < 0 ? "" : systems[state.b]);
    if (state.f) link.set("show", state.f);
    if (state.s) link.set("search", state.s);
    if (state.by) link.set("sort", (state.down ? "-" : "") + state.by);
    data.facets.forEach((facet, at) => { if (state.slices[at] >= 0) link.set("in " + facet.name, facet.labels[state.slices[at]]); });
    const hash = "#" + link.toString();
    if (touched && hash !== location.hash) {
      try { history.replaceState(null, "", hash); } catch { /* a link less */ }
    }
  }
  function read() {
    if (!location.hash.includes("=")) return false;
    const link = new URLSearchParams(location.hash.slice(1));
    state = start();
    const find = (names, wanted, otherwise) => { const at = names.indexOf(wanted); return at < 0 ? otherwise : at; };
    if (link.has("measure")) state.m = find(data.measures.map((each) => each.name), link.get("measure"), state.m);
    if (link.has("a")) state.a = find(systems, link.get("a"), state.a);
    if (link.has("b")) state.b = link.get("b") === "" ? -1 : find(systems, link.get("b"), state.b);
    const show = link.get("show") || "";
    if (Object.hasOwn(FILTERS, show) && !(FILTERS[show].two && state.b < 0)) state.f = show;
    state.s = link.get("search") || "";
    const sort = /^(-?)([qabd])$/.exec(link.get("sort") || "");
    if (sort) Object.assign(state, { by: sort[2], down: sort[1] === "-" });
    state.open = data.query.includes(link.get("query")) ? link.get("query") : null;
    data.facets.forEach((facet, at) => { state.slices[at] = find(facet.labels, link.get("in " + facet.name), -1); });
    return true;
  }
  let touched = false;
  const linked = read();
  controls();
  render();
  touched = true;
  if (linked) $("queries").scrollIntoView();
  window.addEventListener("hashchange", () => { if (read()) { controls(); render(); $("queries").scrollIntoView(); } });

  /* ---- news from the folder that is watched ---- */
  function watch() {
    let known = live.state;
    const ask = () => {
      if (document.hidden) return;
      fetch(live.news).then((answer) => answer.ok ? answer.json() : null).then((news) => {
        if (!news || news.state === known) return;
        known = news.state;
        const mine = live.shown || [];
        const stale = !mine.length || mine.some(([id, stamp]) => news.results[id] !== stamp);
        if (stale) location.reload();
        else $("news").hidden = false;
      }, () => {});
    };
    setInterval(ask, live.every);
  }
})();
