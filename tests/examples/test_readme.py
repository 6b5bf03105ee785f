# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The front pages: the program runs; commands, extras and versions are the tree's, figures the record's.

tests/manual/test_claims.py compares other claims with the records.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import dev
import workspace.versions
from docs import front_page
from tests.harness import pages
from tests.harness.device import DEVICE
from tests.manual.test_chinese_pages import code

ROOT = Path(__file__).resolve().parents[2]
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh.md"
GUIDES = {ENGLISH: "docs/guide", CHINESE: "docs/zh/guide"}
# Pages whose commands a reader types before anything is installed.
INSTALLATION = [
    ENGLISH,
    ROOT / "docs" / "guide" / "installation.md",
    ROOT / "docs" / "guide" / "gpu.md",
    ROOT / "packages" / "torch-musa" / "README.md",
]
both = pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=lambda page: page.name)


def code_blocks(text: str, language: str) -> list[str]:
    return [block.text for block in pages.code_blocks(text) if block.language == language]


def test_the_first_program_runs():
    [program] = code_blocks(ENGLISH.read_text(), "python")
    if DEVICE != "musa":
        pytest.skip("the README's program is about the device musa; MUSA_TEST_DEVICE names another")
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "2.4000, 4.6000" in result.stdout and "musa:0" in result.stdout


@pytest.mark.once
def test_the_chinese_front_page_has_the_code_of_the_english_one():
    assert code(CHINESE.read_text()) == code(ENGLISH.read_text())


