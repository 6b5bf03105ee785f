# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pages of the manual, their links and their place in the site: docs/design/manual.md."""

import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from . import ROOT, WorkspaceError

sys.path.append(str(ROOT / "docs"))
import pages

NAVIGATION = "docs/navigation.toml"
START = "docs/index.md"
# Patterns of pages; `site_path` places those outside docs/ in the site.
PATTERNS = ("docs/**/*.md", "packages/*/README.md", "CONTRIBUTING.md", "tests/README.md")
LINK = re.compile(r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)(?: +#+)?$", re.MULTILINE)
VERB = re.compile(r"tools/dev\.py ([a-z]\w*)")
# Attributes and style sheet properties that make a browser load a resource.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|link(?=[^>]*rel=["']?(?:stylesheet|preload|icon|preconnect)))"""
    r"""\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"'\s>]+)"""
    r"""|(?:@import\s+["']?|url\(\s*["']?)((?:https?:)?//[^"')\s]+)""",
    re.IGNORECASE,
)

# Exit status of page_runner.py if pages have problems. A crash has Python's own status, 1.
PROBLEMS = 3


@dataclass(frozen=True)
class Page:
    """A page: its path in the repository, its path in the site, and its text."""

    source: str
    site: str
    text: str


def site_path(source: str) -> str:
    """Returns the site path of a page of the repository."""
    if source.startswith("docs/"):
        return source.removeprefix("docs/")
    return source.lower().replace("/readme.md", ".md")


def collect(root: Path, generated: Mapping[str, str]) -> dict[str, Page]:
    """Returns all pages by their path in the repository. generated: texts of generated pages."""
    found = {str(path.relative_to(root)) for pattern in PATTERNS for path in root.glob(pattern)}
    texts = {name: (root / name).read_text(encoding="utf-8") for name in sorted(found)} | dict(generated)
    return {name: Page(name, site_path(name), text) for name, text in texts.items()}


def navigation(text: str) -> dict[str, list[str]]:
    """Returns the sections of the site: title -> paths of its pages in the repository.

    Does not use tomllib, which Python 3.10 lacks.
    """
    sections = re.findall(r'^title = "([^"\n]*)"\npages = \[([^\]]*)\]', text, re.MULTILINE)
    if len(sections) != text.count("[[section]]"):
        raise WorkspaceError(f'{NAVIGATION}: each [[section]] needs `title = "..."`, then `pages = [...]`')
    return {title: re.findall(r'"([^"]+)"', listed) for title, listed in sections}


def navigation_problems(pages_: Iterable[str], sections: Mapping[str, list[str]]) -> list[str]:
    """Returns pages that are in no section or in several, and entries that are not pages."""
    listed = [page for section in sections.values() for page in section]
    known = set(pages_)
    problems = [f"{page}: not in {NAVIGATION}" for page in sorted(known - {*listed, START})]
    for page in sorted(set(listed)):
        if page not in known:
            problems.append(f"{NAVIGATION}: there is no page {page}")
        elif listed.count(page) > 1:
            problems.append(f"{NAVIGATION}: {page} is listed {listed.count(page)} times")
    return problems


def anchor(heading: str) -> str:
    """Returns the anchor of a heading, by the rule of GitHub and MyST."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """Returns the anchors of the headings of a page."""
    return {anchor(heading) for heading in HEADING.findall(pages.without_code(text))}


class Links:
    """Checks the links of pages, and rewrites them for the site."""

    def __init__(self, all_pages: Mapping[str, Page], root: Path, repository: str = ""):
        self.pages = all_pages
        self.root = root
        self.repository = repository
        self.problems: list[str] = []
        self.images: set[str] = set()

    def rewrite(self, page: Page) -> str:
        """Returns the text of the page in the site. Adds broken links to `problems`."""
        result, end = "", 0
        for link in LINK.finditer(pages.without_code(page.text)):
            if not _in_code(link):
                result += page.text[end : link.start()] + self._replacement(page, link)
                end = link.end()
        return result + page.text[end:]

    def _replacement(self, page: Page, link: re.Match) -> str:
        target = urlsplit(link["target"])
        if target.scheme or target.netloc:
            return link[0]
        where = f"{page.source}:{link.string.count(chr(10), 0, link.start()) + 1}"
        path = os.path.normpath(Path(page.source).parent / target.path) if target.path else page.source
        if path not in self.pages and not (self.root / path).exists():
            self.problems.append(f"{where}: {link['target']} does not exist")
            return link[0]
        if path not in self.pages:
            return self._other_file(page, link, path)
        if target.fragment and target.fragment not in anchors(self.pages[path].text):
            self.problems.append(f"{where}: {path} has no heading #{target.fragment}")
        place = os.path.relpath(self.pages[path].site, Path(page.site).parent) if target.path else ""
        fragment = f"#{target.fragment}" if target.fragment else ""
        return f"[{link['text']}]({place}{fragment})"

    def _other_file(self, page: Page, link: re.Match, path: str) -> str:
        if link["image"]:
            self.images.add(path)
            return f"![{link['text']}]({os.path.relpath(site_path(path), Path(page.site).parent)})"
        if self.repository:
            return f"[{link['text']}]({self.repository}/blob/main/{path})"
        named = link["text"].strip("`") in (path, Path(path).name)
        return f"`{path}`" if named else f"{link['text']} (`{path}`)"


def _in_code(match: re.Match) -> bool:
    """Whether a match is inside a code span: after an odd number of backticks in its paragraph."""
    paragraph = match.string.rfind("\n\n", 0, match.start()) + 1
    return match.string.count("`", paragraph, match.start()) % 2 == 1


def verb_problems(all_pages: Iterable[Page], verbs: Iterable[str]) -> list[str]:
    """Returns verbs of `tools/dev.py` that a page names but that do not exist."""
    known = set(verbs)
    return [
        f"{page.source}:{number}: tools/dev.py has no verb {verb}"
        for page in all_pages
        for number, line in enumerate(page.text.splitlines(), 1)
        for verb in VERB.findall(line)
        if verb not in known
    ]


def external(text: str) -> list[str]:
    """Returns addresses on other hosts that a browser would load for an HTML page or a style sheet."""
    return [first or second for first, second in LOADED.findall(text)]


def stage(
    all_pages: Mapping[str, Page],
    sections: Mapping[str, list[str]],
    root: Path,
    target: Path,
    repository: str,
) -> list[str]:
    """Writes the pages and their images to the source folder of the site; returns broken links."""
    shutil.rmtree(target, ignore_errors=True)
    links = Links(all_pages, root, repository)
    for page in all_pages.values():
        text = links.rewrite(page)
        if page.source == START:
            text += toctrees(all_pages, sections)
        _write(target / page.site, text)
    for image in sorted(links.images):
        place = target / site_path(image)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / image, place)
    return links.problems


def toctrees(all_pages: Mapping[str, Page], sections: Mapping[str, list[str]]) -> str:
    """Returns the navigation for Sphinx, hidden at the end of the start page."""
    text = ""
    for title, names in sections.items():
        entries = "".join(
            f"{all_pages[name].site.removesuffix('.md')}\n" for name in names if name in all_pages
        )
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}```\n"
    return text


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def refuse(problems: list[str]) -> None:
    """Raises WorkspaceError with all problems if there are any."""
    if problems:
        raise WorkspaceError("the manual was not built:\n" + "\n".join(problems))
