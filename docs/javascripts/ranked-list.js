// The interactive ranked list of the course: move a passage, and the measures follow.
// <div class="ranked-list" data-grades="0 3 0 1 0 0 2 0" data-missed="1" data-k="5">a picture for readers without
// scripts</div>: the grade of each passage in order, those of needed passages that were not retrieved, the cutoff.
(() => {
  const numbers = (text) => (text ?? "").split(/\s+/).filter(Boolean).map(Number);
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const dcg = (grades) => sum(grades.map((grade, rank) => grade / Math.log2(rank + 2)));

  const measured = (grades, missed, k) => {
    const needed = [...grades, ...missed].filter((grade) => grade > 0);
    const hits = grades.slice(0, k).filter((grade) => grade > 0).length;
    const first = grades.findIndex((grade) => grade > 0);
    let found = 0;
    const precisions = grades.map((grade, rank) => (grade > 0 ? ++found / (rank + 1) : 0));
    const ideal = needed.toSorted((a, b) => b - a).slice(0, k);
    return {
      [`recall@${k}`]: hits / needed.length,
      [`P@${k}`]: hits / k,
      RR: first < 0 ? 0 : 1 / (first + 1),
      AP: sum(precisions) / needed.length,
      [`nDCG@${k}`]: dcg(grades.slice(0, k)) / dcg(ideal),
    };
  };

  const made = (name, properties = {}, ...children) => {
    const node = Object.assign(document.createElement(name), properties);
    node.append(...children);
    return node;
  };

  const start = (place) => {
    const k = Number(place.dataset.k ?? 5);
    const missed = numbers(place.dataset.missed);
    const passages = numbers(place.dataset.grades).map((grade, at) => ({ grade, name: "ABCDEFGHIJ"[at] }));
    const list = made("ol", { className: "ranked-list__passages" });
    let held = -1; // the rank of the passage that is being dragged
    const values = made("dl", { className: "ranked-list__values" });
    values.setAttribute("aria-live", "polite");
    const hint = "Drag a passage (on a phone by its letter), or press its arrows, and watch the measures move.";
    place.replaceChildren(made("p", { textContent: hint }), list, values);

    const move = (from, to, focus) => {
      if (to < 0 || to >= passages.length) return;
      passages.splice(to, 0, ...passages.splice(from, 1));
      draw();
      if (!focus) return;
      const moved = list.children[to];
      (moved.querySelector(`button[data-to="${focus}"]:not([disabled])`) ?? moved.querySelector("button:not([disabled])"))?.focus();
    };

    const arrow = (rank, step, sign, name) => {
      const button = made("button", { type: "button", textContent: sign, disabled: rank + step < 0 || rank + step >= passages.length });
      button.dataset.to = step;
      button.setAttribute("aria-label", `Move passage ${name} ${step < 0 ? "up" : "down"}`);
      button.addEventListener("click", () => move(rank, rank + step, step));
      return button;
    };

    const row = ({ grade, name }, rank) => {
      const says = grade > 0 ? `✓ needed, grade ${grade}` : "noise";
      const item = made("li", {}, made("span", { className: "ranked-list__grip", textContent: name }), made("b", { textContent: says }));
      item.classList.toggle("held", rank === held);
      item.classList.toggle("hit", grade > 0);
      item.classList.toggle("last", rank === k - 1);
      item.append(arrow(rank, -1, "↑", name), arrow(rank, 1, "↓", name));
      return item;
    };

    const draw = () => {
      list.replaceChildren(...passages.map(row));
      const found = measured(passages.map(({ grade }) => grade), missed, k);
      values.replaceChildren(
        ...Object.entries(found).map(([name, value]) => {
          const bar = made("span", { className: "ranked-list__bar" });
          bar.style.width = `${100 * value}%`;
          return made("div", {}, made("dt", { textContent: name }), made("dd", {}, made("b", { textContent: value.toFixed(3) }), bar));
        }),
      );
    };
    // the list itself follows the pointer, as its rows are made again with every move; a finger drags by the
    // letter, so that it can still scroll the page everywhere else
    list.addEventListener("pointerdown", (event) => {
      const touched = event.pointerType === "touch" && !event.target.closest(".ranked-list__grip");
      if (event.button || touched || event.target.closest("button") || !event.target.closest("li")) return;
      held = [...list.children].indexOf(event.target.closest("li"));
      list.setPointerCapture(event.pointerId);
      event.preventDefault();
      draw();
    });
    list.addEventListener("pointermove", (event) => {
      const above = [...list.children].findIndex((item) => event.clientY < item.getBoundingClientRect().bottom);
      const to = above < 0 ? passages.length - 1 : above;
      if (held < 0 || to === held) return;
      const from = held;
      held = to;
      move(from, to);
    });
    for (const end of ["pointerup", "pointercancel"])
      list.addEventListener(end, () => {
        if (held < 0) return;
        held = -1;
        draw();
      });
    draw();
  };

  document.querySelectorAll(".ranked-list").forEach(start);
})();
