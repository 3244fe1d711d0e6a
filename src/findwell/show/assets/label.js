(() => {
  if (!data.labelling) return;
  const { annotator, scale, store } = data.labelling;
  const deciding = data.labelling.page === "adjudicate";
  const yesNo = scale.some((each) => each.key === "n");
  const RETRY = [2, 4, 8, 15, 30], PATIENCE = 20_000;
  const desk = $("items"), alarm = $("alarm");
  const kept = {
    read(name, otherwise) { try { return JSON.parse(localStorage.getItem(name)) ?? otherwise; } catch { return otherwise; } },
    write(name, value) {
      try { if (value === null) localStorage.removeItem(name); else localStorage.setItem(name, JSON.stringify(value)); } catch { /* not allowed here */ }
    },
    names(start) { try { return Object.keys(localStorage).filter((each) => each.startsWith(start)); } catch { return []; } },
  };
  const place = `findwell-label ${store} ${annotator} `;
  const set = (name, value) => kept.write(`findwell-label-${name}`, value);
  const options = {
    keys: kept.read("findwell-label-keys", true),
    quotes: false,  // it biases: asked for again each time
    list: kept.read("findwell-label-list", false) && !deciding,
  };
  let items = [], current = 0, progress = null, next = null, waiting = null, marking = false, busy = true, settled = 0;

  /* ---- talking to the server: nothing goes on before it has said that the label is on disk ---- */
  class Refusal extends Error {
    constructor(status, reply) { super(reply.error || "The server refused."); this.status = status; this.reply = reply; }
  }
  async function ask(path, body) {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), PATIENCE);
    try {
      const sent = body ? { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) } : {};
      const answer = await fetch(path, { ...sent, signal: stop.signal });
      const reply = await answer.json().catch(() => ({}));
      if (!answer.ok) throw new Refusal(answer.status, reply);
      return reply;
    } finally { clearTimeout(timer); }
  }
  const where = (path, more = {}) => `${path}?${new URLSearchParams({ annotator, quotes: options.quotes ? 1 : 0, ...more })}`;
  /* the server will never take it: asking again is of no use */
  const final = (error) => error instanceof Refusal && error.status < 500 && ![403, 408, 421, 429].includes(error.status);

  async function send(path, body, done) {
    if (waiting) return say("Wait: the last one is not saved yet.");
    waiting = { path, body, done, tries: 0, name: `${place}${Date.now()}-${Math.random()}` };
    kept.write(waiting.name, { path, body });
    await attempt();
  }
  async function attempt() {
    const mine = waiting;
    if (!mine || mine.flying) return;
    mine.flying = true;
    clearTimeout(mine.timer);
    desk.setAttribute("aria-busy", "true");
    try {
      const reply = await ask(mine.path, { ...mine.body, quotes: options.quotes });
      settle(mine);
      mine.done(reply);
    } catch (error) {
      mine.flying = false;
      if (final(error)) { settle(mine); refused(error, mine); return; }
      retry(mine, error);
    } finally { desk.removeAttribute("aria-busy"); }
  }
  function settle(mine) {
    kept.write(mine.name, null);
    clearTimeout(mine.timer);
    if (waiting === mine) waiting = null;
    alarm.hidden = true;
    alarm.replaceChildren();
  }
  function retry(mine, error) {
    const pause = RETRY[Math.min(mine.tries++, RETRY.length - 1)];
    const why = error instanceof Refusal
      ? error.status === 403
        ? "The server was started again: open the address that it printed in another tab of this browser, and come back."
        : `The server could not save it: ${error.message}`
      : "The server cannot be reached.";
    mine.timer = setTimeout(attempt, pause * 1000);
    const now = h("button", { type: "button", on: { click: attempt } }, "Try now");
    const drop = h("button", { type: "button", on: { click: () => { settle(mine); say("Dropped: nothing was saved."); draw(); } } }, "Drop it");
    warn([h("strong", {}, "Not saved yet. "), `${why} What you pressed (${described(mine.body)}) is kept; next try in ${pause} s. `, now, " ", drop]);
  }
  function refused(error, mine) {
    const reply = error.reply;
    if (error.status === 409 && reply.label) {
      const again = h("button", { type: "button", on: { click: () => { alarm.hidden = true; send(mine.path, { ...mine.body, overwrite: true }, mine.done); } } }, "Save mine instead");
      const theirs = h("button", { type: "button", on: { click: () => { alarm.hidden = true; load(); } } }, "Keep that one");
      warn([h("strong", {}, "Labelled meanwhile. "), `${deciding ? "In another window this passage was decided as" : "In another window you labelled this passage"} ${described(reply.label)}. `, again, " ", theirs]);
    } else warn([h("strong", {}, "Not saved. "), error.message, reply.fix ? ` ${reply.fix}` : ""]);
  }
  function warn(parts) { alarm.replaceChildren(...parts); alarm.hidden = false; }
  const gradeName = (grade) => { const found = scale.find((each) => each.grade === grade); return found ? `${found.key} ${found.name}` : String(grade); };
  function described(label) {
    const state = label.action || label.state;
    if (["skip", "skipped"].includes(state)) return "skip";
    if (state === "unsure") return "unsure";
    if (state === "undo") return "undo";
    return gradeName(label.grade);
  }
  let saying = null;
  function say(text) { clearTimeout(saying); $("said").textContent = text; saying = setTimeout(() => { $("said").textContent = ""; }, 3000); }

  /* ---- what is shown ---- */
  async function load(query) {
    busy = true;
    try {
      if (deciding) {
        const reply = await ask(where("/api/disagreements"));
        arrive(reply.pairs, reply);
      } else if (options.list) {
        const reply = await ask(where("/api/list", query === undefined ? {} : { query }));
        arrive(reply.pairs, reply);
      } else {
        const reply = await ask(where("/api/pair"));
        arrive(reply.pair ? [reply.pair] : [], reply);
      }
    } catch (error) {
      const again = h("button", { type: "button", on: { click: () => { alarm.hidden = true; load(query); } } }, "Try again");
      warn([h("strong", {}, "Nothing could be loaded. "), error instanceof Refusal ? error.message : "The server cannot be reached.", " ", again]);
    }
  }
  function arrive(pairs, reply) {
    items = pairs.map(item);
    progress = reply.progress;
    next = reply.next || null;
    current = Math.max(0, deciding ? 0 : items.findIndex((each) => !each.pair.label));
    busy = false;
    draw(true);
  }
  function item(pair) {
    const label = pair.label || {};
    const draft = kept.read(draftName(pair), {});
    const passage = new Passage(h("div", { class: "text", lang: "" }), pair.text);
    passage.mark = draft.mark || (Number.isInteger(label.start) ? [label.start, label.end] : null);
    passage.quote = pair.quote || null;
    return { pair, passage, note: draft.note ?? label.note ?? "", noting: false };
  }
  const draftName = (pair) => `findwell-draft ${store} ${annotator} ${JSON.stringify([pair.query, pair.doc])}`;
  function keepDraft(each) { kept.write(draftName(each.pair), { note: each.note, mark: each.passage.mark }); }

  function draw(moved = false) {
    marking = false;
    drawProgress();
    const one = items[current];
    $("question").textContent = one ? one.pair.question : "";
    $("ask").hidden = !one;
    document.title = `${one ? one.pair.question : "Done"} · findwell labels serve`;
    const shown = deciding ? items.slice(current, current + 1).map((each) => drawItem(each, current)) : items.map(drawItem);
    desk.replaceChildren(...(shown.length ? shown : [drawEnd()]));
    if (options.list && items.length) desk.append(drawListEnd());
    for (const each of items) each.passage.show();
    if (moved) focusCurrent();
  }
  const card = (at) => desk.querySelectorAll("article")[deciding ? 0 : at];
  function focusCurrent() {
    const article = desk.querySelector("[aria-current]") || desk.firstElementChild;
    const busyElsewhere = document.activeElement && document.activeElement.closest(".side-panel");
    if (!article || busyElsewhere) return;
    article.focus({ preventScroll: true });
    if (options.list && current > 0) article.scrollIntoView({ block: "nearest" });
    else if (scrollY > 0) scrollTo(0, 0);
  }
  function drawProgress() {
    if (!progress) return;
    $("bar").max = Math.max(1, progress.total);
    $("bar").value = progress.done;
    const parts = [`${progress.done.toLocaleString("en")} of ${progress.total.toLocaleString("en")} ${deciding ? "settled" : "done"}`];
    if (progress.skipped) parts.push(`${progress.skipped} skipped`);
    if (progress.unsure) parts.push(`${progress.unsure} unsure`);
    if (progress.seconds_left !== null && progress.done < progress.total) parts.push(`about ${duration(progress.seconds_left)} left`);
    $("counts").textContent = parts.join(" · ");
    const open = $("disagreements");
    if (open) open.textContent = progress.disagreements ? String(progress.disagreements) : "";
  }
  const duration = (seconds) => seconds < 90 ? `${Math.max(1, Math.round(seconds))} s`
    : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;

  function key(name) { return options.keys ? h("kbd", { "aria-hidden": "true" }, name) : null; }
  function drawItem(each, at) {
    const { pair, passage } = each;
    const active = at === current;
    const title = deciding ? `Disagreement ${at + 1} of ${items.length}` : options.list ? `Passage ${at + 1} of ${items.length}` : "Passage";
    const shown = h("article", { class: `passage-card${active ? " active" : ""}`, tabindex: -1, "aria-current": active ? "true" : null, "aria-label": title },
      h("header", {},
        h("h3", {}, title),
        h("span", { class: "doc" }, pair.name),
        pair.label ? h("span", { class: "tag good" }, `yours: ${described(pair.label)}`) : null),
      deciding ? drawOpinions(pair) : null,
      passage.node,
      drawMarks(each, at), drawNote(each, at), drawButtons(each, at));
    passage.node.addEventListener("pointerup", (event) => { if (event.pointerType === "mouse") take(each, at); });
    if (options.list && !active) shown.addEventListener("click", (event) => { if (!event.target.closest("button, textarea") && !each.passage.selected()) go(at); });
    return shown;
  }
  function drawOpinions(pair) {
    return h("ul", { class: "opinions" }, pair.labels.map((each) => h("li", {},
      h("strong", {}, each.annotator), ` ${described(each)}`,
      each.quoted ? h("span", { class: "marked" }, `marked: “${each.quoted}”`) : null,
      each.note ? h("span", { class: "marked" }, `note: ${each.note}`) : null)));
  }
  function drawMarks(each, at) {
    const { mark } = each.passage;
    const clear = h("button", { type: "button", class: "more", on: { click: () => { each.passage.mark = null; keepDraft(each); draw(); say("Mark removed."); } } }, "Remove the mark");
    return h("div", { class: "marks" },
      mark ? [h("span", { class: "note" }, `${many(mark[1] - mark[0], "character")} marked as the answer. `), clear] : null,
      h("button", { type: "button", class: "take", hidden: true, on: { pointerdown: (event) => event.preventDefault(), click: () => take(each, at) } }, "Mark the selection"));
  }
  function drawNote(each, at) {
    if (!each.noting && !each.note) return null;
    const field = h("textarea", { rows: 2, maxlength: 2000, "aria-label": "Note", placeholder: "Why? Esc goes back to the passage; the note is saved with the label." });
    field.value = each.note;
    field.addEventListener("input", () => { each.note = field.value; keepDraft(each); });
    field.addEventListener("focus", () => { if (current !== at) { current = at; mark(); } });
    return h("div", { class: "noting" }, field);
  }
  /* the current passage, without drawing all of them again */
  function mark() {
    if (deciding) return;
    [...desk.querySelectorAll("article")].forEach((node, at) => {
      node.classList.toggle("active", at === current);
      if (at === current) node.setAttribute("aria-current", "true"); else node.removeAttribute("aria-current");
    });
  }
  function drawButtons(each, at) {
    const label = each.pair.label;
    const grades = scale.map(({ grade, key: name, name: word, about }) => h("button", {
      type: "button", class: "grade", title: about, "aria-pressed": String(Boolean(label && label.state === "labelled" && label.grade === grade)),
      on: { click: () => { current = at; label_(each, grade); } },
    }, key(name), h("span", {}, options.keys && !yesNo ? word : `${yesNo ? "" : `${name} `}${word}`)));
    const small = (name, word, act, title) => h("button", { type: "button", title, on: { click: () => { current = at; act(); } } }, key(name), word);
    return h("div", { class: "answer" },
      h("div", { class: "grades", role: "group", "aria-label": "How relevant is the passage?" }, grades),
      h("div", { class: "others" },
        deciding ? null : small("i", "Unsure", () => put("unsure"), "Not sure: kept apart, counted, to be decided later"),
        small("s", "Skip", () => put("skip"), deciding ? "Look at the next one" : "Leave it to others"),
        small("u", "Undo", undo, "Take the last label back"),
        small(yesNo ? "N" : "n", "Note", () => note(), "Write a note, saved with the label"),
        deciding ? null : small("m", "Mark", () => startMarking(), "Mark the words that answer the question: with the mouse, or with keys")));
  }
  function drawEnd() {
    const left = progress ? progress.total - progress.done : 0;
    const about = deciding ? ["No disagreements are left", "Where annotators differ, the pair appears here for someone to decide."]
      : left ? ["Others look at the rest just now", "What they do not label comes back to you."]
        : [progress && progress.total ? "All passages are labelled" : "There is nothing to label", "What was skipped is left to others; undo takes the last label back."];
    const again = left && !deciding ? h("p", {}, h("button", { type: "button", class: "primary", on: { click: () => load() } }, "Look again")) : null;
    return h("div", { class: "card end", tabindex: -1 }, h("h2", {}, about[0]), h("p", { class: "note" }, about[1]), again,
      progress && progress.disagreements && !deciding ? h("p", {}, h("a", { href: where("/adjudicate") }, `${many(progress.disagreements, "disagreement")} to settle`)) : null,
      deciding ? null : h("p", {}, h("button", { type: "button", on: { click: undo } }, key("u"), "Undo")),
      h("p", {}, h("a", { href: "/overview" }, "Overview: agreement, and what to do with the labels")));
  }
  function drawListEnd() {
    const left = items.filter((each) => !each.pair.label).length;
    return h("div", { class: "list-end" },
      h("p", { class: "note" }, left ? `${many(left, "passage")} of this question left` : "All passages of this question are labelled."),
      h("button", { type: "button", class: left ? "" : "primary", on: { click: () => load(next ? next.query : undefined) } }, key("Enter"), "Next question"));
  }

  /* ---- what keys and buttons do ---- */
  function go(at) {
    if (at < 0 || at >= items.length || at === current) return;
    current = at;
    mark();
    focusCurrent();
  }
  function label_(each, grade) { current = items.indexOf(each); put("set", grade); }
  function put(action, grade = null) {
    const each = items[current];
    if (!each || busy) return;
    const { pair, passage } = each;
    if (deciding && action === "skip") { step(); return; }
    const [start, end] = passage.mark || [null, null];
    const body = { annotator, action, query: pair.query, doc: pair.doc, grade, note: each.note || null, start, end, seen: pair.label || null };
    send(deciding ? "/api/adjudicate" : "/api/label", body, (reply) => saved(each, reply));
  }
  function step() {
    if (items.length < 2) { say("This is the only one left."); return; }
    current = (current + 1) % items.length;
    draw(true);
  }
  function saved(each, reply) {
    kept.write(draftName(each.pair), null);
    progress = reply.progress;
    next = reply.next || null;
    const what = described(reply.saved);
    if (deciding) { settled++; arrive(reply.pairs, reply); } else if (options.list) {
      each.pair.label = reply.saved;
      const rest = [...items.keys()].map((at) => (current + 1 + at) % items.length);
      const to = rest.find((at) => !items[at].pair.label);
      if (to !== undefined) current = to;
      draw(true);
      if (to === undefined) desk.querySelector(".list-end button").focus();
    } else arrive(reply.next ? [reply.next] : [], reply);
    say(`Saved: ${what}.`);
  }
  function undo() {
    if (waiting) { const mine = waiting; settle(mine); say("Dropped: it was not saved yet."); draw(true); return; }
    if (deciding && !settled) { say("There is nothing to undo on this page."); return; }
    send("/api/undo", { annotator, action: "undo" }, (reply) => {
      if (!reply.undone) { say("There is nothing to undo."); return; }
      if (deciding) settled--;
      if (deciding || options.list) load(reply.undone.query); else arrive([reply.undone], reply);
      say("Undone.");
    });
  }
  function note() {
    const each = items[current];
    if (!each) return;
    each.noting = true;
    draw();
    card(current).querySelector("textarea").focus();
  }
  function take(each, at) {
    const found = each.passage.selected() || (held.at === at && Date.now() - held.time < 3000 ? held.found : null);
    if (!found) return;
    held = {};
    current = at;
    each.passage.mark = found;
    getSelection().removeAllRanges();
    keepDraft(each);
    draw();
    say(`Marked: ${shorten(each.passage.cut(...found))}`);
  }
  const shorten = (text) => text.length > 120 ? `${text.slice(0, 60)} … ${text.slice(-50)}` : text;
  function startMarking() {
    const each = items[current];
    if (!each) return;
    if (each.passage.selected() || (held.at === current && touch())) { take(each, current); return; }
    if (touch()) { say("Select the words in the passage, then press Mark."); return; }
    marking = true;
    each.passage.begin();
    $("marking").hidden = false;
    card(current).focus({ preventScroll: true });
    say(`Marking: ${shorten(each.passage.cut(...each.passage.draft))}`);
  }
  function markingKey(event) {
    const each = items[current];
    if (event.key.startsWith("Arrow")) {
      each.passage.move(event.key, event.shiftKey);
      say(shorten(each.passage.cut(...each.passage.draft)));
    } else if (event.key === "Enter" || event.key === "Escape") {
      marking = false;
      $("marking").hidden = true;
      each.passage.finish(event.key === "Enter");
      keepDraft(each);
      draw();
      card(current).focus({ preventScroll: true });
      say(event.key === "Enter" ? "Marked." : "Nothing changed.");
    } else return;
    event.preventDefault();
  }

  const touch = () => matchMedia("(pointer: coarse)").matches;
  let held = {};  // a tap on a button may end the selection before the button hears of it
  document.addEventListener("selectionchange", () => {
    const each = items[current];
    for (const button of desk.querySelectorAll(".take")) button.hidden = true;
    const at = items.findIndex((one) => one.passage.selected());
    if (at >= 0) held = { at, found: items[at].passage.selected(), time: Date.now() };
    if (each && at >= 0 && touch()) card(at).querySelector(".take").hidden = false;
  });
  document.addEventListener("keydown", (event) => {
    const writing = event.target.closest("textarea, select, input:not([type=checkbox])");
    if (event.key === "Escape" && writing && writing.closest(".noting")) { focusCurrent(); draw(); focusCurrent(); return; }
    if (writing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (marking) { markingKey(event); return; }
    if (!options.keys || event.repeat) return;
    if (event.target.closest("button, a, summary") && ["Enter", " "].includes(event.key)) return;
    const digit = !event.shiftKey && /^Digit(\d)$/.exec(event.code);  // where digits are written with Shift
    const pressed = digit ? digit[1] : event.key;
    const known = scale.find((each) => each.key === pressed || String(each.grade) === pressed);
    const acts = {
      u: undo, s: () => put("skip"), i: deciding ? null : () => put("unsure"), N: note, n: yesNo ? null : note,
      m: deciding ? null : startMarking, l: deciding ? null : () => view(!options.list), g: () => $("guidelines-edit").focus(), "?": () => { $("keys").open = true; $("keys").querySelector("summary").focus(); },
      j: () => options.list ? go(current + 1) : deciding ? step() : null, k: () => options.list ? go(current - 1) : null,
      ArrowDown: options.list ? () => go(current + 1) : null, ArrowUp: options.list ? () => go(current - 1) : null,
      Enter: options.list ? () => load(next ? next.query : undefined) : null,
    };
    const act = known ? () => label_(items[current], known.grade) : acts[event.key];
    if (!act || (known && !items.length)) return;
    event.preventDefault();
    act();
  });

  /* ---- settings ---- */
  function view(list) {
    options.list = list;
    set("list", list);
    for (const button of document.querySelectorAll("[data-view]")) button.setAttribute("aria-pressed", String((button.dataset.view === "list") === list));
    load(items[current] ? items[current].pair.query : undefined);
  }
  for (const button of document.querySelectorAll("[data-view]")) {
    button.setAttribute("aria-pressed", String((button.dataset.view === "list") === options.list));
    button.addEventListener("click", () => view(button.dataset.view === "list"));
  }
  $("use-keys").checked = options.keys;
  $("use-keys").addEventListener("change", (event) => { options.keys = event.target.checked; set("keys", options.keys); draw(); });
  const quotes = $("show-quotes");
  if (quotes) {
    quotes.checked = false;  // some browsers keep what was checked
    quotes.addEventListener("change", () => { options.quotes = quotes.checked; load(items[current] ? items[current].pair.query : undefined); });
  }

  /* ---- guidelines ---- */
  {
    const field = $("guidelines-field"), text = $("guidelines-text"), edit = $("guidelines-edit"), form = $("guidelines-form"), reply = $("guidelines-said");
    let known = data.labelling.guidelines;
    const show = () => { text.textContent = known || "None yet: write down what counts as relevant, so that all annotators mean the same."; form.hidden = true; text.hidden = edit.hidden = false; };
    edit.addEventListener("click", () => { field.value = known; form.hidden = false; text.hidden = edit.hidden = true; reply.textContent = ""; field.focus(); });
    $("guidelines-cancel").addEventListener("click", () => { show(); edit.focus(); });
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      try {
        const answer = await ask("/api/guidelines", { annotator, text: field.value, before: known });
        known = answer.text;
        show();
        reply.textContent = "Saved.";
        edit.focus();
      } catch (error) {
        if (error instanceof Refusal && error.status === 409) {
          known = error.reply.text;
          reply.textContent = `Someone else has changed them meanwhile. Theirs: ${known} — save again to replace that by what you wrote.`;
        } else reply.textContent = `Not saved: ${error instanceof Refusal ? error.message : "the server cannot be reached"}. What you wrote is still here.`;
      }
    });
    show();
  }
  if (matchMedia("(max-width: 900px)").matches) for (const each of document.querySelectorAll(".side-panel > details")) each.open = false;

  /* ---- what was not saved when the page was left goes first ---- */
  async function start() {
    for (const name of kept.names(place)) {
      const left = kept.read(name, null);
      if (!left) { kept.write(name, null); continue; }
      await new Promise((resolve) => {
        waiting = { ...left, name, tries: 0, done: () => { say(`Saved what was left: ${described(left.body)}.`); resolve(); } };
        attempt().then(() => { if (!waiting) resolve(); });
      });
    }
    await load();
  }
  window.addEventListener("beforeunload", (event) => { if (waiting) event.preventDefault(); });
  window.addEventListener("online", () => attempt());
  start();
})();
