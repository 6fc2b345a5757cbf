"use strict";
// Airflow shows pages in a frame that may not open tabs itself; a link of the page around it may.
document.addEventListener("click", (event) => {
  const link = event.target.closest ? event.target.closest("a[target=_blank]") : null;
  if (!link || window.parent === window) return;
  let around;
  try { around = window.parent.document; } catch { return; }
  event.preventDefault();
  const stand = around.createElement("a");
  stand.href = link.href;
  stand.target = "_blank";
  stand.rel = "noopener noreferrer";
  around.body.append(stand);
  stand.click();
  stand.remove();
});
