# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m torch_musa run [options] script.py [arguments]`: runs a program with options of packs.

An option is an entry point of group `torch_musa.run_options.v2`: its name is the option's name without the
dashes; its value is a function without parameters that returns a context manager around the program.
"""

import argparse
import contextlib
import runpy
import sys
from pathlib import Path

from musa_runtime.errors import MusaError

from . import entry_points


def options():
    """Returns the entry points of enabled packs' options, by name."""
    offered = entry_points.offered(entry_points.RUN_OPTIONS)
    return {name: entry for name, entry in offered.items() if not entry_points.packs_are_disabled(entry)}


def add_arguments(parser):
    """Adds the packs' options, the program and its arguments to a command line parser."""
    parser.set_defaults(pack_options=None)
    for name, entry in options().items():
        parser.add_argument(
            f"--{name}",
            action="append_const",
            dest="pack_options",
            const=name,
            help=f"provided by {entry_points.dist_of(entry)}",
        )
    parser.add_argument("-m", action="store_true", dest="as_module", help="PROGRAM is the name of a module")
    parser.add_argument("program", metavar="PROGRAM", help="a Python file, or a module with -m")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="arguments of the program")


def explain_unknown(arguments):
    """Raises a MusaError for an option whose pack is not installed but belongs to a known extra."""
    for argument in arguments:
        if not argument.startswith("-"):
            return
        name = argument.removeprefix("--")
        if argument == name or name in options():
            continue
        from . import extras

        if reason := extras.why_missing(f"run {argument}", name):
            raise MusaError(reason)


def run(program, arguments, as_module=False, pack_options=()):
    """Runs a program as Python does: as `__main__`, with its own `sys.argv` and `sys.path[0]`.

    Raises:
        SystemExit: raised by the program, or if the file does not exist.
    """
    with contextlib.ExitStack() as stack:
        for name in dict.fromkeys(pack_options or ()):
            stack.enter_context(options()[name].load()())
        sys.argv = [program, *arguments]
        if as_module:
            sys.path[0] = str(Path.cwd())
            runpy.run_module(program, run_name="__main__", alter_sys=True)
            return
        if not Path(program).exists():
            sys.exit(
                f"torch_musa: {program}: no such file\n"
                "Likely causes: a wrong working directory; an option of the program before its name\n"
                "Fix: python -m torch_musa run [options] PROGRAM [arguments of the program]"
            )
        sys.path[0] = str(Path(program).resolve().parent)
        runpy.run_path(program, run_name="__main__")
