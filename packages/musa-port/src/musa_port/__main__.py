# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Ports CUDA sources to MUSA.

musa-port -o build/ported                     ports the CUDA headers of the installed torch, or of the tree in
                                              PYTORCH_REPO_PATH, and to build/ported/overlay torch's other
                                              headers that test for CUDA's compiler. On the include path the
                                              overlay precedes torch's folder, and build/ported follows it
musa-port my_extension -o my_extension_musa   ports a folder or a file
musa-port my_extension --dry-run              prints the changes as a diff
"""

from __future__ import annotations

import argparse
import difflib
import sys
from importlib import metadata
from pathlib import Path

from musa_runtime.command_line import Parser

from . import files, overlay_dir, rules
from .engine import Engine

_COLORS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}


def _parser() -> Parser:
    parser = Parser(
        prog="musa-port",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        # Only this option needs package metadata: the other options also work from the sources, where the
        # package is not installed.
        version=lambda: f"musa-port {metadata.version('musa-port')}",
    )
    parser.add_argument(
        "input", nargs="*", type=Path, help="folders and files; default: torch's CUDA headers"
    )
    parser.add_argument("-o", "--output", type=Path, help="the output folder")
    parser.add_argument("--rules", default="torch", help="a file of rules by name or path (default: torch)")
    parser.add_argument("--list-rules", action="store_true", help="list the rules of the package")
    parser.add_argument("--dry-run", action="store_true", help="print the changes without writing files")
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="color of the diff (default: auto)",
    )
    parser.add_argument("--quiet", action="store_true", help="do not print a summary")
    parser.add_argument(
        "--fail-on-doubt", action="store_true", help="exit with status 3 if a source needs manual changes"
    )
    return parser


def _print_diff(source: files.Source, name: str, before: str, after: str, color: bool) -> None:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), str(source.path), name, lineterm="", n=1
    )
    for line in lines:
        print(f"{_COLORS[line[0]]}{line}\033[0m" if color and line[:1] in _COLORS else line)


def _summary(report: files.Report) -> str:
    total = sum(report.changes.values())
    lines = [
        f"{report.files} files, {total} replacements of {len(report.changes)} kinds, {report.written} written"
    ]
    for (before, after), count in report.changes.most_common(10):
        lines.append(f"  {count:6}  {before} -> {after}")
    if report.doubts:
        lines.append(f"{len(report.doubts)} places need manual changes:")
        lines += [f"  {name}:{line}: {why}: {text[:80]}" for name, line, text, why in report.doubts[:20]]
        if len(report.doubts) > 20:
            lines.append(f"  and {len(report.doubts) - 20} more")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Runs the command line. Returns 0, 2 for invalid arguments, 3 for doubts with --fail-on-doubt."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.list_rules:
            for name, about in rules.available().items():
                print(f"{name:10} {about}")
            return 0
        if options.output is None and not options.dry_run:
            parser.error("no output folder.\nFix: add -o FOLDER, or --dry-run to see changes")
        engine = Engine(rules.load(options.rules))
        if options.input:
            sources = [source for path in options.input for source in files.tree_sources(path)]
            work = [(sources, engine, options.output)]
        else:
            overlay = overlay_dir(options.output) if options.output else None
            work = [
                (files.default_sources(), engine, options.output),
                (files.overlay_sources(), Engine(rules.load("overlay")), overlay),
            ]
        report = files.Report()
        if options.dry_run:
            color = options.color == "always" or (options.color == "auto" and sys.stdout.isatty())
            for sources, engine, _ in work:
                for source, name, ported in files.port(sources, engine):
                    _print_diff(
                        source, name, source.path.read_text(errors="surrogateescape"), ported.text, color
                    )
                    files.add(report, name, ported)
        else:
            for sources, engine, output in work:
                files.write(sources, engine, output, report)
    except (rules.RuleError, files.InputError) as error:
        print(f"musa-port: {error}", file=sys.stderr)
        return 2
    if not options.quiet:
        print(_summary(report), file=sys.stderr)
    return 3 if options.fail_on_doubt and report.doubts else 0


if __name__ == "__main__":
    sys.exit(main())
