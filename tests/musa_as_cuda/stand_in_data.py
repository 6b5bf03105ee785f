# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Small generated data sets in the formats that the scripts read, in place of those that they download.

Each function of this module whose name is in `scripts.yaml` gets the folder of a script's checkout.
"""

from __future__ import annotations

import io
import random
import tarfile
from pathlib import Path

import numpy as np

_SUBJECTS = ("the king", "my lord", "a soldier", "the queen", "his brother", "a messenger", "the fool")
_VERBS = ("speaks to", "hears of", "fears", "follows", "leaves", "finds", "loves", "fights")
_OBJECTS = ("the city", "a crown", "her father", "the war", "no man", "the night", "an old friend")

# Serves the file cora.tgz of the script's folder for every address.
_REQUESTS = """
import pathlib


class _Response:
    status_code = 200

    def __init__(self):
        self.raw = open("cora.tgz", "rb") if pathlib.Path("cora.tgz").exists() else None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.raw.close()


def get(url, stream=False):
    return _Response()
"""


def text(seed: int, lines: int) -> str:
    """Sentences of a few subjects, verbs and objects: enough structure for a loss that falls."""
    choose = random.Random(seed).choice
    return "".join(f"{choose(_SUBJECTS)} {choose(_VERBS)} {choose(_OBJECTS)} .\n" for _ in range(lines))


def words(folder: Path) -> None:
    """word_language_model: train.txt, valid.txt and test.txt."""
    target = folder / "word_language_model" / "data" / "wikitext-2"
    target.mkdir(parents=True, exist_ok=True)
    for seed, (name, lines) in enumerate({"train": 1500, "valid": 200, "test": 200}.items()):
        (target / f"{name}.txt").write_text(text(seed, lines))


def penn(folder: Path) -> None:
    """TCN's word and character models: the Penn treebank's three files."""
    target = folder / "TCN" / "word_cnn" / "data" / "penn"
    target.mkdir(parents=True, exist_ok=True)
    for seed, (name, lines) in enumerate({"train": 1500, "valid": 200, "test": 200}.items()):
        (target / f"{name}.txt").write_text(text(seed, lines))


def input_txt(folder: Path) -> None:
    """For scripts that read input.txt from their own folder."""
    (folder / "input.txt").write_text(text(0, 4000))


def char_rnn(folder: Path) -> None:
    """char-rnn.pytorch: a text file; `unidecode`, which leaves ASCII as it is."""
    input_txt(folder)
    (folder / "unidecode.py").write_text("def unidecode(text):\n    return text\n")


def chargpt(folder: Path) -> None:
    """minGPT's chargpt: input.txt in its working folder, with the letters of the text that it continues."""
    (folder / "projects" / "chargpt" / "input.txt").write_text(f"O God, O God!\n{text(0, 4000)}")


def shakespeare_char(folder: Path) -> None:
    """nanoGPT: the text that prepare.py encodes; modules that it imports for downloads and other tokens."""
    input_txt(folder / "data" / "shakespeare_char")
    (folder / "tiktoken.py").write_text("")
    (folder / "data" / "shakespeare_char" / "requests.py").write_text("")


def cora_lines(seed: int = 0, papers: int = 1600, classes: int = 7, features: int = 100) -> tuple[str, str]:
    """The two files of the Cora data set: papers with words and a class, and citations within classes."""
    numbers = np.random.default_rng(seed)
    labels = numbers.integers(classes, size=papers)
    likely = numbers.random((classes, features)) < 0.15
    present = numbers.random((papers, features)) < np.where(likely[labels], 0.3, 0.02)
    content = "".join(
        f"{1000 + paper}\t" + "\t".join(map(str, present[paper].astype(int))) + f"\tClass_{labels[paper]}\n"
        for paper in range(papers)
    )
    cites = []
    for paper in range(papers):
        same = np.flatnonzero(labels == labels[paper])
        cites += [f"{1000 + other}\t{1000 + paper}\n" for other in numbers.choice(same, 2) if other != paper]
    return content, "".join(cites)


def cora(folder: Path) -> None:
    """pygcn and pyGAT: data/cora."""
    target = folder / "data" / "cora"
    target.mkdir(parents=True, exist_ok=True)
    for name, lines in zip(("content", "cites"), cora_lines(), strict=True):
        (target / f"cora.{name}").write_text(lines)


def cora_archive(folder: Path) -> None:
    """gcn and gat of pytorch/examples: the archive that they download, and `requests`, which serves it."""
    for example in ("gcn", "gat"):
        (folder / example).mkdir(exist_ok=True)
        (folder / example / "requests.py").write_text(_REQUESTS)
        # gat.main takes the first 140 papers for training, 500 to validate and 1000 to test.
        with tarfile.open(folder / example / "cora.tgz", "w:gz") as archive:
            for name, lines in zip(("content", "cites"), cora_lines(papers=2708, features=60), strict=True):
                data = lines.encode()
                member = tarfile.TarInfo(f"cora/cora.{name}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
