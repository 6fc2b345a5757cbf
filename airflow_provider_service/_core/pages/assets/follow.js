"use strict";
// Follows what the page shows until it says that nothing more will change, and only while somebody can see it.
(() => {
  const FURTHEST_SECONDS = 60;
  const announcement = document.getElementById("announcement");
  const trouble = document.getElementById("trouble");
  let version = null, failures = 0, timer = null, isAsking = false;

  const view = () => document.getElementById("view");

  // In one or two units, as the page itself writes durations.
  function duration(seconds) {
    for (const [unit, length, part, partLength] of [["d", 86400, "h", 3600], ["h", 3600, "min", 60], ["min", 60, "s", 1]]) {
      const rest = Math.floor(seconds % length / partLength);
      if (seconds >= length) return `${Math.floor(seconds / length)} ${unit}${rest ? ` ${rest} ${part}` : ""}`;
    }
    return `${seconds} s`;
  }

  function showTime() {
    for (const one of document.querySelectorAll("[data-since]")) {
      one.textContent = `${duration(Math.max(0, Math.round((Date.now() - Date.parse(one.dataset.since)) / 1000)))} so far`;
    }
  }

  // What the reader has changed, and the page does not know.
  const OWN = new Set(["style", "tabindex", "open", "hidden", "data-far"]);

  // Makes an element like a fresh one. What has not changed stays the same element, with its focus and its place.
  function become(old, fresh) {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !OWN.has(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value && !OWN.has(name)) old.setAttribute(name, value);
    if (old.matches("#overview, [data-since]")) return;
    const named = new Map([...old.children].filter((one) => one.id).map((one) => [one.id, one]));
    let next = old.firstChild;
    for (const one of [...fresh.childNodes]) {
      const isLike = next && !next.id && !one.id && next.nodeName === one.nodeName;
      const same = one.id ? named.get(one.id) : isLike ? next : null;
      if (!same || same.nodeName !== one.nodeName) { old.insertBefore(document.adoptNode(one), next); continue; }
      if (same === next) next = next.nextSibling; else old.insertBefore(same, next);
      if (same.nodeType !== Node.ELEMENT_NODE) { if (same.data !== one.data) same.data = one.data; } else become(same, one);
    }
    while (next) { const gone = next; next = next.nextSibling; gone.remove(); }
  }

  function replace(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("view");
    if (!fresh) return;
    window.servicePages.localize(fresh);
    const before = view().dataset.title;
    become(view(), fresh);
    if (view().dataset.title !== before) { announcement.textContent = view().dataset.title; document.title = view().dataset.title; }
    showTime();
    document.dispatchEvent(new Event("followed"));
  }

  async function look() {
    timer = null;
    if (document.hidden || isAsking) return;
    isAsking = true;
    try {
      const headers = version ? { "If-None-Match": version } : {};
      const address = new URL(location.href);
      address.searchParams.set("part", "view");
      const answer = await fetch(address, { headers, credentials: "same-origin", cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) {
        trouble.textContent = "Airflow does not let you read this any longer. Log in again, and reload the page.";
        return;
      }
      if (answer.status !== 304) {
        if (!answer.ok) throw new Error(String(answer.status));
        version = answer.headers.get("ETag");
        replace(await answer.text());
      }
      // The service does not answer: look again, but ever less often.
      failures = view().dataset.failing === undefined ? 0 : failures + 1;
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
