# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Reads environment variables that switch something on or off. C++ code uses c10/musa/MUSAEnvironment.h."""

from __future__ import annotations

import os

from .errors import SettingError


def flag(name: str, otherwise: bool = False) -> bool:
    """Returns whether a variable is `1`, or `otherwise` if it is unset or empty.

    Raises:
        SettingError: if it has another value than `0` and `1`.
    """
    value = os.environ.get(name, "")
    if value not in ("", "0", "1"):
        raise invalid(name, value, "0 or 1")
    return value == "1" if value else otherwise


def count(name: str, otherwise: int, least: int = 0) -> int:
    """Returns the integer in a variable, or `otherwise` if it is unset or empty.

    Raises:
        SettingError: if it is not an integer, or less than `least`.
    """
    value = os.environ.get(name, "")
    if not value:
        return otherwise
    if not (value.isascii() and value.isdigit() and int(value) >= least):
        raise invalid(name, value, f"a number from {least}")
    return int(value)


def command(name: str, default: str) -> list[str]:
    """Returns the words of the command in a variable, or of `default` if it is unset or blank.

    Raises:
        SettingError: if a quotation mark is not closed.
    """
    value = os.environ.get(name, "")
    try:
        import shlex  # at import time, no variable is a command

        return shlex.split(value) or shlex.split(default)
    except ValueError:
        raise invalid(name, value, "a command, whose quotation marks are closed") from None


def invalid(name: str, value: str, expected: str) -> SettingError:
    """Returns the error for a variable with an invalid value.

    Undecodable bytes of a value are shown as escapes, because not every stream can print them.
    """
    return SettingError(
        f"{name}={value!r} is invalid; expected {expected}.\nFix: correct it, or unset {name}",
        f"unset {name}",
    )
