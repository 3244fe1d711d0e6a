(() => {
  const live = data.live || null;
  const PAGE = 50;
  window.addEventListener("beforeprint", () => document.querySelectorAll(".passage").forEach((each) => each.classList.add("whole")));

  if (live) {
    watch();
  }
  if (!data.systems) return;

  /* ---- charts of one group: one at a time, each with a tab ---- */
  document.querySelectorAll(".tabs").forEach((group) => {
    const figures = [...group.querySelectorAll("figure[data-tab]")];
    if (figures.length < 2) return;
    const tabs = figures.map((figure) => h("button", { type: "button", on: { click: () => show(figure) } }, figure.dataset.tab));
    const show = (chosen) => figures.forEach((figure, at) => {
      figure.hidden = figure !== chosen;
      tabs[at].setAttribute("aria-pressed", String(figure === chosen));
    });
    group.prepend(h("div", { class: "chips", role: "group", "aria-label": "Which chart" }, tabs));
    show(figures[0]);
  });

  /* ---- the queries ---- */
  const systems = data.systems;
  const lower = data.query.map((id, at) => `${id}\n${data.question ? data.question[at] : ""}`.toLowerCase());
  const start = () => ({
    m: data.lead, a: 0, b: data.other, f: null, s: "", by: null, down: false,
    cause: -1, of: 0, shown: PAGE, open: null, slices: data.facets.map(() => -1),
  });
  let state = start();

  const value = (system, at) => system < 0 ? null : data.values[system][state.m][at];
  const higher = () => data.measures[state.m].higher;
  const difference = (at) => {
    const one = value(state.a, at), other = value(state.b, at);
    return one === null || other === null ? null : other - one;
  };
  const gain = (at) => { const each = difference(at); return each === null ? null : higher() ? each : -each; };
  const both = (test) => (at) => test(value(state.a, at)) || (state.b >= 0 && test(value(state.b, at)));
  const FILTERS = {
    worse: { two: true, label: () => `worse with ${systems[state.b]}`, test: (at) => gain(at) !== null && gain(at) < -5e-5 },
    zero: { label: () => `${data.measures[state.m].name} is 0`, test: both((each) => each === 0) },
    between: { one: true, label: () => "between 0 and 1", test: (at) => value(state.a, at) > 0 && value(state.a, at) < 1 },
    one: { one: true, label: () => `${data.measures[state.m].name} is 1`, test: (at) => value(state.a, at) === 1 },
    better: { two: true, label: () => `better with ${systems[state.b]}`, test: (at) => gain(at) > 5e-5 },
    tied: { two: true, label: () => "tied", test: (at) => gain(at) !== null && Math.abs(gain(at)) <= 5e-5 },
    missed: { quiet: true, label: () => `${systems[state.of]}: ${data.causes[state.cause]}`, test: (at) => Boolean(data.missed[state.of] && data.missed[state.of][at] & (1 << state.cause)) },
    disagree: { quiet: !data.disagree, label: () => "judge against gold", test: (at) => disagree.has(at) },
    none: { label: () => "no value", test: both((each) => each === null) },
    all: { label: () => "all", test: () => true },
  };
  const FIRST = ["worse", "zero", "better", "all"];  // the first of these that has queries is shown
  const disagree = new Set(data.disagree || []);
  const offered = (name) => {
    const { two, one, quiet } = FILTERS[name];
    return name === state.f || (!quiet && (!two || state.b >= 0) && (!one || state.b < 0));
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
    const counted = Object.entries(FILTERS).filter(([name]) => offered(name))
      .map(([name, filter]) => [name, filter, rows.filter(filter.test).length])
      .filter(([name, , count]) => count || FIRST.includes(name) || name === state.f);
    if (!state.f) state.f = (counted.find(([name, , count]) => count && FIRST.includes(name)) || ["all"])[0];
    $("chips").replaceChildren(...counted.map(([name, filter, count]) =>
      h("button", { type: "button", "aria-pressed": String(state.f === name), "data-filter": name,
        on: { click: () => change({ f: name, by: null, shown: PAGE }) } }, `${filter.label()} (${count.toLocaleString("en")})`)));
  }

  function head() {
    const sorts = (key, text, left) => h("th", { scope: "col", role: "columnheader", class: left ? "left" : null,
      "aria-sort": state.by === key ? (state.down ? "descending" : "ascending") : null },
      h("button", { type: "button", "data-sort": key, on: { click: () => change({ by: key, down: state.by === key && !state.down }) } }, text));
    const cells = [sorts("q", "Query", true), sorts("a", systems[state.a])];
    if (state.b >= 0) cells.push(sorts("b", systems[state.b]), sorts("d", "Difference"));
    return h("tr", { role: "row" }, cells);
  }

  function row(at) {
    const id = data.query[at], open = state.open === id;
    const asked = data.question && data.question[at], ask = asked && (asked.trim() || "(blank question)");
    const values = openable && !openable.has(at) && !live;
    const label = h("span", {}, h("span", { class: "ask" }, ask || id), ask ? h("span", { class: "id" }, id) : null,
      values ? h("span", { class: "id" }, "values only; findwell view opens the lists") : null);
    const cells = [
      h("td", { class: "q", role: "cell" }, h("button", { type: "button", class: values ? "values" : null, "aria-expanded": String(open), "data-query": id,
        on: { click: () => { change({ open: open ? null : id }); focusOn(id); } } }, label)),
      h("td", { role: "cell", "data-label": systems[state.a] }, meter(state.a, at)),
    ];
    if (state.b >= 0) {
      const each = difference(at), good = gain(at);
      cells.push(h("td", { role: "cell", "data-label": systems[state.b] }, meter(state.b, at)),
        h("td", { role: "cell", "data-label": "Difference", class: good > 5e-5 ? "up" : good < -5e-5 ? "down" : null }, signed(each)));
    }
    const line = h("tr", { role: "row", class: open ? "open" : null }, cells);
    if (!open) return [line];
    const place = h("td", { role: "cell", colspan: cells.length }, h("p", { class: "empty", role: "status" }, "Loading…"));
    const sides = [state.a, state.b].filter((each) => each >= 0);
    load(at).then((details) => place.replaceChildren(...queryDetail(at, details, sides).filter(Boolean)),
      () => place.replaceChildren(h("p", { class: "empty" }, live ? "This query could not be loaded: is findwell view still running?" : "This browser cannot unpack the queries of this file: a newer one can, and so does findwell view.")));
    return [line, h("tr", { class: "detail", role: "row" }, place)];
  }
  const buttonOf = (id) => [...document.querySelectorAll("[data-query]")].find((each) => each.dataset.query === id);
  function focusOn(id) {
    const found = buttonOf(id);
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
  }
  function draw() { controls(); render(); }
  function change(news, how) { Object.assign(state, news); draw(); write(how); }

  /* ---- one query ---- */
  const openable = data.openable ? new Set(data.openable) : null;
  let unpacked = null;
  async function unpack() {
    const bytes = Uint8Array.from(atob(data.packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const cases = new Map(), texts = [];
    for (const line of (await new Response(stream).text()).split("\n").filter(Boolean)) {
      const read = JSON.parse(line);
      cases.set(read.at, read.case);
      for (const text of read.texts) texts.push(text);
    }
    return { cases, texts };
  }
  async function load(at) {
    if (!live) {
      if (openable && !openable.has(at)) return null;
      unpacked = unpacked || unpack();
      const { cases, texts } = await unpacked;
      return { ...cases.get(at), texts };
    }
    return fetch(`${live.case}&query=${at}`).then((answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return answer.json();
    });
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
    waiting = setTimeout(() => { state.s = search.value; state.shown = PAGE; render(); write("typed"); }, data.query.length > 5000 ? 150 : 0);
  });
  $("query-more").addEventListener("click", () => change({ shown: state.shown + PAGE }));

  function link() {
    const hash = new URLSearchParams();
    const plain = start();
    if (state.open !== null) hash.set("query", state.open);
    if (state.m !== plain.m) hash.set("measure", data.measures[state.m].name);
    if (state.a !== plain.a) hash.set("a", systems[state.a]);
    if (state.b !== plain.b) hash.set("b", state.b < 0 ? "" : systems[state.b]);
    if (state.f) hash.set("show", state.f);
    if (state.f === "missed") { hash.set("cause", data.causes[state.cause]); hash.set("of", systems[state.of]); }
    if (state.s) hash.set("search", state.s);
    if (state.by) hash.set("sort", (state.down ? "-" : "") + state.by);
    data.facets.forEach((facet, at) => { if (state.slices[at] >= 0) hash.set("in " + facet.name, facet.labels[state.slices[at]]); });
    return "#" + hash.toString();
  }
  /* Each change is a step of the history; the letters of one search are one step together. */
  function write(how) {
    const hash = link();
    if (hash === location.hash) return;
    const known = history.state || {};
    const same = how === "instead" || (how === "typed" && known.typed);
    try {
      if (!same) history.replaceState({ ...known, y: window.scrollY }, "");
      history[same ? "replaceState" : "pushState"]({ typed: how === "typed" }, "", hash);
    } catch { /* a step less */ }
  }
  function read(hash) {
    const link = new URLSearchParams(hash.slice(1));
    state = start();
    const find = (names, wanted, otherwise) => { const at = names.indexOf(wanted); return at < 0 ? otherwise : at; };
    if (link.has("measure")) state.m = find(data.measures.map((each) => each.name), link.get("measure"), state.m);
    if (link.has("a")) state.a = find(systems, link.get("a"), state.a);
    if (link.has("b")) state.b = link.get("b") === "" ? -1 : find(systems, link.get("b"), state.b);
    const show = link.get("show") || "";
    state.cause = data.causes.indexOf(link.get("cause"));
    state.of = find(systems, link.get("of"), -1);
    const known = Object.hasOwn(FILTERS, show) && !(FILTERS[show].two && state.b < 0);
    if (known && (show !== "missed" || (state.cause >= 0 && state.of >= 0))) state.f = show;
    state.s = link.get("search") || "";
    const sort = /^(-?)([qabd])$/.exec(link.get("sort") || "");
    if (sort) Object.assign(state, { by: sort[2], down: sort[1] === "-" });
    state.open = data.query.includes(link.get("query")) ? link.get("query") : null;
    data.facets.forEach((facet, at) => { state.slices[at] = find(facet.labels, link.get("in " + facet.name), -1); });
  }
  const says = (hash) => hash.includes("=");
  function show() {
    const found = state.open === null ? null : buttonOf(state.open);
    (found ? found.closest("tr") : $("queries")).scrollIntoView({ behavior: "instant" });
    return found || document.querySelector("[data-query]");
  }
  if (says(location.hash)) read(location.hash);
  draw();
  if (says(location.hash)) show();
  window.addEventListener("popstate", () => {
    const known = history.state;
    if (says(location.hash)) read(location.hash);
    else if (known && known.at !== undefined) read(known.at);
    else if (location.hash) {  // a link to a section, followed just now: what is shown stays
      try { history.replaceState({ at: link() }, ""); } catch { /* a step less */ }
      return;
    } else state = start();
    draw();
    if (known && known.y !== undefined) window.scrollTo({ top: known.y, behavior: "instant" });
    else if (!known && says(location.hash)) {  // a link to some queries: keys go on there
      const first = show();
      if (first) first.focus({ preventScroll: true });
    }
  });

  /* ---- keys ---- */
  const help = $("keys");
  let single = true;
  try { single = localStorage.getItem("findwell-report-keys") !== "off"; } catch { /* not allowed here */ }
  $("use-keys").checked = single;
  $("use-keys").addEventListener("change", (event) => {
    single = event.target.checked;
    try { localStorage.setItem("findwell-report-keys", single ? "on" : "off"); } catch { /* not allowed here */ }
  });
  $("keys-open").addEventListener("click", () => help.showModal());
  $("keys-close").addEventListener("click", () => help.close());
  function walk(step) {
    const ids = () => [...document.querySelectorAll("[data-query]")].map((each) => each.dataset.query);
    const from = state.open !== null ? state.open : document.activeElement.dataset.query;
    const at = from === undefined ? (step > 0 ? 0 : -1) : ids().indexOf(from) + step;
    if (at >= ids().length && !$("query-more").hidden) change({ shown: state.shown + PAGE });
    const next = ids()[at];
    if (next === undefined) return;
    if (state.open !== null) change({ open: next }, "instead");  // going back leaves the queries
    focusOn(next);
    buttonOf(next).closest("tr").scrollIntoView({ block: state.open === null ? "nearest" : "start", behavior: "instant" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "Escape") {
      const id = state.open;
      if (event.target === search) search.blur();
      else if (id !== null) { change({ open: null }); focusOn(id); }
      return;
    }
    if (!single || event.target.closest("input, select, textarea")) return;
    const act = { j: () => walk(1), k: () => walk(-1), "/": () => search.focus(), "?": () => help.showModal() }[event.key];
    if (act) { event.preventDefault(); act(); }
  });

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
