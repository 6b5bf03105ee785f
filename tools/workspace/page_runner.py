# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Resolves the names in pages and runs their code blocks: `python -m workspace.page_runner PAGE...` in .venv.

Problems are printed as `page:line: problem`, and the exit status is nonzero if there are any. Each page
runs in its own process, forked after `import torch`. docs/design/manual.md describes the comments that mark
blocks.
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
# Time limit per page, in seconds.
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

    Later blocks use variables of earlier ones, so a page stops at its first failure.
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
        if block.language not in LANGUAGES or NOT_RUN.fullmatch(block.comment):
            continue
        run = _run_python if block.language == "python" else _run_bash
        printed, error = run(block, place, variables, folder)
        if error:
            return [f"{place}: {error}"]
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


def _page_process(page, text, results):
    # Programs in pages may write files to the working directory.
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        problems = block_problems(page, text)
        os.chdir(ROOT)
    # Limited to the pipe's capacity, because the pipe is read only after this process ends.
    results.put([problem[:10_000] for problem in problems])


def run_page(page, text, limit=LIMIT):
    """Runs the blocks of a page in a forked process; returns its problems."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=_page_process, args=(page, text, results))
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
    """Whether a page has a block to run."""
    return any(
        block.language in LANGUAGES and not NOT_RUN.fullmatch(block.comment)
        for block in pages.code_blocks(text)
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--names-only", action="store_true", help="do not run code blocks")
    parser.add_argument("--cpp", type=Path, required=True, help="the page of the C++ reference")
    parser.add_argument("pages", nargs="+", help="paths of pages in the repository")
    options = parser.parse_args()
    # Also loads the device backend; the device is first used in the forks.
    import torch  # noqa: F401

    cpp_names = set(re.findall(r"\w+", options.cpp.read_text(encoding="utf-8")))
    problems = []
    for page in options.pages:
        text = (ROOT / page).read_text(encoding="utf-8")
        problems += name_problems(page, text, cpp_names)
        if page.startswith("docs/") and not options.names_only and runs(text):
            start = time.monotonic()
            problems += run_page(page, text)
            print(f"{page}: code blocks run in {time.monotonic() - start:.1f} s", file=sys.stderr, flush=True)
    print("\n".join(problems))
    return site_pages.PROBLEMS if problems else 0


if __name__ == "__main__":
    sys.exit(main())
