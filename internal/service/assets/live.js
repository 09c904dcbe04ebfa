// Countdowns, and a page that follows the estate. Without it the page is what it was when it was loaded.
"use strict";
(() => {
  const body = document.body;
  const ahead = Date.parse(body.dataset.now) - Date.now(); // the service's clock against this one
  const note = document.getElementById("link");

  const span = (ms) => {
    let s = Math.floor(Math.abs(ms) / 1000);
    const d = Math.floor(s / 86400), h = Math.floor(s / 3600) % 24, m = Math.floor(s / 60) % 60;
    s %= 60;
    if (d) return `${d}d ${h}h`;
    if (h) return `${h}h ${m}m`;
    return m ? `${m}m ${s}s` : `${s}s`;
  };
  const tick = () => {
    const now = Date.now() + ahead;
    for (const t of document.querySelectorAll("time[data-until]")) {
      const left = Date.parse(t.dataset.until) - now;
      t.textContent = left > 0 ? `in ${span(left)}` : `${span(left)} ago`;
    }
    for (const t of document.querySelectorAll("time[data-since]")) {
      t.textContent = `${span(Math.max(0, now - Date.parse(t.dataset.since)))} ago`;
    }
  };
  tick();
  setInterval(tick, 1000);

  if (!body.dataset.events) return;
  let due = null, busy = false, again = false;
  const refresh = async () => {
    due = null;
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { Accept: "text/html" } });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.querySelector(`[data-live="${part.dataset.live}"]`);
        if (!next) continue;
        const open = part.querySelector("details[open]") !== null;
        const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        part.replaceWith(document.adoptNode(next));
        if (open) next.querySelector("details")?.setAttribute("open", "");
        if (focused) [...next.querySelectorAll("a")].find((a) => a.getAttribute("href") === focused)?.focus();
      }
      // The form says which revision it is for, and stays what its reader saw; when there is another, it must be read anew.
      const form = document.querySelector("section.clear"), other = fresh.querySelector("section.clear");
      const rev = (f) => f?.querySelector("[name=seen]").value;
      if (!form && other) document.querySelector("main > p:last-of-type").before(document.adoptNode(other));
      else if (form && !other) form.remove();
      else if (form && rev(form) !== rev(other)) form.replaceWith(document.adoptNode(other));
      tick();
    } catch {
      // The stream says when the service is away.
    }
    busy = false;
    if (again) { again = false; soon(); }
  };
  const soon = () => { if (due === null) due = setTimeout(refresh, 300); };

  const seen = new Map();
  const stream = new EventSource(body.dataset.events);
  stream.addEventListener("open", () => { note.textContent = ""; });
  stream.addEventListener("error", () => { note.textContent = "The service does not answer; what you see may be old."; });
  stream.addEventListener("head", (e) => {
    const c = JSON.parse(e.data), is = `${e.lastEventId} ${c.badge}`;
    if (seen.get(c.container) === is) return;
    seen.set(c.container, is);
    soon();
  });
})();
