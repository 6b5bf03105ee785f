# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Resolves the names in pages and runs their code blocks: `python -m workspace.page_runner PAGE...` in .venv.

Problems are printed as `page:line: problem`, and the exit status is 3 if there are any. Each page runs in a
process of its own, forked after `import torch`. docs/design/manual.md has the comments that mark blocks.
"""

import argparse
import contextlib
import importlib
import importlib.util
import io
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pages

from . import site_pages

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("python", "bash")
NOT_RUN = re.compile(r"not run: \S.*")
# The block is the content of this file, below the directory of the page.
FILE = re.compile(r"file: (?!/)(\S+)")
# A block of bash runs in this directory, below that of the page.
DIRECTORY = re.compile(r"in: (?!/)(\S+)")
# A test runs all blocks of the page, so that they are not run here.
FOLLOWED = re.compile(r"^<!-- followed by (\S+) -->$", re.MULTILINE)
# Seconds that the blocks of one page may take.
LIMIT = 600
SPAN = re.compile(r"`([^`\n]+)`")
PYTHON_NAME = re.compile(
    r"(?<![\w./-])(?:torch\.musa|torch\.backends\.(?:mudnn|musa)|torch_musa)(?:\.[A-Za-z_]\w*)+"
)
CPP_NAME = re.compile(r"(?<![\w:])(?:c10::musa|at::musa|musa_runtime)::(\w+)")
# Names that look like attributes: entry point groups, operators of namespace torch_musa, a
# placeholder.
NOT_NAMES = re.compile(
    r"torch_musa\.(?:(?:import|modules|plugins|submodules|attributes|run_options)(?:\.v2)?|contract|backend_placeholders"
    r"|names_of_extras|swiglu|rope)"
    r"|torch[._]musa\.foo"
)
# A table row about a name that is not provided.
LEFT_OUT = re.compile(r"\| no: .*\|$")
# Chinese pages have the code of their English pages (tests/tools/test_chinese_pages.py), which is run.
TRANSLATED = "docs/zh/"


def resolve(name):
    """Whether a dotted name is a module or an attribute.

    The module itself is not imported, because it may need a package that is not installed, or change the
    process, as `torch_musa.as_cuda` does.
    """
    if name not in sys.modules and _is_module(name):
        return True
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(value, part):
                return False
            value = getattr(value, part)
        return True
    return False


def _is_module(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is not a package
        return False


def name_problems(page, text, cpp_names):
    """Returns Python names in code spans that do not exist, and C++ names missing in the reference."""
    problems = []
    for number, line in enumerate(text.splitlines(), 1):
        if LEFT_OUT.search(line):
            continue
        for name in dict.fromkeys(PYTHON_NAME.findall(" ".join(SPAN.findall(line)))):
            if not NOT_NAMES.fullmatch(name) and not resolve(name):
                problems.append(f"{page}:{number}: there is no {name}")
        for name in dict.fromkeys(CPP_NAME.findall(" ".join(SPAN.findall(line)))):
            if name not in cpp_names:
                problems.append(f"{page}:{number}: the C++ headers declare no {name}")
    return problems


def block_problems(page, text, folder=ROOT):
    """Runs the blocks of a page in this process; returns the first problem in a list.

    Later blocks need the variables of earlier ones, so that the page ends with its first failure. The current
    directory is that of the page, where its files are written.
    """
    variables = {"__name__": "__main__"}
    printed = None
    for block in pages.code_blocks(text):
        place = f"{page}:{block.line}"
        if block.comment == "output":
            if printed is None:
                return [f"{place}: no block before this output runs"]
            if printed.strip() != block.text.strip():
                return [
                    f"{place}: the page says {block.text.strip()!r}, the program prints {printed.strip()!r}"
                ]
        if file := FILE.fullmatch(block.comment):
            write_file(Path.cwd(), file[1], block.text)
            continue
        if block.language not in LANGUAGES or NOT_RUN.fullmatch(block.comment):
            continue
        run = _run_python if block.language == "python" else _run_bash
        directory = DIRECTORY.fullmatch(block.comment)
        printed, error = run(block, place, variables, Path.cwd() / directory[1] if directory else folder)
        if error:
            return [f"{place}: {error}"]
    return []


def write_file(directory, name, text):
    """Writes a file of a page below `directory`.

    Raises:
        ValueError: if the name leads out of the directory.
    """
    path = (directory / name).resolve()
    if not path.is_relative_to(directory.resolve()):
        raise ValueError(f"{name} is not below the directory of the page")
    if _text_of(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def followed_problems(page, text, root=ROOT):
    """The problem of a page whose test does not exist or does not name the page, as a list."""
    for test in FOLLOWED.findall(text):
        path = root / test
        if not path.is_file() or Path(page).name not in path.read_text(encoding="utf-8"):
            return [f"{page}: {test} does not follow this page"]
    return []


def _run_python(block, place, variables, folder):
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            exec(compile("\n" * block.line + block.text, place.partition(":")[0], "exec"), variables)
    except (Exception, SystemExit):  # noqa: BLE001 - a block may raise anything; the error is reported
        return output.getvalue(), f"the block fails\n{output.getvalue()}{traceback.format_exc(limit=-3)}"
    return output.getvalue(), None


def _run_bash(block, place, variables, folder):
    command = ["bash", "-euo", "pipefail", "-c", block.text]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        return done.stdout, f"the block ends with {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout, None


def prepare(directory, text):
    """Empties the directory of a page, except for unchanged files of the page.

    Their time stays, so that extensions are compiled again only if a source has changed. If no file has
    changed, directories named `build` stay as well.
    """
    blocks = pages.code_blocks(text)
    files = {match[1]: block.text for block in blocks if (match := FILE.fullmatch(block.comment))}
    unchanged = {directory / name for name, content in files.items() if _text_of(directory / name) == content}
    directory.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.rglob("*"), reverse=True):
        if len(unchanged) == len(files) and "build" in path.relative_to(directory).parts:
            continue
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in unchanged:
            path.unlink()


def _text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, OSError):
        return None


def _page_process(page, text, directory, results):
    # Programs of pages may write files into the working directory.
    with tempfile.TemporaryDirectory() as temporary:
        if directory is not None:
            prepare(directory, text)
        os.chdir(directory or temporary)
        problems = block_problems(page, text)
        os.chdir(ROOT)
    # Limited to the pipe's capacity, because the pipe is read only after this process ends.
    results.put([problem[:10_000] for problem in problems])


def run_page(page, text, limit=LIMIT, directory=None):
    """Runs the blocks of a page in a fork of this process; returns its problems.

    `directory` is where files of the page are kept for the next run; a temporary directory by default.
    """
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_page_process, args=(page, text, directory, results))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return [f"{page}: its code blocks took more than {limit} s"]
    if results.empty():
        return [f"{page}: the process of its code blocks ended with status {process.exitcode}"]
    return results.get()


def runs(text):
    """Whether a page has a block to run here."""
    return not FOLLOWED.search(text) and any(
        block.language in LANGUAGES
        and not NOT_RUN.fullmatch(block.comment)
        and not FILE.fullmatch(block.comment)
        for block in pages.code_blocks(text)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names-only", action="store_true", help="do not run code blocks")
    parser.add_argument("--cpp", type=Path, required=True, help="the page of the C++ reference")
    parser.add_argument("--directory", type=Path, required=True, help="where files of pages are kept")
    parser.add_argument("pages", nargs="+", help="paths of pages in the repository")
    options = parser.parse_args()
    # Also loads the device backend; the device is first used in the forks.
    import torch  # noqa: F401

    cpp_names = set(re.findall(r"\w+", options.cpp.read_text(encoding="utf-8")))
    problems = []
    for page in options.pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        problems += name_problems(page, text, cpp_names) + followed_problems(page, text)
        is_run = page.startswith("docs/") and not page.startswith(TRANSLATED) and not options.names_only
        if is_run and runs(text):
            start = time.monotonic()
            problems += run_page(page, text, directory=options.directory / page)
            print(f"{page}: code blocks run in {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    print("\n".join(problems))
    return site_pages.PROBLEMS if problems else 0


if __name__ == "__main__":
    sys.exit(main())
