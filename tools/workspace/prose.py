# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rule of this tree: comments, docstrings, messages and pages are plain technical English.

Searches the comments and string literals of sources, the names of tests and the text of Markdown pages for
words and constructions that CONTRIBUTING.md replaces. Code, and text in quotation marks or backticks, is
left out.

    python3 -m workspace.prose [PATH ...]           # each finding as name:line: message
    python3 -m workspace.prose --count [PATH ...]   # by folder: comments, words per comment, findings
    python3 -m workspace.prose --files [PATH ...]   # the same by file
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

# Files that name the words themselves.
EXEMPT = {"tools/workspace/prose.py", "tools/workspace/tree_lint.py", "tests/tools/test_prose.py"}

# Correct English with one of the words: a person who reads, an abbreviation, a look-up.
_ALLOWED = re.compile(
    r"\b(?:users?|people|persons?|authors?|maintainers?|everyone|anyone|someone|somebody|those|engineers?|"
    r"readers?|programmers?|developers?|contributors?|administrators?|you),? who(?: \w+)?"
    r"|\bstands? (?:for|in)\b|\b(?:users?|you) wants?\b",
    re.IGNORECASE,
)
# The start of a comment, of a paragraph or of a sentence.
_START = r"(?:^|[.:;!?|]\s)[^\w#]*?"  # no heading: it may begin so

# The words, and what to write instead.
WORDS: tuple[tuple[str, str], ...] = (
    (r"anew", "again"),
    (r"at hand", "available"),
    (r"nobody", "no thread / no caller / nothing"),
    (r"who(?:m|so)?ever", "the caller / the thread that"),
    (r"who|whom", "the caller / the thread that"),
    (r"(?:keeps?|the|its|their|in|own) books|bookkeep(?:s|er)", "state"),
    (r"(?:is|are|was|were|be|been|being|gets) told|told of", "is notified / is given"),
    (r"tells?", "reports / shows / distinguishes"),
    (r"lent|lends?", "borrowed / passed"),
    (r"lets? go(?: of)?|letting go", "releases / frees"),
    (r"g[ai]ves? up|giving up|given up", "aborts / stops / releases"),
    (r"that which", "the value that"),
    (r"bends? to", "is promoted to"),
    (r"stands?|stood", "is"),
    (r"lies|lie|lay|lain", "is at / is stored"),
    (r"know of|knows|knew", "has / is registered with / name the state"),
    (r"asks?|asked|asking", "queries / requests / checks"),
    (r"wants?|(?:is|are|was|were|be|not) wanted", "needs / requests"),
    (r"looks (?:at|after|into|for|in)", "reads / checks / searches"),
    (r"in vain", "without effect / fails"),
    (r"for want of", "without / because there is no"),
    (r"there where|then when", "where / when"),
    (r"beyond the border", "outside the image"),
    (r"mends?|mended|mending", "fixes"),
)

# Constructions, matched with their case.
CONSTRUCTIONS: tuple[tuple[str, str], ...] = (
    (rf"{_START}Of (?:an?|the|all|its|two|each|what)\b", "put the subject first: 'Element k of ...'"),
    (
        rf"{_START}(?:By|For|With|From|Of|In|On|To) (?:what|which|whom)\b",
        "a noun: 'Reference counts for ...'",
    ),
    (rf"{_START}What (?:is|was|are|were|of|has|had|cannot|an?|the)\b(?![^.]*\?)", "a noun phrase: 'The ...'"),
    (r"\b(?:[Oo]f|[Ff]or|[Bb]y|than|from|but) what (?:is|was|are|were|has|had|of|cannot)\b", "a noun"),
    (r"\b(?:Hint|Tip|Workaround|Cure|Remedy|Help|To mend|To fix it):", "the label 'Fix:'"),
)

_WORD_PATTERNS = tuple(rf"(?i:\b(?:{words})\b(?![-(]))" for words, _ in WORDS)
_PATTERNS = (*_WORD_PATTERNS, *(construction for construction, _ in CONSTRUCTIONS))
RULES = tuple(
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, (_, instead) in zip(_PATTERNS, WORDS + CONSTRUCTIONS, strict=True)
)
_ANY = re.compile("|".join(_PATTERNS), re.MULTILINE)
# A file without a match has no finding. A phrase may go over two lines, with a comment's marker between.
_CANDIDATE = re.compile(
    "|".join(pattern.replace(" ", r"\W+") for pattern in _WORD_PATTERNS)
    + r"|\bOf\b|[Ww]hat\b|\b(?:which|whom|Hint|Tip|Workaround|Cure|Remedy|Help|To (?:mend|fix) it)\b"
)

