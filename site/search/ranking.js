// Which pages come first among those that hold the words equally: for a code word those that say what it does, otherwise
// chapters before labs. And every spelling of a code word is shown in the results.
const EXPLAINS = ["chapters/glossary", "chapters/atlas"];
const isCode = () => splitQuery(new URLSearchParams(location.search).get("q") ?? "").some((word) => word.includes("_"));

var Scorer = {
  score: ([page, , , , score]) => {
    const place = EXPLAINS.indexOf(page);
    if (place >= 0 && isCode()) return score + 4 - place;
    return page.startsWith("labs/") ? score - 1 : score;
  },
  // What follows is as in Sphinx, which has no way of changing one of these alone.
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

const spellings = (words) => new Set([...words].flatMap((word) => [word, word.replaceAll("_", "-")]));

// Before the search itself starts, which waits for the same event.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof Search === "undefined") return;
  const { _parseQuery: parse, makeSearchSummary: summary } = Search;
  Search._parseQuery = (query) => {
    const [asked, terms, excluded, highlighted, objects] = parse(query);
    return [asked, terms, excluded, spellings(highlighted), objects];
  };
  Search.makeSearchSummary = (text, words, anchor) => summary(text, spellings(words), anchor);
});
