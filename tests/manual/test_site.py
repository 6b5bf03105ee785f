# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The site works in a browser and its reference is complete; bad pages and broken sites are refused."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import pytest

from tests.harness.skips import skip_permanently
from tests.harness.tier import commit_number
from tests.manual import browser
from tests.manual.browser import Search
from workspace import ROOT
from workspace.prerequisites import find_browser

sys.path.append(str(ROOT / "docs" / "extensions"))

pytestmark = pytest.mark.once

SITE = ROOT / "build" / "docs" / "site"
GOOD = {
    "index.md": "# Start\n\n```{toctree}\nstreams\nzh\n```\n",
    "streams.md": "# Streams\n\nA stream orders work.\n\n```mermaid\nflowchart TB\n  a --> b\n```\n",
    "zh.md": "# 安装与显存管理\n\n缓存分配器管理显存。\n",
}
SAMPLE = 6  # of so many pages, a run opens one
STARTS = [
    "en/docs/index.html",
    "zh/index.html",
    "en/docs/guide/monitoring.html",
    "en/docs/development/architecture.html",
]
# Words that readers look for, and the page of the manual that is about them.
ENGLISH = {
    "installation": "guide/installation",
    "fraction": "guide/memory",
    "out of memory": "guide/faq",
    "mixed precision": "guide/training",
    "providers": "guide/operators",
    "DataLoader": "guide/performance",
    "mthreads-gmi": "guide/monitoring",
    "TORCH_MUSA_OPS": "guide/environment",
    "compare": "debugging",
    "chrome trace": "profiling",
    "transformers": "packages",
    "muDNN operator": "operators/mudnn_operator",
    "hookimpl": "packs/contract",
    "emptyCache": "reference/cpp/allocator",
    "tune": "reference/commands",
}
CHINESE = {
    "安装": "guide/installation",
    "显存": "guide/memory",
    "显存不足": "guide/faq",
    "混合精度": "guide/training",
    "提供者": "guide/operators",
    "锁页": "guide/performance",
    "功耗": "guide/monitoring",
    "环境变量": "guide/environment",
    "无穷大": "guide/debugging",
    "时间线": "guide/profiling",
    "融合算子": "operators/fused_operator",
    "移植": "operators/cuda_extension",
    "入口点": "packs/tutorial",
    "TORCH_MUSA_FALLBACK": "guide/performance",
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
    made, output = build(tmp_path_factory.mktemp("good"), GOOD, "-D", "html_search_language=en-zh")
    assert "WARNING" not in output, output
    return made


def test_each_bad_page_is_refused(tmp_path):
    listed = "".join(f"{name.removesuffix('.md')}\n" for name in BAD if name != "outside.md")
    index = GOOD["index.md"].replace("zh\n", f"zh\n{listed}")
    _, output = build(tmp_path, GOOD | {"index.md": index} | {name: text for name, (text, _) in BAD.items()})
    lines = [line for line in output.splitlines() if "WARNING" in line]
    missing = [text for _, text in BAD.values() if not any(text in line for line in lines)]
    assert missing == [] and len(lines) == len(BAD), output


def all_pages(site: Path) -> list[str]:
    return sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))


def test_a_site_in_two_languages_with_a_diagram_works(site):
    searches = [Search("search.html", "orders", "streams.html"), Search("search.html", "显存", "zh.html")]
    assert browser.problems(site, all_pages(site), searches) == []
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
        (lambda page: page.write_text("<p style='width: 500px'>wide</p>"), "the page is 508 pixels wide"),
        (
            lambda page: page.write_text("<article><img src='data:image/png;base64,AAAA'></article>"),
            "AAAA is not drawn",
        ),
        (lambda page: page.write_text("<a href='zh.html#nowhere'>x</a>"), "which has no such place"),
        (lambda page: page.write_text("<a href='nowhere.html'>x</a>"), "nowhere.html, which is missing"),
    ],
)
def test_a_broken_site_is_refused(site, tmp_path, change, problem):
    broken = shutil.copytree(site, tmp_path / "site")
    change(broken / "streams.html")
    searches = [Search("search.html", "显存", "zh.html")]
    found = browser.problems(broken, ["streams.html"], searches, limit_ms=5_000)
    assert any(problem in line for line in found), found


def needs_manual():
    if not (SITE / "en" / "objects.inv").exists() or not (SITE / "zh" / "index.html").exists():
        skip_permanently("manual")


def test_the_manual_works_on_a_phone(request):
    """A sample of the pages, by turns, or with --full every page; and twenty words in two languages."""
    needs_manual()
    pages = all_pages(SITE)
    if not request.config.getoption("--full"):
        pages = ["index.html", *STARTS, *pages[commit_number() % SAMPLE :: SAMPLE]]
    searches = [
        *(Search("en/search.html", words, f"en/docs/{page}.html") for words, page in ENGLISH.items()),
        *(Search("zh/search.html", words, f"zh/{page}.html") for words, page in CHINESE.items()),
    ]
    assert len(searches) >= 20
    assert browser.problems(SITE, pages, searches) == []


def test_each_diagram_of_a_page_is_drawn():
    needs_manual()
    import languages  # needs Sphinx

    pages = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("packages/*/README.md")]
    diagrams = {page: page.read_text(encoding="utf-8").count("```mermaid") for page in pages}
    assert sum(diagrams.values()) > 0
    for page, count in diagrams.items():
        manual, name = languages.locate(page)
        file = SITE / manual / f"{name}.html"
        if count and file.exists():
            assert file.read_text(encoding="utf-8").count('type="image/svg+xml"') == count, page