@pytest.mark.once
def test_ci_runs_the_commands_that_the_readme_gives():
    commands = [
        line.split("#")[0].strip()
        for block in code_blocks(ENGLISH.read_text(), "bash")
        for line in block.splitlines()
    ]
    ci = re.findall(r"^step (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    assert "python3 tools/dev.py demo" in commands
    assert "python3 tools/dev.py test" in commands and "python3 tools/dev.py test" in ci
    assert "python3 tools/dev.py lint --device-pass" in ci


@pytest.mark.once
@both
def test_a_front_page_links_to_the_whole_guide(page):
    folder = GUIDES[page]
    linked = set(re.findall(rf"\]\({folder}/(\w+)\.md[)#]", page.read_text()))
    assert {path.stem for path in (ROOT / folder).glob("*.md")} <= linked


@pytest.mark.once
def test_every_package_is_in_the_table():
    listed = re.findall(r"^\| \[`([\w-]+)`\]", (ROOT / "docs/guide/wheels.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))


# The figures of the whole programs


def wrong_figures(text: str, record: dict, chinese: bool) -> list[str]:
    """The phrases about the programs that a front page should have and has not."""
    words = front_page.summary(record)
    phrases = (
        ("{programs} 个完整程序", "中位数是 {median}", "{near} 个程序在 1.10 以内",
         "最大的是 {largest}", "{memory} 个程序的显存峰值")
        if chinese
        else ("{programs} whole programs", "ratios of times is {median},", "{near} programs are within 1.10",
              "largest ratio is {largest},", "in {memory} programs")
    )  # fmt: skip
    plain = " ".join(text.split())
    return [phrase for phrase in (phrase.format(**words) for phrase in phrases) if phrase not in plain]


@pytest.mark.once
@both
def test_the_figures_are_those_of_the_record(page):
    record = front_page.read_record()
    assert wrong_figures(page.read_text(), record, page == CHINESE) == []
    record["rows"][0]["ratio"], record["rows"][1]["ratio"] = 1.5, 1.7
    assert wrong_figures(page.read_text(), record, page == CHINESE)


@pytest.mark.once
def test_the_table_of_programs_is_that_of_the_record():
    record = front_page.read_record()
    page = front_page.TABLE_PAGE.read_text()
    fix = "run: python docs/front_page.py"
    assert front_page.update_table(page, record) == page, fix
    record["rows"][3]["musa_ms"] += 1
    assert front_page.update_table(page, record) != page
    with pytest.raises(ValueError, match="has no table"):
        front_page.update_table("# Page\n", record)


def missing_in_figure(svg: str, record: dict) -> list[str]:
    """Titles and ratios of programs that are no text of the figure, in the order of the ratios."""
    texts = iter(re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    names = front_page.labels(record)
    wanted = [title for title, _ in names] + [number for _, number in names]
    drawn = {text.removesuffix(" →") for text in texts}
    return [text for text in wanted if text not in drawn]


@pytest.mark.once
def test_the_figure_shows_the_programs_of_the_record():
    svg = (front_page.FIGURES / "programs.svg").read_text()
    record = front_page.read_record()
    assert missing_in_figure(svg, record) == [], "run: python docs/front_page.py"
    record["rows"][0] |= {"ratio": 7.77, "title": "another program"}
    assert missing_in_figure(svg, record) == ["another program", "7.77"]


def unknown_programs(record: dict) -> list[str]:
    names = set(
        re.findall(r'^    "([\w-]+)": Program\(', (ROOT / "benchmarks/gpu/programs.py").read_text(), re.M)
    )
    assert len(names) == record["programs_of_the_benchmark"]
    return [row["program"] for row in record["rows"] if row["program"] not in names]


@pytest.mark.once
def test_the_record_is_of_programs_of_the_benchmark():
    record = front_page.read_record()
    assert unknown_programs(record) == []
    rows = record["rows"]
    assert len({row["program"] for row in rows}) == len(rows)
    # The ratio was computed before its operands were rounded.
    assert all(abs(row["musa_ms"] / row["cuda_ms"] / row["ratio"] - 1) < 0.04 for row in rows)
    rows[0]["program"] = "llama-dream"
    assert unknown_programs(record) == ["llama-dream"]


def claims_a_run(page: str, records: str) -> list[str]:
    """Rows of "What works" that claim a Moore Threads GPU, if no record is of an MTT card."""
    rows = re.findall(r"^\|.*\| ([^|]+) \|$", page.split("H100", 1)[1].split("\n\n", 1)[0], re.MULTILINE)
    assert len(rows) > 5
    return [] if "MTT " in records else [row for row in rows if row not in ("not yet", "尚未运行")]


@pytest.mark.once
@both
def test_no_run_on_a_moore_threads_gpu_is_claimed_without_a_record(page):
    records = (ROOT / "docs" / "records.json").read_text()
    text = page.read_text()
    assert claims_a_run(text, records) == []
    changed = re.sub(r"\| (?:not yet|尚未运行) \|\n", "| S4000 |\n", text, count=2)
    assert claims_a_run(changed, records) == ["S4000"]
    assert claims_a_run(changed, records + "MTT S4000") == []


# Extras, commands and versions


@functools.cache
def extras() -> frozenset[str]:
    project = (ROOT / "packages" / "torch-musa" / "pyproject.toml").read_text()
    table = re.search(r"^\[project\.optional-dependencies\]\n(.*?)^\[", project, re.MULTILINE | re.DOTALL)
    return frozenset(re.findall(r"^([\w-]+) = \[", table[1], re.MULTILINE))


def unknown_extras(text: str) -> list[str]:
    named = re.findall(r"torch-musa\[([\w,-]+)\]", text)
    named += re.findall(r"\bextra `([\w-]+)`", text)
    return [name for names in named for name in names.split(",") if name not in extras()]


def wrong_tables_of_extras(text: str) -> list[str]:
    """Extras that the table of a page lacks, and those of the row `all` that differ from the tree's."""
    rows = dict(re.findall(r"^\| `(?:torch-musa\[)?([\w-]+)\]?`[^|]*\| (.*) \|$", text, re.MULTILINE))
    project = (ROOT / "packages" / "torch-musa" / "pyproject.toml").read_text()
    everything = re.search(r'^all = \["torch-musa\[([^\]]*)\]"\]', project, re.MULTILINE)[1].split(",")
    alias = {"mccl"}  # of distributed, in its row
    found = [name for name in sorted(extras() - alias) if name not in rows]
    return found + sorted(set(re.findall(r"`([\w-]+)`", rows.get("all", ""))) ^ set(everything))


@pytest.mark.once
@pytest.mark.parametrize(
    "page", ["docs/guide/installation.md", "docs/zh/guide/installation.md", "packages/torch-musa/README.md"]
)
def test_tables_of_extras_are_complete(page):
    text = (ROOT / page).read_text()
    assert wrong_tables_of_extras(text) == []
    assert wrong_tables_of_extras(text.replace("`math`, ", "").replace("`math`、", "")) == ["math"]
    assert wrong_tables_of_extras(re.sub(r"\| `(torch-musa\[)?vision.*\n", "", text)) == ["vision"]


def runs(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, cwd=ROOT).returncode == 0


def refuses(parse: Callable[[list[str]], object], words: list[str]) -> bool:
    try:
        parse(words)
    except SystemExit:
        return True
    return False


@functools.cache
def known(module: str, command: str) -> bool:
    return runs([sys.executable, "-m", module, command, "--help"])


def unknown_commands(text: str) -> list[str]:
    """Lines of bash blocks with a verb or option that dev.py or torch_musa does not have."""
    found = []
    for block in code_blocks(text, "bash"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:2] == ["python3", "tools/dev.py"]:
                if refuses(dev.parser().parse_args, words[2:]):
                    found.append(line)
            elif words[:3] == ["python", "-m", "torch_musa"] and not known("torch_musa", words[3]):
                found.append(line)
    return found


@pytest.mark.once
@pytest.mark.parametrize(
    "page", [*INSTALLATION, CHINESE], ids=lambda page: page.parent.name + "/" + page.name
)
def test_extras_and_commands_of_the_pages_exist(page, capsys):
    text = page.read_text()
    assert unknown_extras(text) == []
    assert unknown_commands(text) == []


@pytest.mark.once
def test_extras_and_commands_that_do_not_exist_are_found(capsys):
    assert unknown_extras("`pip install 'torch-musa[all,gpu]'`, the extra `fast`") == ["gpu", "fast"]
    wrong = ["python3 tools/dev.py wheel --local", "python -m torch_musa cure"]
    page = "\n".join(["```bash", *wrong, "python3 tools/dev.py test --leg a", "```", ""])
    assert unknown_commands(page) == wrong


def wrong_versions(text: str, settings: str) -> list[str]:
    """Texts about versions and wheels that differ from [tool.musa]."""
    served = workspace.versions.torch_range(settings)
    packages = re.search(r"^packages = \[(.*?)\]", settings, re.MULTILINE | re.DOTALL)[1].count('"') // 2
    torch = re.search(r'^torch = "([\d.]+)"', settings, re.MULTILINE)[1]
    chinese = "个 wheel" in text
    wanted = [
        f"| torch | {torch}\uff1a" if chinese else f"| torch | {torch}: ",
        f"{served.oldest} 至 {served.newest}" if chinese else f"{served.oldest} to {served.newest}",
        f"{packages} 个 wheel" if chinese else f"{packages} wheels",
        f"pip install torch=={torch}.",
    ]
    return [phrase for phrase in wanted if phrase not in text]


@pytest.mark.once
@both
def test_versions_and_the_number_of_wheels_are_the_trees(page):
    settings = (ROOT / "pyproject.toml").read_text()
    assert wrong_versions(page.read_text(), settings) == []
    other = settings.replace('oldest-torch = "', 'oldest-torch = "1').replace('"musa-compat", ', "")
    assert len(wrong_versions(page.read_text(), other)) == 2


def refused_orders(text: str) -> list[str]:
    """The orders of providers in a text that the registry refuses."""
    return [
        order
        for order in sorted(set(re.findall(r"TORCH_MUSA_OPS=([\w,-]+)", text)))
        if not runs(
            [
                "env",
                f"TORCH_MUSA_OPS={order}",
                sys.executable,
                "-c",
                "import torch; torch.ones(1, device='musa')",
            ]
        )
    ]


@pytest.mark.once
@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported")
def test_providers_in_orders_exist():
    text = "".join(page.read_text() for page in [*INSTALLATION, CHINESE, ROOT / "docs/zh/guide/gpu.md"])
    assert refused_orders(text) == []
    assert refused_orders("TORCH_MUSA_OPS=mudnn,hots python x.py") == ["mudnn,hots"]


def test_the_record_is_json_of_one_row_a_line():
    text = front_page.RECORD.read_text()
    assert text.count('{"program"') == len(json.loads(text)["rows"]) == len(re.findall(r"^  \{", text, re.M))
