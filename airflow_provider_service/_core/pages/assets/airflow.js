"use strict";
// Shows a page as Airflow, around it, looks: its colours, in light or dark, its font, and the time zone chosen there.
(() => {
  // What a page calls a colour or font, and what Airflow's page calls it.
  const NAMES = {
    "--page": "colors-bg", "--card": "colors-bg-subtle", "--track": "colors-bg-muted", "--ink": "colors-fg",
    "--faint": "colors-fg-muted", "--line": "colors-border", "--link": "colors-fg-info", "--font": "fonts-body", "--mono": "fonts-mono",
  };
  const page = document.documentElement;

  function shell() {
    try {
      return window.parent === window ? null : window.parent.document.documentElement;
    } catch {
      return null;  // a page of another origin: the system's theme counts
    }
  }

  // What is not within Airflow's page looks as was chosen there last.
  function showChosenTheme() {
    let chosen = null;
    try { chosen = window.localStorage.getItem("theme"); } catch { /* not allowed to: the system's theme counts */ }
    if (chosen === "dark" || chosen === "light") page.dataset.theme = chosen; else delete page.dataset.theme;
  }

  function showTheme() {
    const around = shell();
    if (!around) return showChosenTheme();
    const scheme = around.classList.contains("dark") || around.dataset.theme === "dark" ? "dark" : "light";
    page.dataset.theme = scheme;
    const values = window.parent.getComputedStyle(around);
    for (const [name, theirs] of Object.entries(NAMES)) {
      const value = values.getPropertyValue(`--chakra-${theirs}`).trim();
      if (value) page.style.setProperty(name, value);
    }
  }

  function stored(key) {
    try {
      return JSON.parse(window.localStorage.getItem(key));
    } catch {
      return null;
    }
  }

  // The zone that is chosen in Airflow; Airflow itself begins with that of the browser.
  function zone() {
    const browsers = Intl.DateTimeFormat().resolvedOptions().timeZone;
    for (const name of [stored("timezone"), browsers]) {
      try {
        if (typeof name === "string") return Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone;
      } catch { /* a zone that this browser does not know */ }
    }
    return "UTC";
  }

  function localize(root) {
    const chosen = zone();
    const format = new Intl.DateTimeFormat("sv-SE", { timeZone: chosen, dateStyle: "short", timeStyle: "medium" });
    for (const one of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(one.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      one.title ||= one.textContent;
      one.textContent = format.format(moment);
    }
    for (const one of root.querySelectorAll("[data-zone]")) {
      if (one.matches("input")) one.value = chosen; else one.textContent = chosen;
    }
  }

  // What depends on what is chosen in Airflow is computed for the choice that the address names.
  function askFor(name, chosen) {
    const address = new URL(window.location.href);
    if (page.dataset.takes !== name || address.searchParams.get(name) === chosen) return false;
    if (chosen === null) address.searchParams.delete(name); else address.searchParams.set(name, chosen);
    window.location.replace(address);
    return true;
  }

  const askForZone = () => askFor("zone", zone());

  // The attempt that Airflow's page shows; null for the latest.
  function chosenTry() {
    const chosen = shell() && new URL(window.parent.location.href).searchParams.get("try_number");
    return /^[1-9]\d{0,8}$/.test(chosen ?? "") ? chosen : null;
  }

  // Of the attempts that are chosen on this page and in Airflow, the last one counts.
  let followed = new URL(window.location.href).searchParams.has("try_number") ? chosenTry() : null;
  function followTry() {
    const chosen = chosenTry();
    if (chosen === followed) return;
    followed = chosen;
    askFor("try_number", chosen);
  }

  askForZone();
  if (page.dataset.takes === "try_number") {
    followTry();
    setInterval(followTry, 1000);
  }
  const around = shell();
  showTheme();
  if (around) {
    new MutationObserver(showTheme).observe(around, { attributes: true, attributeFilter: ["class", "data-theme", "style"] });
  }
  window.servicePages = { localize };
  window.addEventListener("storage", () => { showTheme(); if (!askForZone()) localize(document); });
  document.addEventListener("DOMContentLoaded", () => localize(document));
})();
