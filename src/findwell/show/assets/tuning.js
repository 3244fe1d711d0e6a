(() => {
  const button = $("copy"), text = $("snippet");
  if (!button) return;
  button.hidden = false;
  /* where the clipboard is not allowed, as in a file that is opened from a disk in some browsers, it is selected */
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      $("copied").textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(text);
      $("copied").textContent = "Selected: press Ctrl+C or ⌘C.";
    }
    setTimeout(() => { $("copied").textContent = ""; }, 4000);
  });
})();
