# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each check of `dev.py docs` refuses its bad case: links, navigation, names, verbs, code, other hosts."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from types import SimpleNamespace

import pytest

import dev
import pages
from workspace import ROOT, WorkspaceError, diagrams, docs, page_runner, site_pages

pytestmark = pytest.mark.once


def make(root, **texts):
    """A tree with pages; the argument `a__b` is the text of docs/a/b.md."""
    for name, text in texts.items():
        path = root / "docs" / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return site_pages.collect(root, {})


# -- links


def rewritten(root, page="docs/index.md", repository="", **texts):
    links = site_pages.Links(make(root, **texts), root, repository)
    return links.rewrite(links.pages[page]).strip(), links.problems


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("[x](nowhere.md)", "docs/index.md:1: nowhere.md does not exist"),
        ("![x](nowhere.png)", "docs/index.md:1: nowhere.png does not exist"),
        ("[x](a/b.md#no-such)", "docs/index.md:1: docs/a/b.md has no heading #no-such"),
        ("[of two\nlines](nowhere.md)", "docs/index.md:1: nowhere.md does not exist"),
        ("[x](#no-such)", "docs/index.md:1: docs/index.md has no heading #no-such"),
    ],
)
def test_a_broken_link_is_refused(tmp_path, link, problem):
    _, problems = rewritten(tmp_path, index=link, a__b="# B\n")
    assert problems == [problem]


def test_links_lead_to_the_place_in_the_site(tmp_path):
    readme = tmp_path / "packages" / "musa-x" / "README.md"
    readme.parent.mkdir(parents=True)
    readme.write_text("# X\n[back](../../docs/index.md)\n")
    (tmp_path / "tool.py").write_text("")
    text = "# Index page\n[a](a/b.md#b-c-d) [x](../packages/musa-x/README.md) [t](../tool.py) [o](https://example.org)"
    new, problems = rewritten(tmp_path, index=text, a__b="# `b` c: d\n")
    assert problems == []
    assert (
        new.splitlines()[1]
        == "[a](a/b.md#b-c-d) [x](packages/musa-x.md) t (`tool.py`) [o](https://example.org)"
    )
    assert rewritten(tmp_path, "packages/musa-x/README.md")[0].endswith("[back](../index.md)")
    source, _ = rewritten(tmp_path, repository="https://example.org/r", index="[t](../tool.py)")
    assert source == "[t](https://example.org/r/blob/main/tool.py)"


def test_links_in_code_are_left_alone(tmp_path):
    text = "`[x](nowhere.md)`\n\n```python\nlist[0](nowhere)\n```"
    assert rewritten(tmp_path, index=text) == (text, [])


# -- navigation


def test_a_page_outside_of_the_navigation_is_refused():
    sections = {"Guide": ["docs/a.md", "docs/gone.md", "docs/b.md"], "More": ["docs/b.md"]}
    assert site_pages.navigation_problems(
        ["docs/index.md", "docs/a.md", "docs/b.md", "docs/c.md"], sections
    ) == [
        "docs/c.md: not in docs/navigation.toml",
        "docs/navigation.toml: docs/b.md is listed 2 times",
        "docs/navigation.toml: there is no page docs/gone.md",
    ]


def test_a_section_without_pages_is_refused():
    text = '[[section]]\ntitle = "A"\npages = [\n  "docs/a.md",\n]\n'
    assert site_pages.navigation(text) == {"A": ["docs/a.md"]}
    with pytest.raises(WorkspaceError, match="needs `title"):
        site_pages.navigation(text + '[[section]]\ntitle = "B"\n')


def test_every_page_of_the_tree_is_in_the_navigation_and_its_links_lead_somewhere(tmp_path):
    all_pages = site_pages.collect(ROOT, dict.fromkeys(docs.REFERENCE.values(), ""))
    sections = site_pages.navigation((ROOT / site_pages.NAVIGATION).read_text(encoding="utf-8"))
    assert site_pages.navigation_problems(all_pages, sections) == []
    assert site_pages.stage(all_pages, sections, ROOT, tmp_path / "source", "") == []
    assert site_pages.verb_problems(all_pages.values(), dev.VERBS) == []
    start = (tmp_path / "source" / "index.md").read_text()
    assert start.count("{toctree}") == len(sections) and "\ndesign/manual\n" in start


# -- verbs and names


def test_a_verb_that_does_not_exist_is_refused():
    page = site_pages.Page("docs/a.md", "a.md", "run\n`python3 tools/dev.py docs` or tools/dev.py publish\n")
    assert site_pages.verb_problems([page], dev.VERBS) == ["docs/a.md:2: tools/dev.py has no verb publish"]


def test_a_name_that_does_not_exist_is_refused():
    text = (
        "`torch.musa.synchronize()` `torch.musa.no_such()`\n`torch_musa.utils.cpp_extension.MUSAExtension`\n"
    )
    text += "torch.musa.prose is not code; `c10::musa::MUSAStream` `at::musa::Nothing`\n"
    assert page_runner.name_problems("a.md", text, {"MUSAStream"}) == [
        "a.md:1: there is no torch.musa.no_such",
        "a.md:3: the C++ headers declare no Nothing",
    ]


# -- code blocks


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("```python\nx = 1\nx.y\n```", "a.md:1: the block fails"),
        ("```python\nraise SystemExit(0)\n```", "a.md:1: the block fails"),
        ("\n```bash\nexit 3\n```", "a.md:2: the block ends with 3"),
        ("```bash\nfalse | true\n```", "a.md:1: the block ends with 1"),
        (
            "```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```",
            "a.md:5: the page says '2', the program prints '1'",
        ),
        ("<!-- output -->\n```text\n2\n```", "a.md:2: no block before this output runs"),
        ("<!-- not run: -->\n```python\n1/0\n```", "a.md:2: the block fails"),
    ],
)
def test_a_block_that_does_not_run_is_refused(tmp_path, text, problem):
    [found] = page_runner.block_problems("a.md", text, tmp_path)
    assert found.startswith(problem)


