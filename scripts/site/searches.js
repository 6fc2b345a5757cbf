// Run by Node with a built site and searches; prints the pages that its search page shows for each, the first one first.
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
const scripts = fs.readFileSync(`${site}/search.html`, "utf8").matchAll(/src="([^"?]*(?:searchtools|language_data|searchindex)\.js)/g);
for (const [, file] of scripts) vm.runInContext(fs.readFileSync(`${site}/${file}`, "utf8"), page);
const search = vm.runInContext("(text) => Search._performSearch(...Search._parseQuery(text))", page);
console.log(JSON.stringify(searches.map((text) => search(text).reverse().map(([name]) => name))));
