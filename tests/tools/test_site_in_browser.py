# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The manual works in a browser: words are found, diagrams are drawn, and each broken site is refused."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.harness.skips import skip_permanently
from workspace import ROOT, docs, site_browser

pytestmark = pytest.mark.once

PAGES = {
    "index": "# Start\n\n```{toctree}\nstreams\nzh\n```\n",
    "streams": "# Streams and events\n\nA stream orders work.\n\n```mermaid\nflowchart TB\n  a --> b\n```\n",
    "zh": "# 安装与显存管理\n\n缓存分配器管理显存。\n",
}


@pytest.fixture(scope="module")
def tools():
    """Skips unless Sphinx, Playwright, Mermaid's script and a browser are installed."""
    if not docs.PYTHON.exists() or not site_browser.find_browser():
        skip_permanently("manual")
    if not (docs.FOLDER / "diagrams" / "mermaid.min.js").exists():
        skip_permanently("manual", "npm is needed for diagrams")


@pytest.fixture
def build(tools, tmp_path):
    def build(*options, **pages):
        source, site = tmp_path / "source", tmp_path / "site"
        shutil.rmtree(site, ignore_errors=True)
        source.mkdir(exist_ok=True)
        for name, text in {**PAGES, **pages}.items():
            (source / f"{name}.md").write_text(text)
        command = [
            docs.PYTHON,
            "-m",
            "sphinx",
            "-b",
            "html",
            "-q",
            "-c",
            ROOT / "docs",
            *options,
            source,
            site,
        ]
        subprocess.run(command, check=True, capture_output=True)
        return site

    return build


def problems(site):
    done = subprocess.run([docs.PYTHON, site_browser.__file__, site], capture_output=True, text=True)
    assert done.returncode in (0, site_browser.PROBLEMS), done.stderr
    return done.stdout.split("\n")[:-1] if done.returncode else []


def test_a_site_in_two_languages_with_a_diagram_has_no_problems(build):
    assert problems(build()) == []


def test_a_search_script_that_fails_is_refused(build):
    """Sphinx's own class for Chinese names a stemmer that its script does not have."""
    assert any(
        "ChineseStemmer is not defined" in line for line in problems(build("-Dhtml_search_language=zh"))
    )


def test_a_page_that_its_words_do_not_find_is_refused(build):
    """The search index of English alone has no Chinese words."""
    lines = problems(build("-Dhtml_search_language=en"))
    assert any("does not find zh.html" in line for line in lines)


@pytest.mark.parametrize("text", ["%%{init: {}}%%\nflowchart TB\n  a --> b", "flowchart TB\n  a --> ((("])
def test_a_diagram_that_is_not_drawn_is_refused(build, text):
    lines = problems(build(streams=f"# Streams\n\n```mermaid\n{text}\n```\n"))
    assert any(line.startswith("streams.html: ") for line in lines)


def test_a_missing_file_of_the_site_is_refused(build):
    site = build()
    (site / "_static" / "doctools.js").unlink()
    assert any("doctools.js" in line and line.endswith("was not loaded: 404") for line in problems(site))