def test_blocks_share_variables_and_marked_ones_do_not_run(tmp_path):
    text = "```python\nx = 1\n```\n<!-- not run: needs a GPU -->\n```python\n1 / 0\n```\n"
    text += "```python\nprint(x)\n```\n"
    text += "\n<!-- output -->\n```text\n1\n```\n```bash\ntouch made\n```\n```cpp\nint x\n```\n"
    assert page_runner.block_problems("a.md", text, tmp_path) == []
    assert (tmp_path / "made").exists()


def test_files_of_a_page_are_written_and_commands_run_in_their_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "<!-- file: a/b.py -->\n```python\nprint(1 / 1)\n```\n"
    text += f"<!-- in: a -->\n```bash\n{sys.executable} b.py\n```\n<!-- output -->\n```text\n1.0\n```\n"
    assert page_runner.block_problems("a.md", text, tmp_path) == []
    with pytest.raises(ValueError, match="is not below the directory"):
        page_runner.block_problems("a.md", "<!-- file: ../b.py -->\n```python\n```\n", tmp_path)


def test_the_directory_of_a_page_keeps_only_unchanged_files_of_the_page(tmp_path):
    text = "<!-- file: a/same.txt -->\n```text\n1\n```\n<!-- file: other.txt -->\n```text\n2\n```\n"
    page_runner.prepare(tmp_path / "new", text)
    contents = {"a/same.txt": "1\n", "other.txt": "2\n", "b/c/left.txt": "", "d.so": "", "a/build/e.o": ""}
    for name, content in contents.items():
        page_runner.write_file(tmp_path, name, content)

    def kept():
        page_runner.prepare(tmp_path, text)
        return {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}

    assert kept() == {"a/same.txt", "other.txt", "a/build/e.o"}
    (tmp_path / "other.txt").write_text("1\n")
    assert kept() == {"a/same.txt"}


def test_the_blocks_of_a_page_with_its_own_test_do_not_run_and_the_test_must_exist(tmp_path):
    text = "<!-- followed by tests/test_a.py -->\n```python\n1 / 0\n```\n"
    assert not page_runner.runs(text)
    absent = ["docs/a.md: tests/test_a.py does not follow this page"]
    assert page_runner.followed_problems("docs/a.md", text, tmp_path) == absent
    test = tmp_path / "tests" / "test_a.py"
    test.parent.mkdir()
    test.write_text("")
    assert page_runner.followed_problems("docs/a.md", text, tmp_path) == absent
    test.write_text('PAGE = ROOT / "docs" / "a.md"\n')
    assert page_runner.followed_problems("docs/a.md", text, tmp_path) == []


def test_a_page_whose_process_dies_or_hangs_is_refused():
    killed = "```python\nimport os\nos._exit(7)\n```"
    assert page_runner.run_page("a.md", killed) == [
        "a.md: the process of its code blocks ended with status 7"
    ]
    hangs = "```python\nimport time\ntime.sleep(60)\n```"
    assert page_runner.run_page("a.md", hangs, limit=0.5) == ["a.md: its code blocks took more than 0.5 s"]


def test_a_fence_that_is_not_closed_is_refused():
    with pytest.raises(ValueError, match="begins in line 2 is not closed"):
        pages.code_blocks("text\n```python\nx = 1\n")


# -- the site


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example.org/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/a.css">',
        "<img alt='' src='http://example.org/a.png'>",
        '@import "https://example.org/a.css";',
        "src: url(https://example.org/a.woff2)",
    ],
)
def test_a_file_that_loads_from_another_host_is_refused(tmp_path, text):
    (tmp_path / "a.html").write_text(text)
    [problem] = docs.external_problems(tmp_path)
    assert problem.startswith("a.html: loads ") and "example.org" in problem


def test_a_link_to_another_host_is_not_loaded():
    assert (
        site_pages.external('<a href="https://example.org">x</a><link rel="canonical" href="https://a.b">')
        == []
    )


def test_all_problems_are_in_one_error():
    site_pages.refuse([])
    with pytest.raises(WorkspaceError, match=r"(?s)was not built:\na:1: x\nb:2: y"):
        site_pages.refuse(["a:1: x", "b:2: y"])


def test_a_crash_of_the_program_that_runs_pages_is_no_success():
    with pytest.raises(WorkspaceError, match="could not be run"):
        docs.run_pages([SimpleNamespace(source="docs/absent.md")], code=False)


def test_the_script_of_diagrams_comes_from_the_pinned_archive_only(tmp_path, monkeypatch):
    archive = tmp_path / "mermaid.tgz"
    with tarfile.open(archive, "w:gz") as files:
        info = tarfile.TarInfo(f"package/dist/{diagrams.SCRIPT}")
        info.size = 3
        files.addfile(info, io.BytesIO(b"1+1"))
    target = tmp_path / diagrams.SCRIPT
    with pytest.raises(WorkspaceError, match="is not the pinned archive"):
        diagrams.extract(archive, target, "0" * 64)
    assert not target.exists()
    diagrams.extract(archive, target, hashlib.sha256(archive.read_bytes()).hexdigest())
    assert target.read_bytes() == b"1+1" and diagrams.fetch(tmp_path) is None
    monkeypatch.setenv("PATH", str(tmp_path))
    assert diagrams.fetch(tmp_path / "empty") == "npm is not installed"
