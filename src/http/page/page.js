// Keeps the page fresh by server-sent events. Without this script the page works, too, and reloads itself now and then.
// It is put into the page byte for byte; its hash is in the content security policy. It shows what the server rendered and decides
// nothing: each event holds the sections that have changed, as HTML that the server escaped.
"use strict";
(() => {
  const SPOKEN_EVERY_MS = 10_000; // A screen reader hears of a new headline this often at most.
  const AGAIN_MS = 10_000; // After a refusal the browser does not come again by itself.
  const TYPED_MS = 300; // A search is sent when typing pauses.
  const byId = (id) => document.getElementById(id);
  const button = byId("pause"), link = byId("link"), say = byId("say"), form = byId("search");
  const icon = document.querySelector("link[rel=icon]");
  let source = null, paused = false, again = 0, spoken = 0, toSay = 0, waiting = {};

  // Relative times: "12 s ago", by the clock of the server, which renders them by the minute.
  const skew = Date.now() - Number(byId("main").dataset.now);
  const ago = (ms) => {
    const s = Math.max(0, Math.round((Date.now() - skew - ms) / 1000));
    if (s < 60) return `${s} s ago`;
    if (s < 3600) return `${Math.floor(s / 60)} min ago`;
    return s < 86_400 ? `${Math.floor(s / 3600)} h ago` : `${Math.floor(s / 86_400)} d ago`;
  };
  const tell = (root) => {
    for (const time of root.querySelectorAll("time[data-ms]")) {
      const at = Number(time.dataset.ms);
      time.title = `${new Date(at).toLocaleString()} here`;
      const beside = time.nextElementSibling;
      if (beside && beside.classList.contains("ago")) beside.textContent = ago(at);
    }
  };

  // What identifies an element across two renderings, for the focus and for what a person has opened.
  const name = (node) => node.id || node.getAttribute("href") || node.dataset.key;
  const find = (root, tag, wanted) => [...root.querySelectorAll(tag)].find((node) => name(node) === wanted);
  const put = (section, html) => {
    const held = section.contains(document.activeElement) ? document.activeElement : null;
    const open = [...section.querySelectorAll("details[open]")].map(name);
    section.innerHTML = html;
    tell(section);
    for (const one of open) { const same = find(section, "details", one); if (same) same.open = true; }
    if (held) find(section, held.tagName, name(held))?.focus({ preventScroll: true });
  };

  const show = ({ title, icon: image, headline, sections }) => {
    if (document.title !== title) {
      document.title = title;
      icon.href = image;
      clearTimeout(toSay);
      toSay = setTimeout(() => { say.textContent = headline; spoken = Date.now(); },
        Math.max(0, spoken + SPOKEN_EVERY_MS - Date.now()));
    }
    for (const [id, html] of Object.entries(sections)) { const section = byId(id); if (section) put(section, html); }
  };

  const state = (word, mark) => { link.textContent = word; link.className = `pill ${mark}`; };
  const close = () => { clearTimeout(again); source?.close(); source = null; };
  const open = () => {
    close();
    const rest = location.pathname === "/" ? "" : location.pathname;
    source = new EventSource(`/live${rest}${location.search}`);
    source.onopen = () => { if (!paused) state("live", "good"); };
    source.onmessage = (event) => {
      const news = JSON.parse(event.data);
      // While it is paused, the newest of each section waits.
      if (paused) waiting = { ...news, sections: { ...waiting.sections, ...news.sections } };
      else show(news);
    };
    source.onerror = () => {
      if (!paused) state("connection lost, trying again", "warn");
      if (source && source.readyState === EventSource.CLOSED) { close(); again = setTimeout(open, AGAIN_MS); }
    };
  };

  button.hidden = link.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Go on" : "Pause";
    if (paused) return state("paused", "warn");
    state("live", "good");
    if (waiting.sections) show(waiting);
    waiting = {};
  });

  if (form) {
    let typed = 0;
    const search = () => {
      const wanted = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
      history.replaceState(null, "", `?${wanted}`);
      open();
    };
    form.addEventListener("input", () => { clearTimeout(typed); typed = setTimeout(search, TYPED_MS); });
    form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  }

  // A page that is not looked at costs nothing.
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  setInterval(() => { if (!paused) tell(document); }, 5_000);
  tell(document);
  if (!document.hidden) open();
})();
