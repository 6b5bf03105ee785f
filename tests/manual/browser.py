# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Opens the manual in the machine's Chromium without a window, as a reader does."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from workspace.prerequisites import find_browser

ADDRESS = "http://manual/"  # its requests are answered from the disk
PHONE = {"width": 400, "height": 800}
DESKTOP = {"width": 1280, "height": 900}
FIRST = 5  # results of a search among which its page is expected
# Sphinx gives the summary this class once all results are listed.
LISTED = "document.querySelector('#search-results p.search-summary')?.innerText"
LISTED += " && !document.querySelector('#search-progress')?.innerText.includes('...')"
LINKS = "links => links.map(link => link.href.split('?')[0].split('#')[0])"
# The state of a page: its width, pictures that are not drawn, and the addresses of its links.
STATE = """() => ({
  width: document.documentElement.scrollWidth,
  blank: [...document.querySelectorAll("article img, article object")].filter(picture => {
    const svg = picture.contentDocument?.documentElement;
    const box = svg?.querySelector("g")?.getBBox();
    const drawn = picture.tagName === "IMG" ? picture.naturalWidth : box?.width;
    return !drawn || svg?.textContent.includes("Syntax error");
  }).map(picture => picture.src ?? picture.data),
  links: [...document.querySelectorAll("a[href]")].map(link => link.href),
})"""
# Pictures below the visible part are loaded when they are scrolled to.
LOADED = """() => {
  document.querySelectorAll("img[loading=lazy]").forEach(picture => { picture.loading = "eager"; });
  return [...document.images].every(picture => picture.complete);
}"""


class Search(NamedTuple):
    """Words that a reader enters, and the page that is expected among the first results."""

    start: str  # the search page, relative to the site
    words: str
    page: str


@cache
def identifiers(file: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', file.read_text(encoding="utf-8")))


class Reader:
    """A tab of the browser. `found` collects errors of scripts, failed requests and problems of pages."""

    def __init__(self, site: Path, tab) -> None:
        self.site, self.tab = site, tab
        self.found: list[str] = []
        tab.set_default_timeout(60_000)
        tab.on("pageerror", lambda error: self.report(str(error)))
        tab.on("console", lambda line: self.report(line.text) if line.type == "error" else None)
        tab.route("**", self._answer)

    def report(self, problem: str) -> None:
        self.found.append(f"{self.tab.url.removeprefix(ADDRESS)}: {problem}")

    def _answer(self, route) -> None:
        address = urlsplit(route.request.url)
        file = self.site / unquote(address.path).strip("/")
        if route.request.url.startswith(ADDRESS) and file.is_file():
            route.fulfill(path=file)
        else:
            self.report(f"{address.netloc}{address.path} is missing or on another host")
            route.abort()

    def check_page(self, page: str) -> None:
        """Opens a page: it fits the window, its pictures are drawn, its links lead to files and anchors."""
        self.tab.goto(ADDRESS + page)
        self.tab.wait_for_function(LOADED)
        state = self.tab.evaluate(STATE)
        if state["width"] > self.tab.viewport_size["width"]:
            self.report(f"the page is {state['width']} pixels wide")
        for picture in state["blank"]:
            self.report(f"{picture.removeprefix(ADDRESS)} is not drawn")
        for link in sorted(set(state["links"])):
            address = urlsplit(link)
            if link.startswith(ADDRESS):
                file = self.site / unquote(address.path).strip("/")
                if not file.is_file():
                    self.report(f"links to {address.path}, which is missing")
                elif address.fragment and unquote(address.fragment) not in identifiers(file):
                    self.report(f"links to {address.path}#{address.fragment}, which has no such place")

    def check_search(self, search: Search) -> None:
        """Searches: the expected page is among the first results."""
        from playwright.sync_api import Error

        self.tab.goto(f"{ADDRESS}{search.start}?q={quote(search.words)}")
        try:
            self.tab.wait_for_function(LISTED)
        except Error as error:
            self.report(f"the search for {search.words!r} does not end: {error.message.splitlines()[0]}")
        links = self.tab.locator("#search-results ul.search > li > a").evaluate_all(LINKS)
        pages = list(dict.fromkeys(link.removeprefix(ADDRESS) for link in links))[:FIRST]
        if search.page not in pages:
            self.report(f"{search.words!r} does not find {search.page}, but {', '.join(pages) or 'nothing'}")

    def take_picture(self, page: str, file: Path, window: dict[str, int]) -> None:
        """Writes what the window shows of a page."""
        self.tab.set_viewport_size(window)
        self.tab.goto(ADDRESS + page)
        self.tab.wait_for_function(LOADED)
        file.parent.mkdir(parents=True, exist_ok=True)
        self.tab.screenshot(path=file)


@contextlib.contextmanager
def reader(site: Path, window: dict[str, int] = PHONE) -> Iterator[Reader]:
    """A browser in which a site is open."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = play.chromium.launch(executable_path=find_browser(), args=arguments, chromium_sandbox=False)
        yield Reader(site, browser.new_page(viewport=window))
        browser.close()


def problems(
    site: Path, pages: Iterable[str], searches: Iterable[Search], limit_ms: int = 60_000
) -> list[str]:
    """Problems of pages, in the window of a phone, and of searches that do not end within the limit."""
    with reader(site) as opened:
        opened.tab.set_default_timeout(limit_ms)
        for page in pages:
            opened.check_page(page)
        for search in searches:
            opened.check_search(search)
        return opened.found
