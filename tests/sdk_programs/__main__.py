# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Real MUSA programs on the SDK at MUSA_HOME, else on the installed emulator.

python -m tests.sdk_programs fetch FOLDER              the sources, with git
python -m tests.sdk_programs run FOLDER [PATTERN ...]  build, run and judge; recorded
python -m tests.sdk_programs list FOLDER [PATTERN ...] the names of the programs
python -m tests.sdk_programs table                     the last run, as a table
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path

from tests.musa_emulator import sdk

from . import fetch, programs, report
from .judge import Judge, Outcome


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sdk_programs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=("fetch", "run", "list", "table"))
    parser.add_argument("folder", nargs="?", type=Path, help="where the sources are")
    parser.add_argument("patterns", nargs="*", help="regular expressions for names of programs; default: all")
    parser.add_argument(
        "--host", default=fetch.HOST, help="where git finds owner/name (default: %(default)s)"
    )
    parser.add_argument(
        "--work", type=Path, default=sdk.ROOT / "build" / "sdk-programs", help="where to build"
    )
    parser.add_argument("--home", type=Path, default=Path(os.environ.get("MUSA_HOME") or sdk.HOME))
    return parser


def main(arguments: list[str] | None = None) -> int:
    """The command line. Returns 1 if a source could not be fetched, or a program surprises."""
    options = _parser().parse_intermixed_args(arguments)
    if options.verb == "table":
        if not (last := report.last()):
            print("No run is recorded.\nFix: python -m tests.sdk_programs run FOLDER", file=sys.stderr)
            return 2
        print(report.table(last))
        return 0
    if options.folder is None:
        print(
            f"{options.verb} needs a folder.\nFix: python -m tests.sdk_programs {options.verb} FOLDER",
            file=sys.stderr,
        )
        return 2
    sources, every = programs.load(options.folder)
    if options.verb == "fetch":
        failures = fetch.fetch(sources.values(), options.folder, options.host)
        print("\n".join(failures) or f"{len(sources)} sources are in {options.folder}")
        return bool(failures)
    chosen = [
        program
        for program in every
        if program.source.folder(options.folder).is_dir()
        and (not options.patterns or any(re.search(pattern, program.name) for pattern in options.patterns))
    ]
    if not chosen:
        print(
            f"No program in {options.folder} matches {options.patterns}.\n"
            f"Fix: python -m tests.sdk_programs fetch {options.folder}",
            file=sys.stderr,
        )
        return 2
    if options.verb == "list":
        print("\n".join(program.name for program in chosen))
        return 0
    name = report.sdk_name(options.home)
    judge = Judge(options.folder, options.work, options.home)
    outcomes: dict[programs.Program, Outcome] = {}
    unexpected = 0
    for program in chosen:
        outcome = outcomes[program] = judge.judge(program)
        surprise = outcome.good == bool(program.not_yet)
        unexpected += surprise
        counts = f" {outcome.passed}/{outcome.cases}" if outcome.cases else ""
        mark = "! " if surprise else ""
        print(
            f"{mark}{program.name}: {outcome.verdict}{counts}, {outcome.seconds:g} s {outcome.why}",
            flush=True,
        )
        content = report.record(outcomes, sources, name, report.last())
        report.write(content)
    print(report.table(content))
    return bool(unexpected)


if __name__ == "__main__":
    sys.exit(main())
