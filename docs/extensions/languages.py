# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A Sphinx extension for a site of an English and a Chinese manual: links between them, the language switch.

The site has a folder for each manual: `en`, built from the root of the repository, and `zh`, built from
docs/zh. A Chinese page names its English page below its heading.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.project import Project

ROOT = Path(__file__).resolve().parents[2]
CHINESE = ROOT / "docs" / "zh"
ENGLISH_PAGE = re.compile(r"(?<=\n\n)英文版\uff1a\[[^\]\n]+\]\((\S+?)\)。\n")


def locate(page):
    """The manual of a Markdown page of the repository, and its name there."""
    path = page.with_suffix("")
    if path.is_relative_to(CHINESE):
        return "zh", path.relative_to(CHINESE).as_posix()
    return "en", path.relative_to(ROOT).as_posix()


def counterparts():
    """The Chinese page of each English page."""
    found = {}
    for page in CHINESE.rglob("*.md"):
        if match := ENGLISH_PAGE.search(page.read_text(encoding="utf-8")):
            found[locate((page.parent / match[1]).resolve())[1]] = locate(page)[1]
    return found


def address(app, docname, manual, target):
    """The address of a page of either manual, relative to a page of this one."""
    return f"{'../' * (docname.count('/') + 1)}{manual}/{target}.html"


def hide_original(app, docname, text):
    """Removes the line with the English page, because the language switch has it."""
    text[0] = ENGLISH_PAGE.sub("", text[0], count=1)


def pages_of_manuals(app):
    """Lists the pages of both manuals, by their folders of the repository."""
    english = Project(ROOT, app.registry.source_suffix)
    english.discover(app.config.other_files, app.config.english_pages)
    chinese = Project(CHINESE, app.registry.source_suffix)
    chinese.discover(app.config.chinese_other_files, app.config.chinese_pages)
    app.manual_pages = {"en": english.docnames, "zh": chinese.docnames}
    app.chinese_pages = counterparts()


def link_manuals(app, doctree):
    """Makes links to pages of the other manual addresses, and links to other files and folders text."""
    env = app.env
    folder = Path(env.doc2path(env.docname)).parent
    for link in list(doctree.findall(addnodes.pending_xref)):
        target = link["reftarget"]
        if target in env.found_docs:
            continue
        page = Path(app.srcdir, f"{target}.md").resolve()
        if not page.exists():
            page = page.with_suffix(".rst")
        if page.exists() and page.is_relative_to(ROOT):
            manual, name = locate(page)
            if name in app.manual_pages[manual]:
                anchor = f"#{link['reftargetid']}" if link.get("reftargetid") else ""
                place = nodes.reference("", "", *link.children, internal=False)
                place["refuri"] = address(app, env.docname, manual, name) + anchor
                link.replace_self(place)
            else:
                link.replace_self(link.children)
        elif (folder / target).is_dir():
            readme = (folder / target / "README").resolve()
            if readme.is_relative_to(ROOT) and readme.relative_to(ROOT).as_posix() in env.found_docs:
                link["refdomain"], link["reftargetid"] = "doc", None
                link["reftarget"] = readme.relative_to(ROOT).as_posix()
            else:
                link.replace_self(link.children)


def offer_languages(app, docname, template, context, doctree):
    """Gives a page its language, and the addresses for the language switch."""
    chinese = app.config.language == "zh_CN"
    context["language"] = "zh-CN" if chinese else "en"
    if Path(app.srcdir) not in (ROOT, CHINESE):
        return
    if chinese:
        english = next((name for name, page in app.chinese_pages.items() if page == docname), "docs/index")
        other = address(app, docname, "en", english)
    else:
        other = address(app, docname, "zh", app.chinese_pages.get(docname, "index"))
    context["languages"] = [
        ("en", "English", other if chinese else None),
        ("zh-CN", "中文", None if chinese else other),
    ]


def setup(app):
    for patterns in ("english_pages", "other_files", "chinese_pages", "chinese_other_files"):
        app.add_config_value(patterns, [], "env")
    app.connect("builder-inited", pages_of_manuals)
    app.connect("source-read", hide_original)
    app.connect("doctree-read", link_manuals)
    app.connect("html-page-context", offer_languages)
    return {"parallel_read_safe": True}
