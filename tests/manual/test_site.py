# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The site works in a browser and its reference is complete; bad pages and broken sites are refused."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.skips import skip_permanently
from tests.manual import browser
from workspace import ROOT
from workspace.prerequisites import find_browser

pytestmark = pytest.mark.once

SITE = ROOT / "build" / "docs" / "site"
GOOD = {
    "index.md": "# Start\n\n```{toctree}\nstreams\nzh\n```\n",
    "streams.md": "# Streams\n\nA stream orders work.\n\n```mermaid\nflowchart TB\n  a --> b\n```\n",
    "zh.md": "# 安装与显存管理\n\n缓存分配器管理显存。\n",
}
# Pages, and the warning that each causes.
BAD = {
    "link.md": ("# A\n\n[x](nowhere.md)\n", "target not found: 'nowhere.md'"),
    "anchor.md": ("# A\n\n[x](streams.md#no-such)\n", "no-such"),
    "outside.md": ("# A\n", "document isn't included in any toctree"),
    "python.md": ("# A\n\n`torch.musa.no_such()`\n", "there is no torch.musa.no_such"),
    "cpp.md": ("# A\n\n`at::musa::Nothing`\n", "the C++ headers declare no Nothing"),
    "verb.md": ("# A\n\n```bash\npython3 tools/dev.py publish\n```\n", "tools/dev.py has no verb publish"),
    "diagram.md": ("# A\n\n```mermaid\nflowchart TB\n  a --> (((\n```\n", "Mermaid exited with error"),
}
# A declaration, at the beginning of a line, of a function that other libraries may call.
EXPORTED = re.compile(r"^C10_MUSA_API (?:[\w:<>*&,]+ )+?[*&]?(\w+)\(", re.MULTILINE)


def build(folder: Path, pages: dict[str, str], *options: str) -> tuple[Path, str]:
    """The site of some pages, and what Sphinx prints."""
    if importlib.util.find_spec("sphinx") is None or not find_browser() or not shutil.which("doxygen"):
        skip_permanently("manual")
    if not (ROOT / "build" / "docs" / "mermaid.min.js").exists():
        skip_permanently("manual", "npm is needed for diagrams")
    (folder / "source").mkdir(parents=True)
    for name, text in pages.items():
        (folder / "source" / name).write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-c",
        ROOT / "docs",
        "-D",
        "root_doc=index",
        "-D",
        "include_patterns=**",
    ]
    done = subprocess.run(
        [*command, *options, folder / "source", folder / "site"], capture_output=True, text=True
    )
    return folder / "site", done.stdout + done.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    made, output = build(tmp_path_factory.mktemp("good"), GOOD)
    assert "WARNING" not in output, output
    return made


def test_each_bad_page_is_refused(tmp_path):
    listed = "".join(f"{name.removesuffix('.md')}\n" for name in BAD if name != "outside.md")
    index = GOOD["index.md"].replace("zh\n", f"zh\n{listed}")
    _, output = build(tmp_path, GOOD | {"index.md": index} | {name: text for name, (text, _) in BAD.items()})
    lines = [line for line in output.splitlines() if "WARNING" in line]
    missing = [text for _, text in BAD.values() if not any(text in line for line in lines)]
    assert missing == [] and len(lines) == len(BAD), output


def test_a_site_in_two_languages_with_a_diagram_works(site):
    assert browser.problems(site, {"orders": "streams.html", "显存": "zh.html"}) == []
    assert list(site.rglob("*.svg")) and "image/svg+xml" in (site / "streams.html").read_text()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            lambda page: page.with_name("_static").joinpath("doctools.js").unlink(),
            "doctools.js is missing",
        ),
        (
            lambda page: page.write_text("<script src='https://example.org/a.js'></script>"),
            "example.org/a.js is missing or on another host",
        ),
        (lambda page: page.write_text("<script>undefined.x</script>"), "Cannot read properties of undefined"),
        (
            lambda page: page.with_name("searchindex.js").write_text("Search.setIndex({})"),
            "does not find zh.html",
        ),
    ],
)
def test_a_broken_site_is_refused(site, tmp_path, change, problem):
    broken = shutil.copytree(site, tmp_path / "site")
    change(broken / "streams.html")
    assert any(problem in line for line in browser.problems(broken, {"显存": "zh.html"}))


def needs_manual():
    if not (SITE / "objects.inv").exists():
        skip_permanently("manual")


def test_the_manual_works():
    needs_manual()
    pages = {"fraction": "docs/guide/memory.html", "缓存分配器": "docs/zh/guide/memory.html"}
    assert browser.problems(SITE, pages) == []


def test_the_reference_is_complete():
    """Every public name of torch.musa and every exported function of the public headers has an entry."""
    needs_manual()
    import torch
    from sphinx.util.inventory import InventoryFile

    text = InventoryFile.loads((SITE / "objects.inv").read_bytes(), uri="")
    names = {name for kind in text.data.values() for name in kind}
    assert [name for name in torch.musa.__all__ if f"torch.musa.{name}" not in names] == []
    headers = [
        file.read_text()
        for file in (ROOT / "packages" / "musa-runtime" / "csrc" / "c10" / "musa").glob("*.h")
    ]
    exported = {name for header in headers for name in EXPORTED.findall(header)}
    declared = {name.rpartition("::")[2] for name in names}
    assert len(exported) > 40 and exported - declared == set()
