(() => {
  const live = data.live || {};
  if (live.opening) { /* the browser paints this page, and shows it until the report is made */
    setTimeout(() => location.replace(live.opening + location.hash), 20);
    return;
  }
  const table = () => $("results");
  const rows = () => table() ? [...table().tBodies[0].rows] : [];
  const notesOf = (row) => JSON.parse(row.dataset.notes);

  /* ---- what is chosen: kept in the address, so that a new list and the way back keep it ---- */
  const state = { ticked: new Set(), search: "", set: "", first: "", sort: null };
  function read() {
    const link = new URLSearchParams(location.hash.slice(1));
    state.ticked = new Set((link.get("ticked") || "").split(",").filter(Boolean));
    state.search = link.get("search") || "";
    state.set = link.get("data") || "";
    state.first = link.get("first") || "";
    const sort = /^(-?)(\d)$/.exec(link.get("sort") || "");
    state.sort = sort ? { at: Number(sort[2]), falling: sort[1] === "-" } : null;
  }
  function write() {
    const link = new URLSearchParams();
    if (state.ticked.size) link.set("ticked", [...state.ticked].join(","));
    if (state.search) link.set("search", state.search);
    if (state.set) link.set("data", state.set);
    if (state.first) link.set("first", state.first);
    if (state.sort) link.set("sort", (state.sort.falling ? "-" : "") + state.sort.at);
    const rest = link.toString();
    try { history.replaceState(null, "", location.pathname + (rest ? "#" + rest : "")); } catch { /* a link less */ }
  }

  /* ---- how long ago ---- */
  const STEPS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];
  function ago(made) {
    const seconds = (Date.now() - made) / 1000;
    for (const [unit, size] of STEPS) {
      const count = Math.floor(Math.abs(seconds) / size);
      if (count) return seconds < 0 ? `in ${many(count, unit)}` : `${many(count, unit)} ago`;
    }
    return "just now";
  }
  function clocks() {
    document.querySelectorAll("#results time").forEach((each) => {
      const made = Date.parse(each.dateTime);
      if (!Number.isNaN(made)) each.textContent = ago(made);
    });
  }

  /* ---- ticks, search, baseline ---- */
  function filter() {
    const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows()) {
      const parts = [...row.querySelectorAll(".name a, .label, .remark, .set, .measure")].map((each) => each.textContent);
      const text = [...parts, ...[...row.querySelectorAll("time")].map((each) => each.title)].join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || Boolean(state.set && row.dataset.set !== state.set);
      shown += !row.hidden;
    }
    if ($("none")) $("none").hidden = shown > 0;
  }
  function oldestFirst() {
    const made = (row) => Date.parse(row.dataset.made) || 0;
    return rows().filter((row) => state.ticked.has(row.dataset.id)).sort((one, other) => made(one) - made(other));
  }
  function selection() {
    const chosen = oldestFirst(), several = chosen.length > 1;
    if (!chosen.some((row) => row.dataset.id === state.first)) state.first = "";
    const select = $("baseline").querySelector("select");
    select.replaceChildren(...chosen.map((row, at) => h("option", { value: row.dataset.id, selected: row.dataset.id === state.first },
      row.dataset.name + (at ? "" : " (the oldest)"))));
    select.disabled = !several;
    $("baseline").hidden = !several;
    $("no-first").disabled = several;
    $("clear").hidden = !chosen.length;
    $("ticked").parentElement.classList.remove("lacking");
    $("ticked").parentElement.classList.toggle("some", chosen.length > 0);
    const names = chosen.map((row) => row.dataset.name).join(" · ");
    const hidden = chosen.filter((row) => row.hidden).length;
    const sets = new Set(chosen.map((row) => row.dataset.set)).size;
    $("ticked").textContent = !chosen.length
      ? "Select results to compare; the oldest is the baseline."
      : `${many(chosen.length, "result")} ticked: ${names}` + (hidden ? `. ${hidden} of them ${hidden === 1 ? "is" : "are"} not in the list below` : "")
        + (sets > 1 ? ". They have different data sets: only queries that they share are compared." : "");
    for (const row of rows()) row.querySelector("input[name=r]").checked = state.ticked.has(row.dataset.id);
  }
  function pickers() {
    const sets = new Map(rows().filter((row) => row.dataset.set).map((row) => [row.dataset.set, row.dataset.setName]));
    if (!sets.has(state.set)) state.set = "";
    if (sets.size < 2) { $("pickers").replaceChildren(); return; }
    const select = h("select", { id: "pick-set", on: { change: () => { state.set = select.value; change(); } } },
      h("option", { value: "" }, "all"),
      [...sets].map(([key, name]) => h("option", { value: key, selected: key === state.set }, `${name} · ${key.split(" ").pop().slice(0, 8)}`)));
    $("pickers").replaceChildren(h("label", {}, "Data set", select));
  }
  function change() { filter(); selection(); write(); }

  function wire() {
    if (!table()) return;
    read();
    const known = new Set(rows().map((row) => row.dataset.id));
    state.ticked = new Set([...state.ticked].filter((id) => known.has(id)));
    $("search").value = state.search;
    if (state.sort && table().tHead.rows[0].cells[state.sort.at]) sortRows(table(), state.sort.at, state.sort.falling);
    pickers();
    clocks();
    change();
  }
  document.addEventListener("input", (event) => {
    if (event.target.id === "search") { state.search = event.target.value; change(); }
  });
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.name === "r") {
      if (box.checked) state.ticked.add(box.value); else state.ticked.delete(box.value);
      change();
    } else if (box.name === "first") {
      state.first = box.value;
      write();
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.id === "clear") { state.ticked.clear(); change(); }
    if (button.dataset.edit) edit(button.dataset.edit);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.getAttribute("method") !== "get" || state.ticked.size) return;
    event.preventDefault();
    $("ticked").parentElement.classList.add("lacking");
    $("ticked").textContent = "Nothing is ticked. Tick one result to open it, or several to see them side by side.";
    const first = rows().find((row) => !row.hidden);
    if (first) first.querySelector("input[name=r]").focus();
  });
  if (table()) table().addEventListener("sorted", sorted);
  function sorted() {
    const heads = [...table().tHead.rows[0].cells];
    const at = heads.findIndex((head) => head.hasAttribute("aria-sort"));
    state.sort = { at, falling: heads[at].getAttribute("aria-sort") === "descending" };
    write();
  }

  /* ---- tags and notes ---- */
  const box = $("notes");
  let open = null, before = null;
  function edit(id) {
    const row = rows().find((each) => each.dataset.id === id);
    if (!row) return;
    open = id;
    before = notesOf(row);
    $("notes-title").textContent = `Tags and notes of ${row.dataset.name}`;
    $("notes-tags").value = before.tags.join(", ");
    $("notes-note").value = before.note;
    complain("");
    box.showModal();
    $("notes-tags").focus();
  }
  function complain(what) {
    $("notes-alarm").hidden = !what;
    $("notes-alarm").textContent = what;
    $("notes-save").textContent = "Save";
  }
  async function save() {
    const notes = { tags: $("notes-tags").value.split(",").map((tag) => tag.trim()).filter(Boolean), note: $("notes-note").value };
    $("notes-save").disabled = true;
    try {
      const answer = await fetch("/api/notes", { method: "POST", headers: { "content-type": "application/json" },
        body: JSON.stringify({ result: open, notes, before }) });
      const said = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
      if (answer.ok) {
        box.close();
        await refresh();
        const button = document.querySelector(`[data-edit="${open}"]`);
        if (button) button.focus();
      } else if (answer.status === 409) {
        complain(`They were changed by another person meanwhile:\n${said.notes.tags.join(", ")}\n${said.notes.note}`.trim());
        before = said.notes;
        $("notes-save").textContent = "Replace theirs";
      } else {
        complain(`Not saved: ${[said.error, said.fix].filter(Boolean).join("; ")}.`);
      }
    } catch {
      complain("Not saved: is findwell view still running? What you wrote is still here.");
    } finally {
      $("notes-save").disabled = false;
    }
  }
  if (box) {
    $("notes-save").addEventListener("click", save);
    $("notes-cancel").addEventListener("click", () => box.close());
    box.addEventListener("submit", (event) => { event.preventDefault(); save(); });
  }

  /* ---- news: the list is replaced, and what was chosen in it stays ---- */
  let known = live.state;
  async function refresh() {
    const answer = await fetch("/");
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const list = fresh.getElementById("list"), focused = document.activeElement;
    const place = focused && focused.closest("tr[data-id]") ? [focused.closest("tr").dataset.id, focused.name || ""] : null;
    known = JSON.parse(fresh.getElementById("data").textContent).live.state;
    if (!table() || !list.querySelector("#results")) {
      $("list").replaceWith(document.adoptNode(list));
      location.reload();
      return;
    }
    table().tBodies[0].replaceWith(document.adoptNode(list.querySelector("#results tbody")));
    document.querySelector(".lede").textContent = list.querySelector(".lede").textContent;
    wire();
    if (place) {
      const row = rows().find((each) => each.dataset.id === place[0]);
      const again = row && row.querySelector(place[1] ? "input[name=r]" : "[data-edit], a");
      if (again) again.focus({ preventScroll: true });
    }
  }
  function watch() {
    if (document.hidden) return;
    fetch(live.news).then((answer) => answer.ok ? answer.json() : null)
      .then((news) => news && news.state !== known ? refresh() : null).catch(() => {});
  }
  wire();
  setInterval(watch, live.every);
  setInterval(clocks, 60000);
  window.addEventListener("hashchange", wire);
})();
