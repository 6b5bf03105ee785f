# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The HTML report is one file that opens without a network and has the findings of the tools."""

import html
import json
import re
from html.parser import HTMLParser

import pytest
import torch

from tests.torch_musa.debug.planted import planted, with_nan, wrong
from tests.torch_musa.debug.programs import GPT, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


class Page(HTMLParser):
    """Parses a page: the addresses that a browser would load, and elements that are not closed."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.open, self.scripts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.loads += [
            value for name, value in attributes if name in ("src", "href", "srcset", "data", "action")
        ]
        if tag not in ("meta", "input", "link", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)


@pytest.fixture
def page(tmp_path):
    step = Training(GPT())
    with (
        planted("gelu", wrong("gelu")),
        planted("native_layer_norm", with_nan("native_layer_norm")),
        debug.compare(None) as comparison,
        debug.track_nonfinite() as tracker,
        debug.log_operators() as log,
    ):
        step()
    debug.write_report(tmp_path / "report.html", comparison, tracker, log, title="a <title> & more")
    return (tmp_path / "report.html").read_text(encoding="utf-8"), comparison, tracker


def test_nothing_is_loaded_from_elsewhere(page):
    text, _, _ = page
    parsed = Page(text)
    assert parsed.open == [] and parsed.loads == []
    assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert "<h1>a &lt;title&gt; &amp; more</h1>" in text and not re.search(r"<!--\w+-->", text)


def test_findings_and_their_modules_are_on_the_page(page):
    text, comparison, tracker = page
    for found in (comparison.first, tracker.first):
        assert html.escape(str(found)) in text
    assert "aten::native_layer_norm" in text and "GPT.layers.0.ln1" in text
    assert "largest error" in text and "bytes to device" in text


def test_the_timeline_has_every_operator_once_with_the_gravest_verdict(page):
    text, comparison, _ = page
    data = json.loads(Page(text).scripts[0])
    assert len(data["rows"]) == len(comparison.timeline.rows)
    verdicts = {}
    for row in data["rows"]:
        verdicts.setdefault(data["strings"][row[1]], set()).add(data["strings"][row[9]])
    assert verdicts["aten::gelu"] == {"different"} and "nonfinite" in verdicts["aten::addmm"]
    starts = [row[5] for row in data["rows"]]
    assert starts == sorted(starts)


def test_text_of_the_program_cannot_end_the_script(tmp_path):
    class Evil(torch.nn.Module):
        def forward(self, x):
            return torch.relu(x)

    Evil.__name__ = "</script><script>alert(1)</script>"
    with debug.compare(None) as comparison:
        Evil()(torch.ones(2, device="musa"))
    debug.write_report(tmp_path / "report.html", comparison)
    text = (tmp_path / "report.html").read_text()
    assert "alert(1)" in text and "<script>alert" not in text
    assert len(re.findall("</script>", text)) == 2


def test_a_tool_without_a_timeline_is_refused(tmp_path):
    with pytest.raises(TypeError, match="Fix: write_report"):
        debug.write_report(tmp_path / "report.html", debug.dump("aten::mm"))


def test_rows_beyond_the_capacity_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("torch_musa.debug.timeline.CAPACITY", 3)
    with debug.log_operators() as log:
        for _ in range(5):
            torch.relu(torch.ones(2, device="musa"))
    debug.write_report(tmp_path / "report.html", log)
    assert len(log.rows) == 3 and log.timeline.dropped == 7
    assert "<td>operators after the last row</td><td>7</td>" in (tmp_path / "report.html").read_text()


# A script's names are those of the window, which has properties such as `top`; a second declaration of one is
# an error, and nothing of the script runs. A module's names are its own.
_NOT_A_MODULE = re.compile(r"<script(?![^>]*type=\"(?:module|application/json)\")[^>]*>")


def test_the_page_declares_no_name_of_the_window(tmp_path):
    with debug.compare(None) as comparison:
        torch.ones(2, device="musa").sum()
    debug.write_report(tmp_path / "report.html", comparison)
    assert not _NOT_A_MODULE.search((tmp_path / "report.html").read_text())
    assert _NOT_A_MODULE.search("<script>\nconst top = 24;\n</script>")
