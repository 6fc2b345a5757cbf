// Run by Node with a built site and searches: prints the page that its search page shows first for each.
const fs = require("fs");
const vm = require("vm");

const [site, ...searches] = process.argv.slice(2);
const page = vm.createContext({
  document: { getElementById: () => null },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready: () => {},
});
page.window = page;
const html = fs.readFileSync(`${site}/search.html`, "utf8");
const scripts = html.matchAll(/src="([^"?]*(?:searchtools|language_data|searchindex)\.js)/g);
for (const [, file] of scripts) vm.runInContext(fs.readFileSync(`${site}/${file}`, "utf8"), page);
const found = vm.runInContext("(search) => Search._performSearch(...Search._parseQuery(search))", page); // the last is best
console.log(JSON.stringify(searches.map((search) => found(search).at(-1)?.[0] ?? "nothing")));
