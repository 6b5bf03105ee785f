# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Restricts a tool to some calls."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .call import OperatorCall


class Selection:
    """Selects calls of some operators in some modules.

    Args:
        operators (str or list of str): shell-style patterns of operators, e.g. "aten::*norm*"; a name without
            overload, e.g. "aten::add", matches all overloads. Default: all.
        modules (str or list of str): shell-style patterns of module names; a match includes all submodules.
            Default: all.
    """

    def __init__(
        self, operators: str | Sequence[str] | None = None, modules: str | Sequence[str] | None = None
    ) -> None:
        self._operators, self._modules = _as_list(operators), _as_list(modules)

    def includes(self, call: OperatorCall) -> bool:
        if self._operators and not any(_is_operator(call.name, pattern) for pattern in self._operators):
            return False
        return not self._modules or any(_is_inside(call.module, pattern) for pattern in self._modules)


def _as_list(patterns: str | Sequence[str] | None) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns or ())


def _is_operator(name: str, pattern: str) -> bool:
    if "::" not in pattern:
        pattern = f"aten::{pattern}"
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")


def _is_inside(module: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, f"{pattern}.*")
