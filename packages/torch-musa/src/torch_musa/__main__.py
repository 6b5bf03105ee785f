# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa doctor|packs|ops|env|tune|top|run|compare|replay|stubs`."""

import argparse
import contextlib
import json
import sys

from ._version import __version__

try:
    from musa_runtime.errors import MusaError
except ImportError as error:
    sys.exit(
        f"torch_musa: musa-runtime is missing or broken: {error}\n"
        "Fix: install the wheel musa-runtime from the folder or index that torch-musa was installed from"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m torch_musa", description="Inspects the musa device and its op packs."
    )
    parser.add_argument("--version", action="version", version=f"torch-musa {__version__}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="doctor|packs|ops|env|tune|top|run|compare|replay|stubs"
    )

    commands.add_parser("doctor", help="check the installation step by step; exit status 1 if a check fails")
    commands.add_parser("packs", help="the op packs: loaded, or the reason why not")
    ops = commands.add_parser(
        "ops", help="the provider of each operator, and its number of calls; exit status 1 if none matches"
    )
    ops.add_argument("pattern", nargs="?", metavar="PATTERN", help="e.g. norm, or 'aten::*norm*'")
    commands.add_parser("env", help="versions and settings, for a bug report")
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="print JSON")
    tune = commands.add_parser(
        "tune", help="measure the providers of operators, and use the fastest from now on"
    )
    top = commands.add_parser(
        "top", help="devices, processes and operators, as they run; exit status 1 without devices"
    )
    stubs = commands.add_parser("stubs", help="write types of torch.musa for type checkers and editors")
    commands.add_parser("run", help="run a program with options of the packs: run --help")
    words = sys.argv[1:] if arguments is None else arguments
    if not words:
        parser.print_help(sys.stderr)
        return 2
    debug = {
        "compare": "run a script, with each operator on the CPU too; exit status 1 if one differs",
        "replay": "run one saved operator call again; exit status 1 if it differs from the CPU",
    }
    for name, text in debug.items():
        command = commands.add_parser(name, help=text)
        if words[:1] == [name]:  # the tools import torch, which would slow down the other commands
            _add_debug_arguments(name, command)

    if words[:1] == ["top"]:
        from . import top as top_command

        top_command.add_arguments(top)
    if words[:1] == ["stubs"]:
        from . import type_stubs

        type_stubs.add_arguments(stubs)
    if words[:1] == ["tune"]:
        from .tune import command as tune_command

        tune_command.add_arguments(tune)
    if words[:1] == ["run"]:
        return _run(commands, parser, words)
    options = parser.parse_args(words)
    # Paths may contain undecodable bytes, and a terminal's encoding may lack characters.
    sys.stdout.reconfigure(errors="backslashreplace")
    if options.command == "compare":  # standard output belongs to the script
        from .debug import script

        return script.run(options)
    if options.command == "top":
        return top_command.run(options)
    try:
        # Standard output must contain only the result: packs that print while loading would corrupt
        # the JSON.
        with contextlib.redirect_stdout(sys.stderr):
            text, status = _answer(options)
        print(text)
        return status
    except MusaError as error:
        print(f"torch_musa: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader, such as `head`, has exited
        sys.stderr.close()
        return 0


def _run(commands, parser, arguments):
    """Runs a program without changing its output or exit status."""
    from . import script_runner

    script_runner.add_arguments(commands.choices["run"])
    try:
        script_runner.explain_unknown(arguments[1:])
    except MusaError as error:
        print(f"torch_musa: {error}", file=sys.stderr)
        return 2
    options = parser.parse_args(arguments)
    script_runner.run(options.program, options.arguments, options.as_module, options.pack_options)
    return 0


def _answer(options):
    """Returns the text to print and the exit status."""
    # Imported here, so that each command imports only the modules it needs.
    if options.command == "doctor":
        from . import doctor

        outcomes = doctor.examine()
        failed = any(outcome.status == "fail" for outcome in outcomes)
        plain = [outcome.as_dict() for outcome in outcomes]
        return _as_json(plain) if options.json else doctor.render(outcomes), int(failed)

    if options.command == "replay":
        return _replay(options)

    if options.command == "stubs":
        from . import type_stubs

        return type_stubs.run(options), 0

    if options.command == "tune":
        from .tune import command as tune_command

        return tune_command.run(options)

    from . import listings

    status = 0
    if options.command == "packs":
        plain, render = listings.packs(), listings.render_packs
    elif options.command == "ops":
        plain, render = listings.ops(options.pattern), listings.render_ops
        status = int(not plain)
    else:
        plain, render = listings.environment(), listings.render_environment
    return _as_json(plain) if options.json else render(plain), status


def _add_debug_arguments(name, parser):
    if name == "compare":
        from .debug import script

        script.add_arguments(parser)
        return
    parser.add_argument(
        "--times", type=_from_1, default=1, help="number of runs, whose results must be equal"
    )
    parser.add_argument(
        "--import", dest="modules", action="append", default=[], metavar="MODULE", help="import it first"
    )
    parser.add_argument(
        "--namespace",
        dest="namespaces",
        action="append",
        default=[],
        metavar="NAME",
        help="accept operators of this namespace, e.g. torchvision, besides those of aten",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="call.pt of a difference, or a file of torch_musa.debug.dump"
    )


def _from_1(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _replay(options):
    import importlib

    from . import debug

    for module in options.modules:
        importlib.import_module(module)
    outcomes = [
        debug.replay(file, times=options.times, namespaces=options.namespaces) for file in options.files
    ]
    return "\n".join(map(str, outcomes)), max(outcome.status for outcome in outcomes)


def _as_json(value):
    return json.dumps(value, indent=2)


if __name__ == "__main__":
    sys.exit(main())
