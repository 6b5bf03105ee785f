// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Order of search results: Sphinx's scores, with the pages for users of torch_musa before those for its developers.
var Scorer = {
  score: ([page, , , , score]) => {
    if (/^docs\/(guide|operators|packs|[a-z_]+$)/.test(page)) return score + 3;
    return /^(docs\/(design|development|upstream)|tests|examples|[A-Z])/.test(page) ? score - 20 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
