"use strict";
// Airflow shows pages in a frame that may neither open tabs nor leave it; a link of the page around it may do both.
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[target=_blank], a[target=_top]") : null;
  if (!link || window.parent === window) return;
  let around;
  try { around = window.parent.document; } catch { return; }
  event.preventDefault();
  const stand = around.createElement("a");
  stand.href = link.href;
  stand.target = link.target;
  stand.rel = "noopener noreferrer";
  around.body.append(stand);
  stand.click();
  stand.remove();
});
