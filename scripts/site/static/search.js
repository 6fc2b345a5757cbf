// A page of a folder may not read the others, of which the results of a search would show an excerpt.
if (location.protocol === "file:") {
  DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
}
