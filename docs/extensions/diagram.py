# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Draws a diagram with Mermaid in the machine's Chromium; sphinxcontrib-mermaid calls it."""

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

SCRIPT = Path(__file__).resolve().parents[2] / "build" / "docs" / "mermaid.min.js"
DRAW = """async text => {
  const themeVariables = {edgeLabelBackground: "#ffffff"};
  mermaid.initialize({startOnLoad: false, theme: "neutral", themeVariables});
  return (await mermaid.render("diagram", text)).svg;
}"""

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("-i", type=Path, dest="text", required=True)
parser.add_argument("--browser", required=True)
parser.add_argument("-o", type=Path, dest="svg", required=True)
options = parser.parse_args()
with sync_playwright() as play:
    browser = play.chromium.launch(executable_path=options.browser, chromium_sandbox=False)
    page = browser.new_page()
    page.add_script_tag(path=SCRIPT)
    # In XML, an element without content ends with "/>".
    svg = page.evaluate(DRAW, options.text.read_text(encoding="utf-8")).replace("<br>", "<br/>")
    options.svg.write_text(svg, encoding="utf-8")
