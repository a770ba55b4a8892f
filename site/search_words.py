"""The site's search finds flags and code words: `--max-num-seqs`, `max_num_seqs` and `--tp` as a whole.

Sphinx's own search takes "--max-num-seqs" apart, so that it finds every page with the words "max", "num" and "seqs",
never finds "max_num_seqs" by it, and cannot tell "--tp" from "tp". Here the index holds each of these as one word as
well, spelled with underscores; `search/search_words.js` does the same to what a reader types.
"""

import re
from pathlib import Path

from sphinx.search.en import SearchEnglish

TOKEN = re.compile(r"(-{1,2})?(\w+(?:-\w+)*)")
HERE = Path(__file__).with_name("search")


def words(text: str) -> list[str]:
    """The words of a text as the index holds them: parts of compounds, then compounds and flags as a whole.

    A flag of one word keeps its dashes, as underscores: `--tp` is `__tp`.
    """
    found = []
    for dashes, body in TOKEN.findall(text):
        parts = [part for part in re.split("[-_]+", body) if part]
        found += parts
        if len(parts) > 1:
            found.append("_".join(parts))
        elif dashes and parts:
            found.append(f"__{parts[0]}")
    return found


class EnglishWithFlags(SearchEnglish):
    """English, with `words` in place of single words; compounds and flags keep their endings."""

    # The name under which Sphinx knows its own English, which this replaces.
    lang = "en"
    js_splitter_code = (HERE / "split_query.js").read_text(encoding="utf-8")
    js_stemmer_code = SearchEnglish.js_stemmer_code + (HERE / "whole_words.js").read_text(encoding="utf-8")

    def split(self, input: str) -> list[str]:
        return words(input)

    def stem(self, word: str) -> str:
        return word.lower() if "_" in word else super().stem(word)


def setup(app):
    app.add_search_language(EnglishWithFlags)
    app.config.html_search_scorer = str(HERE / "ranking.js")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
