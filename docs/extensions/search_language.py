# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The search index of the manual for English and Chinese pages in one site: docs/design/manual.md."""

import re

import snowballstemmer
from sphinx.search import SearchLanguage

# The regular expression is also that of the script in the browser, so that both sides split equally.
HAN = "[\\u3400-\\u9fff]+"


class EnglishAndChinese(SearchLanguage):
    """Latin words by their English stem, and each pair of adjacent Chinese characters.

    Pairs need no dictionary: a word of the reader's and the same word in a page have the same pairs.
    """

    lang = "en-zh"
    language_name = "English"  # Sphinx derives the name of the stemmer's class in the browser from it
    js_stemmer_rawcode = "english-stemmer.js"
    js_splitter_code = """
function splitQuery(query) {
  return (query.match(/[\\u3400-\\u9fff]+|[\\p{Letter}\\p{Number}_]+/gu) ?? []).flatMap((word) => {
    const characters = Array.from(word);
    if (characters.length < 2 || !/[\\u3400-\\u9fff]/.test(word)) return [word];
    return characters.slice(1).map((character, place) => characters[place] + character);
  });
}
"""
    words = re.compile(rf"{HAN}|(?:(?!{HAN})\w)+")

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.stemmer = snowballstemmer.stemmer("english")

    def split(self, input: str) -> list[str]:
        """Returns the words of a text; a run of n > 1 Chinese characters gives n - 1 words."""
        found = []
        for word in self.words.findall(input):
            pairs = re.match(HAN, word) and len(word) > 1
            found += [word[k : k + 2] for k in range(len(word) - 1)] if pairs else [word]
        return found

    def stem(self, word: str) -> str:
        return self.stemmer.stemWord(word.lower())

    def word_filter(self, word: str) -> bool:
        return len(word) > 1 and super().word_filter(word)
