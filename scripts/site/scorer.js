// How the search page orders what it finds. RANKS holds the pages of the navigation: guides before reference. What has
// no rank are members of the API, examples and decisions. The whole name of a page or a class comes before all.
Scorer.score = ([page, title, anchor, , score, , kind]) => {
  const rank = RANKS[page] ?? 0;
  const isPage = rank && kind === "title" && !anchor && score > Scorer.title;
  const isClass = kind === "object" && score > Scorer.objNameMatch && /[a-z][A-Z]\w*$/.test(title);
  return (isPage || isClass ? 300 : rank) + score + (kind === "title");
};
