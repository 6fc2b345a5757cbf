const dark = document.body.dataset.theme === "dark"
  || (document.body.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
const legible = { edgeLabelBackground: "#222", noteBkgColor: "#222", noteTextColor: "#ccc" };
mermaid.initialize({ startOnLoad: true, theme: dark ? "dark" : "neutral", themeVariables: dark ? legible : {} });
