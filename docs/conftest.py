# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs the code blocks of pages with Sybil: `pytest docs/guide/memory.md`, or `pytest docs` for all.

The test of a page runs its blocks in order, in a process of its own. docs/design/manual.md has the comments
that mark blocks.
"""

import contextlib
import io
import multiprocessing
import os
import re
import subprocess
import sys
import traceback
import unittest
from pathlib import Path

import pytest
from sybil import Region, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import SkipParser
from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "build" / "docs" / "run"
MARK = re.compile(r"<!-- (output|file|in)(?:: (?!/|.*\.\.)(\S+))? -->")
LIMIT = 580  # seconds for the blocks of a page; pytest ends a test after 600
# Chinese pages have the code of their English pages: tests/manual/test_chinese_pages.py
collect_ignore = ["zh"]


def compare(example):
    printed = getattr(example.document, "printed", None)
    assert printed is not None, "no block before this output runs"
    assert printed.strip() == example.parsed.strip(), (
        f"the page says {example.parsed!r}, the program prints {printed!r}"
    )


def write(example):
    path = Path(example.region.lexemes["argument"])
    # The time of an unchanged file stays, so that extensions are compiled only after a change.
    if not path.is_file() or path.read_text() != example.parsed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(example.parsed)


def run_python(example):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        PythonEvaluator()(example)
    example.document.printed = output.getvalue()


def run_bash(example):
    folder = Path(example.region.lexemes["argument"] or ROOT)
    command = ["bash", "-euo", "pipefail", "-c", example.parsed]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"the block ends with {done.returncode}\n{done.stdout}{done.stderr}"
    example.document.printed = done.stdout


def blocks(document):
    """The parser of Sybil: the blocks of a page that run, its files, and the outputs of blocks."""
    for region in FencedCodeBlockLexer(r"[\w+-]*")(document):
        mark = MARK.fullmatch(document.text[: region.start].rstrip("\n").rpartition("\n")[2])
        kind, region.lexemes["argument"] = mark.groups() if mark else ("", "")
        language = {"python": run_python, "bash": run_bash}.get(region.lexemes["language"])
        run = {"output": compare, "file": write}.get(kind, language)
        if run:
            yield Region(region.start, region.end, region.lexemes["source"], run, region.lexemes)


SYBIL = Sybil(parsers=[SkipParser(), blocks])


def evaluate(path, folder):
    """Runs the blocks of a page in this process; returns the first problem, or an empty text."""
    os.chdir(folder)
    document = SYBIL.parse(path)
    document.namespace["__name__"] = "__main__"
    for example in document.examples():
        try:
            example.evaluate()
        except unittest.SkipTest:
            continue
        except BaseException:  # noqa: BLE001 - a block may raise anything, SystemExit too
            return f"{path}:{example.line}: the block fails\n{traceback.format_exc(limit=-3)}"
    return ""


def run_page(path, folder, limit=LIMIT):
    """Runs the blocks of a page in a fork; returns the first problem, or an empty text."""
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=lambda: results.put(evaluate(path, folder)[:50_000]))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        return f"{path}: its blocks take more than {limit} s"
    return (
        results.get()
        if process.exitcode == 0
        else f"{path}: its process ended with status {process.exitcode}"
    )


class Blocks(pytest.Item):
    def runtest(self):
        import torch  # noqa: F401 - once for all pages; the device is first used in the forks

        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        os.environ["TORCH_EXTENSIONS_DIR"] = str(FILES.parent / "extensions")
        if problem := run_page(self.path, FILES / self.path.relative_to(ROOT)):
            pytest.fail(problem, pytrace=False)


class Page(pytest.File):
    def collect(self):
        if any(
            example.region.evaluator in (run_python, run_bash)
            for example in SYBIL.parse(self.path).examples()
        ):
            yield Blocks.from_parent(self, name="blocks")


def pytest_collect_file(file_path, parent):
    return Page.from_parent(parent, path=file_path) if file_path.suffix == ".md" else None
