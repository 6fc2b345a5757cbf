"use strict";
// Follows what the page shows until it says that nothing more will change, and only while somebody can see it.
(() => {
  const FURTHEST_SECONDS = 60;
  const announcement = document.getElementById("announcement");
  const trouble = document.getElementById("trouble");
  let version = null, failures = 0, timer = null, isAsking = false;

  const view = () => document.getElementById("view");

  function showTime() {
    for (const one of document.querySelectorAll("[data-since]")) {
      const seconds = Math.max(0, Math.round((Date.now() - Date.parse(one.dataset.since)) / 1000));
      const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
      one.textContent = parts[0] ? `${parts[0]} h ${parts[1]} min so far` : parts[1] ? `${parts[1]} min ${parts[2]} s so far` : `${parts[2]} s so far`;
    }
  }

  // What finds an element again in what replaces it.
  function place(one) {
    if (!one) return null;
    if (one.id) return `#${CSS.escape(one.id)}`;
    if (one.matches("summary")) return `#${CSS.escape(one.closest("tr").id)} summary`;
    return one.matches("a[href]") ? `a[href="${CSS.escape(one.getAttribute("href"))}"]` : null;
  }

  function replace(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("view");
    if (!fresh) return;
    window.servicePages.localize(fresh);
    const places = new Map([...document.querySelectorAll(".scroll[id]")].map((one) => [one.id, one.scrollLeft]));
    const opened = [...document.querySelectorAll("tr[id] details[open]")].map((one) => one.closest("tr").id);
    const focused = place(document.activeElement);
    const before = view().dataset.title;
    view().replaceWith(document.adoptNode(fresh));
    for (const [id, left] of places) { const one = document.getElementById(id); if (one) one.scrollLeft = left; }
    for (const id of opened) { const one = document.querySelector(`#${id} details`); if (one) one.open = true; }
    const again = focused && document.querySelector(focused);
    if (again) again.focus({ preventScroll: true });
    if (fresh.dataset.title !== before) { announcement.textContent = fresh.dataset.title; document.title = fresh.dataset.title; }
    showTime();
  }

  async function look() {
    timer = null;
    if (document.hidden || isAsking) return;
    isAsking = true;
    try {
      const headers = version ? { "If-None-Match": version } : {};
      const answer = await fetch(`${location.pathname}?part=view`, { headers, credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) {
        trouble.textContent = "Airflow does not let you read this any longer. Log in again, and reload the page.";
        return;
      }
      if (answer.status !== 304) {
        if (!answer.ok) throw new Error(String(answer.status));
        version = answer.headers.get("ETag");
        replace(await answer.text());
      }
      failures = 0;
      trouble.textContent = "";
    } catch {
      failures += 1;
      trouble.textContent = "Airflow does not answer. The page shows what was known last, and tries again.";
    } finally {
      isAsking = false;
    }
    plan();
  }

  function plan() {
    const seconds = Number(view().dataset.follow);
    if (seconds && timer === null) timer = setTimeout(look, 1000 * Math.min(FURTHEST_SECONDS, seconds * 2 ** Math.min(failures, 5)));
  }

  document.addEventListener("visibilitychange", () => { if (!document.hidden && Number(view().dataset.follow) && timer === null) look(); });
  showTime();
  setInterval(showTime, 1000);
  plan();
})();
