/* One query, opened: its gold under each system, the ranked chunks, what a judge said, the steps. */
const number = (value) => value === null || value === undefined ? "–" : value.toFixed(3);
const signed = (value) => value === null ? "–" : Math.abs(value) < 5e-5 ? "0.000" : (value < 0 ? "−" : "+") + Math.abs(value).toFixed(Math.abs(value) < 5e-4 ? 4 : 3);

const queryDetail = (() => {
  const TOP = 5;
  /* what a chunk is, in the words of who says so: the gold labels, or a judge */
  const MARKS = {
    gold: { hit: ["✓ gold: relevant", "good"], again: ["✓ gold: again", "good"], rejected: ["✗ gold: not relevant", "bad"], unjudged: ["? no label", ""], miss: ["· not in the gold", ""] },
    judge: { hit: ["✓ judge: relevant", "good"], again: ["✓ judge: again", "good"], rejected: ["✗ judge: not relevant", "bad"], unjudged: ["? not judged", ""], miss: ["✗ judge: not relevant", "bad"] },
  };
  const saidOf = (chunk) => chunk.said || [["gold", chunk.mark]];
  // a judge of claims or entities does not say whether a chunk is relevant, but whether it holds any
  const marksOf = (who) => Object.hasOwn(MARKS, who) ? MARKS[who] : { ...MARKS.judge, hit: [`✓ judge: ${who}`, "good"], again: [`✓ judge: ${who} again`, "good"], rejected: [`✗ judge: no ${who}`, "bad"], miss: [`✗ judge: no ${who}`, "bad"] };
  const marks = (chunk) => saidOf(chunk).map(([who, kind]) => kind === "repeated" ? ["= repeated", ""] : marksOf(who)[kind] || ["", ""]);
  // JSON has no word for a score that is infinite or not a number: such a score comes as a text
  const shortScore = (score) => typeof score === "number" ? Number(score.toPrecision(5)) : score;

  function detail(at, details, sides) {
    const parts = [values(at, sides)];
    if (!details) {
      parts.push(h("p", { class: "note" }, "This file holds the values of this query, and no more, so that it stays small: of ", many(data.openable.length, "query").replace("querys", "queries"),
        " it holds all. ", h("code", {}, "findwell view"), " on the folder of the result opens every one."));
      return parts;
    }
    const facts = Object.entries(details.about);
    if (facts.length) parts.unshift(h("dl", { class: "facts" }, facts.map(([name, each]) => h("div", {}, h("dt", {}, name), h("dd", {}, each)))));
    const golds = details.gold.map((gold) => goldTable(gold, sides)).filter(Boolean);
    const small = details.gold.length === 1 && details.gold[0].items.length <= 4;
    parts.push(h("div", { class: small ? "golds pinned" : "golds" }, golds));
    const judged = details.systems.some((mine) => mine.list.some((chunk) => chunk.verdicts));
    if (judged) parts.push(h("p", { class: "note legend" }, h("mark", {}, "Marked"), ": why a chunk counts. ", h("span", { class: "refused" }, "Grey"),
      ": a sentence that the judge rejected. Hover for the reason, or open the line of the judge below the chunk."));
    const columns = sides.map((each, place) => side(each, details, sides[1 - place], place));
    if (columns.length > 1) {  // on a phone one at a time
      const tabs = sides.map((each, place) => h("button", { type: "button", on: { click: () => pick(place) } }, data.systems[each]));
      const pick = (chosen) => columns.forEach((column, place) => {
        column.classList.toggle("picked", place === chosen);
        tabs[place].setAttribute("aria-pressed", String(place === chosen));
      });
      pick(1);
      parts.push(h("div", { class: "chips side-tabs", role: "group", "aria-label": "Which system" }, tabs));
    }
    parts.push(h("div", { class: "sides" }, columns));
    return parts;
  }

  function values(at, sides) {
    const heads = ["Measure", ...sides.map((each) => data.systems[each]), ...(sides.length > 1 ? ["Difference"] : [])];
    const rows = data.measures.map((measure, place) => {
      const each = sides.map((system) => data.values[system][place][at]);
      const moved = each.length > 1 && each[0] !== null && each[1] !== null ? each[1] - each[0] : null;
      return h("tr", {}, h("th", { scope: "row", class: "left" }, measure.name), each.map((one) => h("td", {}, number(one))),
        sides.length > 1 ? h("td", {}, signed(moved)) : null);
    });
    return h("details", {}, h("summary", {}, "All measures of this query"),
      h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Measures of this query" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((text, place) => h("th", { scope: "col", class: place ? null : "left" }, text)))), h("tbody", {}, rows))));
  }

  /* ---- the gold: one row per item, one column per system ---- */
  function goldTable(gold, sides) {
    const columns = sides.map((system) => [system, gold.systems.indexOf(system)]).filter(([, place]) => place >= 0);
    if (!columns.length) return null;
    const seen = gold.relation === "ids" ? "" : ` (${gold.relation})`;
    const met = gold.counted.map((each) => (each.counts ? `${each.counts}: ` : "") +
      columns.map(([system, place]) => `${data.systems[system]} found ${each.met[place]} of ${each.relevant}`).join(", ")).join("; ");
    const title = h("h3", { class: "gold-title" }, `The gold${seen}: `, h("span", { class: "met" }, met));
    if (!gold.items.length) return h("div", {}, title, h("p", { class: "empty" }, "Nothing relevant is known for this query."));
    const graded = gold.items.some((item) => item.grade !== 1);
    const heads = ["Item", ...(graded ? ["Grade"] : []), ...columns.map(([system]) => data.systems[system]), ...(columns.length > 1 ? ["Change"] : [])];
    const rows = gold.items.map((item) => {
      const ranks = columns.map(([, place]) => item.ranks[place]);
      return h("tr", { role: "row" },
        h("td", { role: "cell", class: "left item" }, h("strong", {}, `${item.number}. `), item.docs.join("  or  ") || "(no document supports it)",
          (item.texts || []).map((each) => h("span", { class: "about" }, each))),
        graded ? h("td", { role: "cell", "data-label": "Grade" }, String(item.grade)) : null,
        ranks.map((rank, place) => h("td", { role: "cell", "data-label": data.systems[columns[place][0]] }, atRank(rank, gold.cutoff))),
        columns.length > 1 ? h("td", { role: "cell", "data-label": "Change" }, change(ranks)) : null);
    });
    return h("div", {}, title,
      h("table", { class: "gold stacked", role: "table" }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, heads.map((text, place) => h("th", { scope: "col", role: "columnheader", class: place ? null : "left" }, text)))),
        h("tbody", { role: "rowgroup" }, rows)),
      gold.more > 0 ? h("p", { class: "note" }, `and ${gold.more} more`) : null);
  }
  function atRank(rank, cutoff) {
    if (rank === null) return h("span", { class: "tag bad" }, "✗ missed");
    const deep = cutoff !== null && rank > cutoff;
    return h("span", { class: deep ? "tag" : "tag good", title: deep ? `no measure here reads further than rank ${cutoff}` : null }, `${deep ? "" : "✓ "}rank ${rank}${deep ? `, below ${cutoff}` : ""}`);
  }
  function change([one, other]) {
    if (one === null && other === null) return "–";
    if (one === null) return h("span", { class: "tag good" }, "found");
    if (other === null) return h("span", { class: "tag bad" }, "lost");
    if (one === other) return "=";
    return h("span", { class: other < one ? "tag good" : "tag bad" }, `${other < one ? "↑" : "↓"} ${many(Math.abs(one - other), "rank")}`);
  }

  /* ---- the list of a system, and how it differs from the other one ---- */
  const keyOf = (chunk) => chunk.doc || chunk.text;
  function side(system, details, other, place) {
    const mine = details.systems[system];
    const title = h("h3", { class: `s${system % 8}` }, data.systems[system]);
    if (!mine) return h("div", { class: "side" }, title, h("p", { class: "empty" }, "The lists of this system are not held here."));
    const theirs = other === undefined ? null : details.systems[other];
    const places = new Map((theirs ? theirs.list : []).filter(keyOf).map((chunk) => [keyOf(chunk), chunk.rank]).reverse());
    const moved = (chunk) => !theirs || !keyOf(chunk) ? null : shared(chunk, places.get(keyOf(chunk)), system, other, place, theirs);
    const listed = mine.list.map((chunk) => ranked(chunk, details, moved(chunk), `chunk-${system}-${chunk.rank}`));
    if (mine.cutoff !== null && mine.list.length > mine.cutoff) {
      listed.splice(mine.cutoff, 0, h("li", { class: "cut-line" }, `below rank ${mine.cutoff}, where no measure reads`));
    }
    const rest = listed.slice(TOP);
    rest.forEach((each) => { each.hidden = true; });
    const all = rest.length ? h("button", { type: "button", class: "more all-ranks", on: { click: () => {
      rest.forEach((each) => { each.hidden = false; });
      all.remove();
    } } }, `Show ranks ${TOP + 1} to ${mine.list.length}${hitsBelow(mine)}`) : null;
    const more = mine.depth - mine.list.length;
    return h("div", { class: "side" }, title,
      h("h4", {}, `What was retrieved (${!mine.depth ? "nothing" : mine.list.length < mine.depth ? `first ${mine.list.length} of ${mine.depth}` : many(mine.depth, "result")})`),
      listed.length ? [h("ol", { class: "ranking" }, listed), all] : h("p", { class: "empty" }, "Nothing was retrieved."),
      more > 0 ? h("p", { class: "note" }, `and ${more.toLocaleString("en")} more`) : null,
      mine.verdicts.length ? h("ul", { class: "verdicts" }, mine.verdicts.map((each) => verdict(each, "", details))) : null,
      h("h4", {}, "How the numbers come about"), h("ul", { class: "steps" }, mine.steps.map((step) => h("li", {}, step))));
  }
  function hitsBelow(mine) {
    const ranks = mine.list.slice(TOP).filter((chunk) => chunk.mark === "hit").map((chunk) => chunk.rank);
    return ranks.length ? `: ${ranks.length === 1 ? "a hit" : "hits"} at ${ranks.slice(0, 5).join(", ")}${ranks.length > 5 ? ", …" : ""}` : "";
  }
  /* a chunk that both lists hold leads to its place in the other */
  function shared(chunk, rank, system, other, place, theirs) {
    const name = data.systems[other];
    if (rank === undefined) return theirs.list.length < theirs.depth ? { text: `not in the first ${theirs.list.length} of ${name}` } : { text: `only in ${data.systems[system]}`, only: true };
    const [before, after] = place ? [rank, chunk.rank] : [chunk.rank, rank];
    const arrow = before === after ? "=" : `${after < before ? "↑" : "↓"}${Math.abs(before - after)}`;
    const partner = () => document.getElementById(`chunk-${other}-${rank}`);
    const go = () => {
      if (!partner()) return;
      if (partner().hidden) partner().closest(".side").querySelector(".all-ranks").click();
      const tabs = document.querySelectorAll("tr.detail .side-tabs button");
      if (tabs.length) tabs[1 - place].click();
      partner().scrollIntoView({ block: "center", behavior: "instant" });
      partner().querySelector(".moved").focus({ preventScroll: true });
    };
    const light = (on) => () => partner() && partner().classList.toggle("linked", on);
    return { node: h("button", { type: "button", class: "moved", on: { click: go, mouseenter: light(true), mouseleave: light(false), focus: light(true), blur: light(false) } },
      before === after ? `= rank ${rank}` : `${arrow} ${place ? "from" : "to"} rank ${rank}`, h("span", { class: "sr" }, ` in ${name}`)) };
  }
  function labelThis() {
    const command = h("p", { class: "command", hidden: true }, h("code", {}, data.label), " ",
      h("button", { type: "button", class: "more", on: { click: (event) => copy(event.target, data.label) } }, "Copy"), h("span", { class: "note" }, " then findwell labels serve pool"));
    const open = h("button", { type: "button", class: "more", "aria-expanded": "false", on: { click: () => {
      command.hidden = !command.hidden;
      open.setAttribute("aria-expanded", String(!command.hidden));
    } } }, "Label this");
    return [open, command];
  }
  function copy(button, text) {
    const done = () => { button.textContent = "Copied"; };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => {});
    else {
      const range = document.createRange();
      range.selectNodeContents(button.previousElementSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
    }
  }
  function ranked(chunk, details, moved, id) {
    const covers = Object.entries(chunk.covers).map(([relation, items]) =>
      h("span", { class: "tag" }, `${relation === "ids" ? "" : relation + ": "}item ${items.join(", ")}`));
    const text = typeof chunk.text === "number" ? details.texts[chunk.text] : chunk.text;
    const body = text === undefined ? [] : passage(chunk, text);
    if (chunk.verdicts) body.push(verdicts(chunk.verdicts, text || "", details));
    const [label, command] = saidOf(chunk).some(([who, kind]) => who === "gold" && kind === "unjudged") && data.label ? labelThis() : [null, null];
    if (command) body.push(command);
    return h("li", { class: `chunk ${chunk.mark}${moved && moved.only ? " only" : ""}`, id }, h("span", { class: "rank" }, String(chunk.rank)),
      h("div", { class: "head" }, chunk.doc ? h("span", { class: "doc" }, chunk.doc) : null, marks(chunk).map(([text, kind]) => h("span", { class: `tag ${kind}` }, text)), covers,
        moved ? moved.node || h("span", { class: "tag" }, moved.text) : null, label,
        chunk.grade !== undefined ? h("span", { class: "tag" }, `grade ${chunk.grade}`) : null,
        chunk.score !== undefined ? h("span", { class: "tag" }, `score ${shortScore(chunk.score)}`) : null),
      body.length ? h("div", { class: "body" }, body) : null);
  }

  /* ---- a text: what made it count is marked, sentences that a judge refused are grey ---- */
  function passage(chunk, text) {
    const placed = (chunk.verdicts || []).filter((each) => each.places && (each.value > 0 || each.part))
      .flatMap((each) => each.places.map(([from, to]) => [from, to, each]));
    const cuts = new Set([0, text.length]);
    for (const [from, to] of [...(chunk.matched || []), ...placed]) cuts.add(from).add(to);
    const ends = [...cuts].sort((one, other) => one - other);
    const pieces = ends.slice(1).map((to, place) => {
      const from = ends[place];
      const here = ([low, high]) => low <= from && to <= high;
      const yes = placed.filter((each) => here(each) && each[2].value > 0), no = placed.filter((each) => here(each) && each[2].value === 0);
      const part = text.slice(from, to);
      const why = (yes.length ? yes : no).map(([, , each]) => `${each.aspect}: ${says(each)}${chance(each)}${each.reason ? ` — ${each.reason}` : ""}`).join("\n") || null;
      if (yes.length || (chunk.matched || []).some(here)) return h("mark", { title: why }, part);
      return no.length ? h("span", { class: "refused", title: why }, part) : part;
    });
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

  /* ---- what a judge said: a line, which opens into reasons; every "no" is folded once more ---- */
  const says = (each) => each.value === null ? "failed" : each.aspect === "relevance" || each.value > 1 ? `grade ${each.value}` : each.value ? "yes" : "no";
  const chance = (each) => each.probability === undefined || each.probability === null ? "" : ` (probability of yes ${each.probability.toFixed(2)})`;
  function verdicts(every, text, details) {
    const aspects = [...new Set(every.map((each) => each.aspect))];
    const summary = aspects.map((aspect) => {
      const mine = every.filter((each) => each.aspect === aspect).map(says);
      const counted = [...new Set(mine)].sort().reverse().map((word) => `${mine.filter((each) => each === word).length} ${word}`);
      return `${aspect}: ${mine.length === 1 ? mine[0] : counted.join(", ")}`;
    }).join(" · ");
    const no = every.filter((each) => each.value === 0), rest = every.filter((each) => each.value !== 0);
    const list = (some) => h("ul", { class: "verdicts" }, some.map((each) => verdict(each, text, details)));
    return h("details", { class: "said" }, h("summary", {}, h("strong", {}, "judge"), ` ${summary}`),
      rest.length ? list(rest) : null,
      !no.length ? null : rest.length ? h("details", {}, h("summary", {}, `${no.length} × no`), list(no)) : list(no));
  }
  function verdict(each, text, details) {
    const [from, to] = each.part && each.places ? each.places[0] : [0, 0];
    const about = typeof each.item === "number" ? itemText(each, details) : each.item || text.slice(from, to);
    return h("li", {}, h("strong", {}, `${each.aspect}: ${says(each)}`), chance(each), each.reason ? ` — ${each.reason}` : "",
      each.unproven ? h("span", { class: "tag bad" }, " quote not in the text") : "", about ? h("span", { class: "about" }, about) : null);
  }
  function itemText(each, details) {
    const gold = details.gold.find((table) => table.relation.startsWith(each.aspect));
    const found = gold && gold.items.find((item) => item.number === each.item);
    return `item ${each.item}${found ? `: ${found.docs.join("  or  ")}` : ""}`;
  }
  return detail;
})();