_CPP_SUFFIXES = {".cpp", ".cc", ".c", ".h", ".hpp", ".mu", ".muh", ".cu", ".cuh", ".inc"}
_HASH_SUFFIXES = {".cmake", ".toml", ".yaml", ".yml", ".Dockerfile", ".in"}
_CPP_TOKEN = re.compile(
    r"(?P<line>//[^\n]*)|(?P<block>/\*.*?\*/)|"
    r'(?P<string>R"(?P<tag>\w*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*")|' + r"'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)
_HASH_TOKEN = re.compile(r'(?P<line>(?:(?<=\s)|^)#[^\n]*)|(?P<string>"(?:\\.|[^"\\])*")', re.MULTILINE)
_MARKDOWN_CODE = re.compile(
    r"^(?P<fence>[ \t]*(?:```+|~~~+))[^\n]*\n.*?(?:^(?P=fence)[`~]*[ \t]*$|\Z)|``[^`]+``|`[^`]+`|"
    r"<!--.*?-->|\]\([^)\s]*\)",
    re.DOTALL | re.MULTILINE,
)
_QUOTATION = re.compile(
    r"``[^`]{1,200}``|`[^`]{1,200}`|\"[^\"]{1,200}\"|“[^”]{1,200}”|(?<!\w)'[^'\n]{1,80}'(?!\w)"
)
_ITEM = re.compile(r"\s*(?:[-*|>#]|\d+\.)\s")
_TEST_NAME = re.compile(r"^[ \t]*(?:async )?def (test_\w+)", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{[^{}\n]*\}")
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True)
class Passage:
    """A comment, a string literal or a paragraph, without its markers."""

    line: int
    text: str
    comment: bool = True  # otherwise a string literal that is no docstring


def blanked(pattern: re.Pattern[str], text: str) -> str:
    """The text with spaces in place of each match; lines stay where they are."""
    return pattern.sub(lambda match: _NOT_NEWLINE.sub(" ", match.group(0)), text)


def joined(comments: list[tuple[int, str, bool]]) -> Iterator[Passage]:
    """Comments of consecutive lines as one passage. comments: (line, text, whether code precedes it)."""
    start, lines = 0, []
    for line, text, after_code in comments:
        if lines and line == start + len(lines) and not after_code:
            lines.append(text)
            continue
        if lines:
            yield Passage(start, "\n".join(lines))
        start, lines = line, [text]
    if lines:
        yield Passage(start, "\n".join(lines))


def python_passages(text: str) -> Iterator[Passage]:
    comments = []
    docstring = True  # whether a string here is a statement of its own
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return  # ruff reports it
    middle = getattr(tokenize, "FSTRING_MIDDLE", -1)
    skipped = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)
    for token in tokens:
        if token.type == tokenize.COMMENT:
            after_code = bool(token.line[: token.start[1]].strip())
            comments.append((token.start[0], token.string.lstrip("#! "), after_code))
        elif token.type == tokenize.STRING:
            body = re.sub(r"^\w*(\"\"\"|'''|\"|')(.*)\1$", r"\2", token.string, flags=re.DOTALL)
            yield Passage(token.start[0], body, comment=docstring)
        elif token.type == middle:
            yield Passage(token.start[0], token.string, comment=False)
        if token.type not in skipped:
            docstring = token.type == tokenize.NEWLINE
    yield from joined(comments)


def marked_passages(pattern: re.Pattern[str], text: str, markers: str) -> Iterator[Passage]:
    comments = []
    for match in pattern.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if found := match.group("line"):
            before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            comments.append((line, found.lstrip(markers), bool(before.strip())))
        elif found := match.groupdict().get("block"):
            inner = re.sub(
                r"^[ \t]*\*", lambda star: " " * len(star.group(0)), found[2:-2], flags=re.MULTILINE
            )
            yield Passage(line, inner)
        elif found := match.group("string"):
            body = found[2:] if found.startswith("R") else found[1:-1]
            yield Passage(line, body, comment=False)
    yield from joined(comments)


def markdown_passages(text: str) -> Iterator[Passage]:
    lines: list[str] = []
    start = 1
    for number, line in enumerate([*blanked(_MARKDOWN_CODE, text).splitlines(), ""], 1):
        if line.strip():
            if not lines:
                start = number
            lines.append(line)
        elif lines:
            yield Passage(start, "\n".join(lines))
            lines = []


def passages(name: str, text: str) -> list[Passage]:
    """The prose of a file; nothing for a kind of file that has none."""
    path = PurePosixPath(name)
    if path.suffix == ".py":
        return list(python_passages(text))
    if path.suffix in _CPP_SUFFIXES:
        return list(marked_passages(_CPP_TOKEN, text, "/!< "))
    if path.suffix in _HASH_SUFFIXES or path.name in ("CMakeLists.txt", "Dockerfile"):
        return list(marked_passages(_HASH_TOKEN, text, "# "))
    if path.suffix == ".md":
        return list(markdown_passages(text))
    return []


