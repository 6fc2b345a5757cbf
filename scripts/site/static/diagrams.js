const dark = document.body.dataset.theme === "dark"
  || (document.body.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "neutral" });
