# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Opens the manual in the machine's Chromium without a window, as a reader does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from workspace.prerequisites import find_browser

HOST = "manual"  # its requests are answered from the disk
# Sphinx gives the summary this class once all results are listed.
LISTED = "document.querySelector('#search-results p.search-summary')?.innerText"
LISTED += " && !document.querySelector('#search-progress')?.innerText.includes('...')"
LINKS = "links => links.map(link => link.href.split('?')[0].split('#')[0])"


def problems(site: Path, searches: Mapping[str, str]) -> list[str]:
    """Errors of pages, files that are missing or on another host, and searches that do not find their page.

    searches: words, and the path of a page in the site that has them.
    """
    from playwright.sync_api import Error, sync_playwright

    found: list[str] = []
    with sync_playwright() as play:
        arguments = ["--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = play.chromium.launch(executable_path=find_browser(), args=arguments, chromium_sandbox=False)
        tab = browser.new_page()
        tab.set_default_timeout(20_000)
        tab.on("pageerror", lambda error: found.append(f"{tab.url}: {error}"))
        tab.on(
            "console", lambda line: found.append(f"{tab.url}: {line.text}") if line.type == "error" else None
        )

        def answer(route) -> None:
            address = urlsplit(route.request.url)
            file = site / address.path.strip("/")
            if address.netloc == HOST and file.is_file():
                route.fulfill(path=file)
            else:
                found.append(f"{tab.url}: {address.netloc}{address.path} is missing or on another host")
                route.abort()

        tab.route("**", answer)
        for page in sorted(site.rglob("*.html")):
            tab.goto(f"http://{HOST}/{page.relative_to(site)}")
        for words, page in searches.items():
            tab.goto(f"http://{HOST}/search.html?q={quote(words)}")
            try:
                tab.wait_for_function(LISTED)
            except Error as error:
                found.append(f"the search for {words!r} does not end: {error.message.splitlines()[0]}")
            links = tab.locator("#search-results ul.search li a").evaluate_all(LINKS)
            if f"http://{HOST}/{page}" not in links:
                found.append(f"{words!r} does not find {page}")
        browser.close()
    return found
