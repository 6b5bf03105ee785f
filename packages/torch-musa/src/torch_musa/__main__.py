# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa doctor|packs|ops|env`."""

import argparse
import json
import sys

from musa_runtime.errors import MusaError


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m torch_musa", description="Look at the musa device and its op packs."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="doctor|packs|ops|env")

    commands.add_parser("doctor", help="check the installation step by step; exit status 1 if a check fails")
    commands.add_parser("packs", help="the op packs: loaded, or why not")
    ops = commands.add_parser("ops", help="who serves which operator, and how often it ran")
    ops.add_argument("pattern", nargs="?", metavar="PATTERN", help="e.g. norm, or 'aten::*norm*'")
    commands.add_parser("env", help="versions and settings, for a bug report")
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print JSON")

    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except MusaError as error:
        print(f"torch_musa: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `... | head` has seen enough
        sys.stderr.close()
        return 0


def _run(options):
    # Imported here: each brings only what its command needs.
    if options.command == "doctor":
        from . import doctor

        outcomes = doctor.examine()
        print(
            _as_json([outcome.as_dict() for outcome in outcomes]) if options.json else doctor.render(outcomes)
        )
        return 1 if any(outcome.status == "fail" for outcome in outcomes) else 0

    from . import report

    if options.command == "packs":
        rows = report.packs()
        print(_as_json(rows) if options.json else report.render_packs(rows))
    elif options.command == "ops":
        rows = report.ops(options.pattern)
        print(_as_json(rows) if options.json else report.render_ops(rows))
    else:
        facts = report.environment()
        print(_as_json(facts) if options.json else report.render_environment(facts))
    return 0


def _as_json(value):
    return json.dumps(value, indent=2)


if __name__ == "__main__":
    sys.exit(main())
