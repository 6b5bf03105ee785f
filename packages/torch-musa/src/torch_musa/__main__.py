# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa COMMAND`: checks, listings and tools of an installation."""

import argparse
import contextlib
import importlib
import json
import sys

from ._version import __version__

try:
    from musa_runtime.command_line import Parser
    from musa_runtime.errors import MusaError
except ImportError as error:
    sys.exit(
        f"torch_musa: musa-runtime is missing or broken: {error}\n"
        "Fix: install the wheel musa-runtime from the folder or index that torch-musa was installed from"
    )

COMMANDS = {
    "doctor": "check the installation step by step; exit status 1 if a check fails",
    "report": "write a file for a bug report: versions, checks, settings, the output of a first program",
    "packs": "list the op packs: loaded, or the reason why not",
    "ops": "list the operators with their providers and calls; exit status 1 if none matches",
    "env": "print versions and settings",
    "run": "run a program with options of the packs",
    "tune": "measure the providers of operators, and use the fastest from now on",
    "top": "show devices, processes and operators, as they run; exit status 1 without devices",
    "compare": "run a program, with each operator on the CPU too; exit status 1 if one differs",
    "replay": "run one saved operator call again; exit status 1 if it differs from the CPU",
    "stubs": "write types of torch.musa for type checkers and editors",
}
# The modules with the options of commands, each imported for its command only, as some are slow to import.
_OPTIONS = {
    "report": "report",
    "run": "script_runner",
    "tune": "tune.command",
    "top": "top",
    "compare": "debug.script",
    "stubs": "type_stubs",
}


def parser(command=None):
    """Returns the parser of the command line, with the options of one command.

    Args:
        command (str, optional): the first word of the command line.
    """
    version = f"torch-musa {__version__}"
    result = Parser(
        prog="python -m torch_musa",
        description="Inspects the musa device and its op packs, and runs programs on it.",
        epilog="COMMAND --help prints the options of a command.",
        version=version,
    )
    commands = result.add_subparsers(dest="command", required=True, metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        added = commands.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", version=version
        )
        if name == command and name in _OPTIONS:
            _module(name).add_arguments(added)
        elif name == "replay":
            _add_replay_arguments(added)
        elif name == "ops":
            added.add_argument("pattern", nargs="?", metavar="PATTERN", help="e.g. norm, or 'aten::*norm*'")
            text = "list private operators (aten::_name) and overloads with out= as well"
            added.add_argument("--all", dest="every", action="store_true", help=text)
        if name in ("doctor", "packs", "ops", "env"):
            added.add_argument("--json", action="store_true", help="print JSON")
    return result


def _module(command):
    return importlib.import_module(f".{_OPTIONS[command]}", __package__)


def main(arguments=None):
    words = sys.argv[1:] if arguments is None else arguments
    command = words[0] if words else None
    if command == "run":
        try:
            _module("run").explain_unknown(words[1:])
        except MusaError as error:
            print(f"torch_musa: {error}", file=sys.stderr)
            return 2
    options = parser(command).parse_args(words)
    if command == "run":  # does not change the program's output or exit status
        _module("run").run(options.program, options.arguments, options.as_module, options.pack_options)
        return 0
    # Paths may contain undecodable bytes, and a terminal's encoding may lack characters.
    sys.stdout.reconfigure(errors="backslashreplace")
    if command in ("compare", "top"):  # standard output belongs to the program, or is repainted
        return _module(command).run(options)
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


def _answer(options):
    """Returns the text to print and the exit status."""
    # Imported here, so that each command imports only the modules it needs.
    if options.command in _OPTIONS:
        return _module(options.command).run(options)

    if options.command == "replay":
        return _replay(options)

    if options.command == "doctor":
        from . import doctor

        outcomes = doctor.examine()
        failed = any(outcome.status == "fail" for outcome in outcomes)
        plain = [outcome.as_dict() for outcome in outcomes]
        return _as_json(plain) if options.json else doctor.render(outcomes), int(failed)

    from . import listings

    if options.command == "ops":
        return _ops(options)
    if options.command == "packs":
        plain, render = listings.packs(), listings.render_packs
    else:
        plain, render = listings.environment(), listings.render_environment
    return _as_json(plain) if options.json else render(plain), 0


def _ops(options):
    from . import listings

    rows, hidden = listings.ops(options.pattern, options.every)
    if options.json:
        return _as_json(rows), int(not rows)
    if not rows:
        raise MusaError(listings.no_operator(options.pattern))
    return listings.render_ops(rows, hidden), 0


def _add_replay_arguments(parser):
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
