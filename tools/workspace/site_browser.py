# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Opens the manual in a browser without a window, as a reader does: console, diagrams, search.

Runs in build/docs/venv, which has Playwright: ``python -m workspace.site_browser SITE``. Prints one problem
per line, and ends with site_pages.PROBLEMS if there are any. The browser is Chromium or Chrome on PATH.
"""

import functools
import http.server
import re
import shutil
import sys
import threading
from pathlib import Path
from urllib.parse import quote

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PROBLEMS = 3  # site_pages.PROBLEMS, which this process cannot import: it has no pages of the workspace
# The browser's own services are off, because the check uses only the site.
ARGUMENTS = (
    *["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
    *["--disable-component-update", "--disable-sync"],
)
LIMIT_MS = 20_000
# Pages that Sphinx generates are not searched for.
GENERATED = {"search.html", "genindex.html", "py-modindex.html"}


def find_browser() -> str | None:
    """Returns the path of a browser, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Requests are not printed."""


class Site:
    """A site served on the loopback interface."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Without npm, the script is missing and diagrams are shown as text: diagrams.py.
        self.draws_diagrams = (folder / "_static" / "mermaid.min.js").exists()
        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> "Site":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def address(self, page: str) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/{page}"

    def pages(self) -> list[str]:
        found = (str(path.relative_to(self.folder)) for path in self.folder.rglob("*.html"))
        return sorted(page for page in found if not page.startswith("_"))


class Reader:
    """Opens pages in one tab; collects the errors of the console, of scripts and of requests."""

    def __init__(self, tab, site: Site) -> None:
        self.tab, self.site, self.errors = tab, site, []
        tab.set_default_timeout(LIMIT_MS)
        tab.on("console", self._on_console)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.on("response", self._on_response)

    def _on_console(self, line) -> None:
        # The console's line about a failed request has no address; _on_response adds it.
        if line.type == "error" and not line.text.startswith("Failed to load resource"):
            self.errors.append(line.text)

    def _on_response(self, response) -> None:
        # Browsers request an icon of sites that name none.
        if response.status >= 400 and not response.url.endswith("/favicon.ico"):
            self.errors.append(f"{response.url} was not loaded: {response.status}")

    def open(self, page: str) -> list[str]:
        """Returns the problems of a page."""
        self.errors.clear()
        self.tab.goto(self.site.address(page), wait_until="load")
        problems = self.diagram_problems()
        return [f"{page}: {text.splitlines()[0]}" for text in (*self.errors, *problems)]

    def diagram_problems(self) -> list[str]:
        diagrams = self.tab.locator(".mermaid")
        if not self.site.draws_diagrams:
            return []
        try:
            for k in range(diagrams.count()):
                diagrams.nth(k).locator("svg").first.wait_for(state="attached")
        except Exception as error:  # noqa: BLE001 - Playwright's errors are in its own hierarchy
            return [f"diagram {k + 1} is not drawn ({type(error).__name__})"]
        failed = self.tab.locator(".mermaid svg .error-text").count()
        return [f"{failed} diagrams show an error of Mermaid"] if failed else []

    def words(self) -> str:
        """Returns two adjacent Chinese characters of the page's text, or its longest English word."""
        text = " ".join(self.tab.locator("article :is(h1, p)").all_inner_texts())
        chinese = max(re.findall("[\u4e00-\u9fff]+", text), key=len, default="")
        # Most Chinese words have two characters. Longer ones would be found as parts of sentences.
        middle = chinese[len(chinese) // 2 - 1 :][:2]
        return middle if len(middle) == 2 else max(re.findall(r"\b[A-Za-z]+\b", text), key=len)

    def search(self, words: str) -> list[str]:
        """Returns the addresses of the pages that the manual's search finds, in its order."""
        self.tab.goto(self.site.address(f"search.html?q={quote(words)}"), wait_until="load")
        # Sphinx gives the summary this class once all results are listed.
        self.tab.wait_for_function("document.querySelector('#search-results p.search-summary')?.innerText")
        self.tab.wait_for_function("!document.querySelector('#search-progress')?.innerText.includes('...')")
        found = self.tab.locator("#search-results ul.search li a")
        return [
            link.split("#")[0].split("?")[0] for link in found.evaluate_all("all => all.map(a => a.href)")
        ]


def problems_of(folder: Path, browser: str) -> list[str]:
    """Returns the problems of all pages, and the pages that a search for words of theirs does not find."""
    from playwright.sync_api import sync_playwright

    problems: list[str] = []
    with Site(folder) as site, sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=list(ARGUMENTS), chromium_sandbox=False)
        reader = Reader(chromium.new_page(), site)
        words = {}
        for page in site.pages():
            problems += reader.open(page)
            if page not in GENERATED:
                words[page] = reader.words()
        for page, searched in words.items():
            reader.errors.clear()
            try:
                found = reader.search(searched)
            except Exception as error:  # noqa: BLE001 - as above
                problems.append(
                    f"search.html: no result for {searched!r}: {[*reader.errors, type(error).__name__]}"
                )
                break  # The script itself fails, so other words would only time out.
            if site.address(page) not in found:
                problems.append(
                    f"search.html: {searched!r} does not find {page}, but {len(found)} other pages"
                )
        chromium.close()
    print(f"{len(words)} pages opened and searched for in {browser}", file=sys.stderr)
    return problems


def main() -> int:
    browser = find_browser()
    if browser is None:
        sys.exit(f"no browser on PATH: {', '.join(BROWSERS)}")
    problems = problems_of(Path(sys.argv[1]), browser)
    print("\n".join(problems))
    return PROBLEMS if problems else 0


if __name__ == "__main__":
    sys.exit(main())
