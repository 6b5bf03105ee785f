# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The parser of this project's command lines: argparse with a version, an overview, and near names in errors.

Standard library only, and no relative import: `tools/dev.py` loads this file before the package is built.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

_PARSER = "_parser"  # in the namespace: the parser of the innermost command
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_INVALID_CHOICE = re.compile(r"invalid choice: '?([^' ]*)'? \(choose from (.*)\)", re.DOTALL)


def near(word: str, names: Sequence[str], similarity: float = 0.6) -> str:
    """Returns " Did you mean a, b?" with the names most similar to a word, or "" if none is similar.

    Args:
        word (str): the word that is none of the names.
        names (sequence of str): the valid words.
        similarity (float): the least similarity, from 0 to 1.
    """
    found = difflib.get_close_matches(word, names, n=3, cutoff=similarity)
    return f" Did you mean {', '.join(found)}?" if found else ""


class Parser(argparse.ArgumentParser):
    """A parser whose errors exit with status 2 and name similar options and commands.

    Without arguments, errors print the overview. The parsers of its commands are of this class too.

    Args:
        version (str or callable): printed by `--version`. A callable is called only by that option.
        *positional, **named: as of `argparse.ArgumentParser`.
    """

    def __init__(self, *positional: Any, version: str | Callable[[], str], **named: Any) -> None:
        super().__init__(*positional, **named)
        self._words: list[str] = []
        self.set_defaults(**{_PARSER: self})
        self.add_argument(
            "--version",
            action=_Version,
            nargs=0,
            const=version,
            default=argparse.SUPPRESS,
            help="print the version and exit",
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, rest = self.parse_known_args(args, namespace)
        # The error of an unknown option shows the usage of the command that it was given to.
        parser = innermost(options)
        if rest:
            parser.error(f"unrecognized arguments: {' '.join(rest)}")
        return options

    def error(self, message: str) -> NoReturn:
        (self.print_usage if self._words else self.print_help)(sys.stderr)
        if invalid := _INVALID_CHOICE.search(message):
            found = near(invalid[1], re.findall(r"[\w.-]+", invalid[2]))
            message += f".{found}" if found else ""
        else:
            # A misspelt option may also be the reason for a missing argument.
            options = [word for word in self._words if word.startswith("-")]
            found = next(filter(None, map(self.suggestion, options)), "")
            message += f".{found}" if found else ""
        self.exit(2, f"\n{self.prog}: error: {message}\n")

    def suggestion(self, option: str) -> str:
        """Returns " Did you mean --a, --b?" with options that are similar to an unknown one, or ""."""
        known = sorted({*_OPTION.findall(self.format_help())})
        word = option.partition("=")[0]
        # Short words are similar to many others.
        return near(word, known, 0.75) if word.startswith("-") and word not in known else ""


def innermost(options: argparse.Namespace) -> Parser:
    """Removes from the result of `parse_known_args` the parser of the innermost command, and returns it."""
    return vars(options).pop(_PARSER)


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        version = self.const() if callable(self.const) else self.const
        sys.stdout.write(f"{version}\n")
        parser.exit()
