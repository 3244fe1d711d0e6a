/* ---- tables that sort; values of a column are compared as numbers where they are some ---- */
const parsed = (cell) => {
  const given = cell.dataset.v;
  const text = (given !== undefined ? given : cell.textContent).trim();
  const value = Number(text.replace("−", "-").replace(/[%,]/g, "").replace(/^[<+]\s*/, ""));
  return text === "" || text === "–" ? null : Number.isNaN(value) ? text : value;
};
const compare = (one, other) => {
  if (one === null || other === null) return (one === null) - (other === null);
  if (typeof one === "number" && typeof other === "number") return one - other;
  return String(one).localeCompare(String(other), "en", { numeric: true });
};
function sortRows(table, at, falling) {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((each) => each.removeAttribute("aria-sort"));
  heads[at].setAttribute("aria-sort", falling ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [parsed(row.cells[at]), row]);
  rows.sort(([one], [other]) => one === null || other === null ? compare(one, other) : (falling ? -1 : 1) * compare(one, other));
  body.append(...rows.map(([, row]) => row));
}
document.querySelectorAll("table.sortable").forEach((table) => {
  const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
  heads.forEach((head, at) => {
    if (!head.textContent.trim() || head.classList.contains("drawn")) return;
    const act = h("button", { type: "button" }, ...head.childNodes);
    head.replaceChildren(act);
    act.addEventListener("click", () => {
      sortRows(table, at, head.getAttribute("aria-sort") === "ascending");
      table.dispatchEvent(new Event("sorted"));
    });
  });
});
