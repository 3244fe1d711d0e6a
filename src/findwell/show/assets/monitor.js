(() => {
  const live = data.live;
  /* ---- a link to a bucket opens it ---- */
  function open() {
    const found = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!found) return;
    const folded = found.closest("details");
    if (folded) folded.open = true;
    if (folded !== found) { found.scrollIntoView(); return; }
    found.scrollIntoView();
    found.querySelector("summary").focus({ preventScroll: true });
  }
  window.addEventListener("hashchange", open);
  open();
  if (!live || !live.news) return;

  /* ---- news: the page is asked for again, and what is open, chosen and in focus stays ---- */
  let known = live.state, busy = false;
  const OFF = "findwell-monitor-still";
  const still = () => { try { return sessionStorage.getItem(OFF) === "1"; } catch { return false; } };
  const unlike = (form) => form && [...form.elements].some((each) => each.tagName === "SELECT"
    && ![...each.options].every((option) => option.selected === option.defaultSelected || !each.querySelector("[selected]")));
  function wire() {
    const box = $("refresh");
    if (!box) return;
    box.checked = !still();
    box.addEventListener("change", () => { try { sessionStorage.setItem(OFF, box.checked ? "0" : "1"); } catch { /* not allowed here */ } });
  }
  function say(text) { if ($("updated")) $("updated").textContent = text; }
  async function refresh() {
    const answer = await fetch(location.pathname + location.search);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = fresh.getElementById("monitor");
    if (!now) return;
    known = JSON.parse(fresh.getElementById("data").textContent).live.state;
    const opened = [...document.querySelectorAll("#monitor details[open][id]")].map((each) => each.id);
    const active = document.activeElement;
    const held = active && active.closest("[id]") && active.closest("#monitor") ? [active.closest("[id]").id, active.tagName, active.getAttribute("href")] : null;
    const scrolled = [...document.querySelectorAll("#monitor .tall")].map((each) => each.scrollTop);
    $("monitor").replaceWith(document.adoptNode(now));
    for (const id of opened) if ($(id)) $(id).open = true;
    document.querySelectorAll("#monitor .tall").forEach((each, at) => { each.scrollTop = scrolled[at] || 0; });
    wire();
    if (held && $(held[0])) {
      const inside = [$(held[0]), ...$(held[0]).querySelectorAll(held[1])];
      const again = inside.find((each) => each.tagName === held[1] && each.getAttribute("href") === held[2]);
      if (again) again.focus({ preventScroll: true });
    }
    say(`updated ${new Date().toLocaleTimeString()}`);
  }
  async function watch() {
    if (document.hidden || busy || still() || unlike($("tools"))) return;
    busy = true;
    try {
      const answer = await fetch(live.news);
      const news = answer.ok ? await answer.json() : null;
      if (news && news.state !== known) await refresh();
    } catch { say("findwell view has stopped"); } finally { busy = false; }
  }
  wire();
  setInterval(watch, live.every);
})();
