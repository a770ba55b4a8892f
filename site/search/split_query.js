// The words that a reader looks for; site/search_words.py makes those of the index. A code word is looked for as a
// whole: one with underscores, with dashes before it, or with two hyphens in it. "KV-aware" is two words.
var splitQuery = (query) =>
  [...query.matchAll(/(-{1,2})?([\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)*)/gu)].flatMap(([, dashes, body]) => {
    const parts = body.split(/[-_]+/).filter((part) => part);
    if (parts.length === 1) return dashes ? [`__${parts[0]}`] : parts;
    const isCode = dashes || body.includes("_") || parts.length > 2;
    return isCode ? [parts.join("_")] : parts;
  });