def flattened(passage: Passage) -> str:
    """The text of the same length with quotations blanked and lines joined, except before a list item."""
    text = passage.text.replace(r"\n", "  ")
    if not passage.comment:
        text = blanked(_PLACEHOLDER, text)
    text = blanked(_ALLOWED, blanked(_QUOTATION, text))
    lines = text.split("\n")
    flat = lines[0]
    for line in lines[1:]:
        flat += ("\n" if _ITEM.match(line) else " ") + line
    return flat


def findings(passage: Passage) -> list[tuple[int, str, str]]:
    """The line, the words found and what to write instead, for each finding in the passage."""
    flat = flattened(passage)
    if not _ANY.search(flat):
        return []
    ends = [match.start() for match in re.finditer("\n", passage.text)]
    found = []
    for pattern, instead in RULES:
        for match in pattern.finditer(flat):
            words = " ".join(match.group(0).strip(" .:;!?|*#>(-\n").split())
            line = passage.line + bisect_right(ends, match.end() - 1)
            found.append((line, words, instead))
    return sorted(found)


def file_findings(name: str, text: str) -> list[tuple[int, str, str]]:
    if name in EXEMPT or not _CANDIDATE.search(text):
        return []
    return [found for passage in passages(name, text) for found in findings(passage)]


def test_name_findings(name: str, text: str) -> list[tuple[int, str, str]]:
    """Findings in the names of the test functions of a Python file, read as sentences."""
    if name in EXEMPT or not name.endswith(".py"):
        return []
    return [
        found
        for match in _TEST_NAME.finditer(text)
        for found in findings(Passage(text.count("\n", 0, match.start(1)) + 1, match[1].replace("_", " ")))
    ]


def all_findings(name: str, text: str) -> list[tuple[int, str, str]]:
    return sorted(file_findings(name, text) + test_name_findings(name, text))


def folder(name: str) -> str:
    """The folder of a row of counts: two levels of packages, tests and docs, else one."""
    parts = PurePosixPath(name).parts[:-1]
    depth = 2 if parts[:1] and parts[0] in ("packages", "tests", "docs") else 1
    return "/".join(parts[:depth]) or "."


def check_prose(texts: Mapping[str, str]) -> list[str]:
    """The findings, each as ``name:line: what``."""
    return [
        message(name, line, words, instead)
        for name, text in texts.items()
        for line, words, instead in all_findings(name, text)
    ]


def message(name: str, line: int, words: str, instead: str) -> str:
    return f"{name}:{line}: '{words}' is not plain English. Fix: write {instead} (CONTRIBUTING.md, Prose)"


def tracked_texts(paths: list[str]) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    texts = {}
    for name in filter(None, listed.stdout.split("\0")):
        try:
            texts[name] = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return texts


def counts(texts: Mapping[str, str], by_file: bool) -> dict[str, tuple[int, int, int]]:
    """Comments, their words, and findings, by folder or by file."""
    rows: dict[str, tuple[int, int, int]] = {}
    for name, text in texts.items():
        comments = [passage.text for passage in passages(name, text) if passage.comment]
        words = sum(len(comment.split()) for comment in comments)
        row = (len(comments), words, len(all_findings(name, text)))
        key = name if by_file else folder(name)
        rows[key] = tuple(map(sum, zip(rows.get(key, (0, 0, 0)), row, strict=True)))
    return rows


def print_counts(texts: Mapping[str, str], by_file: bool) -> None:
    rows = counts(texts, by_file)
    width = max((len(key) for key in rows), default=0)
    rows["total"] = tuple(map(sum, zip(*rows.values(), strict=True))) if rows else (0, 0, 0)
    print(f"{'':{width}} comments words/comment findings")
    for key, (comments, words, found) in rows.items():
        print(f"{key:{width}} {comments:8} {words / max(comments, 1):13.1f} {found:8}")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="workspace.prose", description="Search for prose that is hard to read."
    )
    parser.add_argument(
        "paths", nargs="*", help="files or folders, relative to the tree's root; default: all"
    )
    parser.add_argument("--count", action="store_true", help="print numbers by folder")
    parser.add_argument("--files", action="store_true", help="print numbers by file")
    options = parser.parse_args(arguments)
    texts = tracked_texts(options.paths)
    if options.count or options.files:
        print_counts(texts, by_file=options.files)
        return 0
    lines = check_prose(texts)
    for line in lines:
        print(line)
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
