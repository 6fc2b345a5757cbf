// A page of a folder may not read the others, of which the results of a search would show an excerpt.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
// What the theme lacks for those who use a keyboard or a screen reader.
document.querySelectorAll(".sidebar-tree .caption").forEach((caption) => { caption.ariaLevel = 2; });
document.querySelector(".sidebar-drawer").ariaLabel = "Site";
document.querySelectorAll(".highlight pre, .content table").forEach((box) => {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
});