def test_pictures_of_the_manual():
    """Pictures for people, in build/docs/screenshots."""
    needs_manual()
    folder = SITE.with_name("screenshots")
    shown = {
        "start": ("en/docs/index.html", browser.DESKTOP),
        "reference": ("en/docs/reference/python/memory.html", browser.DESKTOP),
        "diagram": ("en/docs/development/architecture.html", browser.DESKTOP),
        "search": ("en/search.html?q=out+of+memory", browser.DESKTOP),
        "phone": ("en/docs/guide/training.html", browser.PHONE),
        "start.zh": ("zh/index.html", browser.DESKTOP),
        "memory.zh": ("zh/guide/memory.html", browser.DESKTOP),
        "phone.zh": ("zh/operators/walkthroughs.html", browser.PHONE),
    }
    with browser.reader(SITE) as opened:
        for name, (page, window) in shown.items():
            opened.take_picture(page, folder / f"{name}.png", window)
        assert opened.found == []


@pytest.mark.parametrize(
    ("page", "language", "texts", "other"),
    [
        ("en/docs/guide/memory.html", "en", ["Search", "Next", "On this page"], "zh/guide/memory.html"),
        ("en/docs/packs/contract.html", "en", [], "zh/index.html"),
        ("zh/guide/memory.html", "zh-CN", ["搜索", "下一页", "本页内容"], "en/docs/guide/memory.html"),
    ],
)
def test_a_page_has_its_language_and_leads_to_the_other(page, language, texts, other):
    needs_manual()
    text = (SITE / page).read_text(encoding="utf-8")
    assert re.search(r"<html [^>]*lang=\"([^\"]+)\"", text)[1] == language
    assert [word for word in texts if word not in text] == []
    [link] = re.findall(r'<a href="([^"]+)" lang="[^"]+" hreflang=', text)
    assert ((SITE / page).parent / link).resolve() == SITE / other


def test_pages_have_the_version_and_no_address_of_a_source_that_is_not_configured(tmp_path):
    made, output = build(tmp_path / "without", {"index.md": "# A\n"})
    text = (made / "index.html").read_text()
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["musa"]["version"]
    assert f"torch_musa {version}" in text and "edit-this-page" not in text, output
    options = ["source_repository=https://github.com/a/b", "source_branch=main", "source_directory="]
    chosen = [word for option in options for word in ("-D", f"html_theme_options.{option}")]
    made, output = build(tmp_path / "with", {"index.md": "# A\n"}, *chosen)
    assert "https://github.com/a/b/edit/main/index.md" in (made / "index.html").read_text(), output


def missing_names(names: set[str], exported: set[str], public: Iterable[str]) -> set[str]:
    """Public names of torch.musa and exported C++ functions that are not among the names of the reference."""
    declared = {name.rpartition("::")[2] for name in names}
    return {name for name in public if f"torch.musa.{name}" not in names} | (exported - declared)


def test_the_reference_is_complete():
    """Every public name of Python and every exported function of the public headers has an entry."""
    needs_manual()
    import torch
    from sphinx.util.inventory import InventoryFile

    from musa_runtime import hookspecs
    from torch_musa import debug

    text = InventoryFile.loads((SITE / "en" / "objects.inv").read_bytes(), uri="")
    names = {name for kind in text.data.values() for name in kind}
    exported = {name for file in public_headers() for name in EXPORTED.findall(file.read_text())}
    assert len(exported) > 40
    public = torch.musa.__all__
    assert missing_names(names, exported, public) == set()
    assert missing_names(names, exported | {"no_such"}, [*public, "not_even_this"]) == {
        "no_such",
        "not_even_this",
    }
    assert [name for name in debug.__all__ if f"torch_musa.debug.{name}" not in names] == []
    hooks = [name for name in vars(hookspecs) if name.startswith("musa_")]
    assert [name for name in hooks if f"musa_runtime.hookspecs.{name}" not in names] == []


def public_headers() -> list[Path]:
    """Headers of c10/musa but those that docs/Doxyfile excludes."""
    excluded = re.findall(r"packages/\S+\.h", (ROOT / "docs" / "Doxyfile").read_text())
    assert [name for name in excluded if not (ROOT / name).is_file()] == []
    headers = ROOT.glob("packages/musa-runtime/csrc/c10/musa/*.h")
    return [header for header in headers if header.relative_to(ROOT).as_posix() not in excluded]


def programs() -> set[str]:
    """Programs of the packages: scripts of wheels, and modules that have options of the command line."""
    found = set()
    for project in ROOT.glob("packages/*/pyproject.toml"):
        found |= set(tomllib.loads(project.read_text())["project"].get("scripts", ()))
    for source in ROOT.glob("packages/*/src/**/*.py"):
        text = source.read_text(encoding="utf-8")
        if "ArgumentParser(" in text and '__name__ == "__main__"' in text:
            module = source.relative_to(next(p for p in source.parents if p.name == "src")).with_suffix("")
            found.add(".".join(module.parts).removesuffix(".__main__"))
    return found


def test_the_reference_has_each_command():
    needs_manual()
    page = (SITE / "en" / "docs" / "reference" / "commands.html").read_text(encoding="utf-8")
    scripts = {script.partition(" ")[0] for script in re.findall(r"(?<=usage: )[\w. -]+", page)}
    modules = set(re.findall(r"usage: python -m ([\w.]+)", page))
    assert programs() - scripts - modules <= {
        "musa_port",
        "musa_compat.converter",
    }  # scripts have their names
    command = [sys.executable, "-m", "torch_musa", "--help"]
    overview = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^ {2,4}([a-z][\w-]*)(?:  |$)", overview, re.MULTILINE)
    assert len(commands) > 5
    assert [name for name in commands if f"usage: python -m torch_musa {name}" not in page] == []
