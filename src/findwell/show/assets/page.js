"use strict";
/* What the scripts of all pages share. */
const data = JSON.parse(document.getElementById("data").textContent);

/* ---- elements: everything that comes from data is text, never markup ---- */
const SVG = "http://www.w3.org/2000/svg";
function h(tag, attributes, ...children) {
  const node = ["svg", "rect"].includes(tag)
    ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined));
  return node;
}
const $ = (id) => document.getElementById(id);
const many = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

{
  /* ---- theme ---- */
  const themes = ["auto", "light", "dark"];
  let theme = "auto";
  try { theme = localStorage.getItem("findwell-theme") || "auto"; } catch { /* not allowed here */ }
  const button = $("theme");
  function paint() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" }[theme];
  }
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    try { localStorage.setItem("findwell-theme", theme); } catch { /* not allowed here */ }
    paint();
  });
  paint();
}

{ /* ---- the token has done its work, and does not belong in a history; so has waiting ---- */
  const link = new URLSearchParams(location.search);
  const done = ["token", "wait"].filter((name) => link.has(name));
  if (data.live && done.length) {
    done.forEach((name) => link.delete(name));
    const rest = link.toString();
    history.replaceState(null, "", location.pathname + (rest ? "?" + rest : "") + location.hash);
  }
}
