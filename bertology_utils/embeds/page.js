// Runs in the page: tells every frame the page's theme, and gives each the height it asks for.
(function () {
  if (window.bertologyFrames) { window.bertologyFrames(); return; }
  const isDark = () => {
    const html = document.documentElement, body = document.body;
    return html.dataset.theme === "dark" || html.getAttribute("theme") === "dark" ||
      body.dataset.jpThemeLight === "false" || body.classList.contains("vscode-dark");
  };
  const frames = () => document.querySelectorAll("iframe.bx-frame");
  const tell = (frame) =>
    frame.contentWindow && frame.contentWindow.postMessage({ theme: isDark() ? "dark" : "light" }, "*");
  window.bertologyFrames = () => frames().forEach(tell);
  window.addEventListener("message", (event) => {
    for (const frame of frames()) {
      if (frame.contentWindow !== event.source) continue;
      const height = event.data && event.data.bertologyHeight;
      if (Number.isFinite(height) && height > 0) {
        frame.style.height = Math.min(Math.ceil(height), 4000) + 2 + "px";
        frame.dataset.drawn = "true";
      }
      if (event.data && event.data.bertologyReady) tell(frame);
    }
  });
  const watch = { attributes: true, attributeFilter: ["data-theme", "theme", "data-jp-theme-light", "class"] };
  const observer = new MutationObserver(window.bertologyFrames);
  observer.observe(document.documentElement, watch);
  observer.observe(document.body, watch);
})();
