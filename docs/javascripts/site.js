// What the theme's own script makes after the page has loaded, made fit for keyboards and screen readers:
// frames that scroll can be reached by the Tab key, and the buttons of a block of code are not landmarks.
// Lines of output that are prose wrap in their box; what stands in columns or boxes does not.
(() => {
  const repair = () => {
    for (const frame of document.querySelectorAll(
      ".md-typeset__scrollwrap:not([tabindex]), .formula:not([tabindex])",
    ))
      if (frame.scrollWidth > frame.clientWidth) frame.tabIndex = 0;
    for (const line of document.querySelectorAll(":is(.highlight:is(:not([class*=language]), .language-sh, .language-text) code, code:has(.gp)) > span:not(.wraps)"))
      if (!/\S {2,}[^\s#]|[─│┌└░]/.test(line.textContent.replace(/^> */, ""))) line.classList.add("wraps");
    for (const buttons of document.querySelectorAll("nav.md-code__nav:not([role])"))
      buttons.setAttribute("role", "none");
  };
  new MutationObserver(repair).observe(document.body, { childList: true, subtree: true });
  addEventListener("resize", repair);
  repair();
})();
