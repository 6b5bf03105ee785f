# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Restricts a tool to some calls."""

import fnmatch


class Selection:
    """Selects calls of some operators in some modules.

    Args:
        operators (str or list of str): shell-style patterns of operators, e.g. "aten::*norm*"; a name without
            overload, e.g. "aten::add", matches all overloads. Default: all.
        modules (str or list of str): shell-style patterns of module names; a match includes all submodules.
            Default: all.
    """

    def __init__(self, operators=None, modules=None):
        self._operators, self._modules = _as_list(operators), _as_list(modules)

    def includes(self, call):
        if self._operators and not any(_is_operator(call.name, pattern) for pattern in self._operators):
            return False
        return not self._modules or any(_is_inside(call.module, pattern) for pattern in self._modules)


def _as_list(patterns):
    return [patterns] if isinstance(patterns, str) else list(patterns or ())


def _is_operator(name, pattern):
    if "::" not in pattern:
        pattern = f"aten::{pattern}"
    return fnmatch.fnmatchcase(name, pattern) or fnmatch.fnmatchcase(name, f"{pattern}.*")


def _is_inside(module, pattern):
    return fnmatch.fnmatchcase(module, pattern) or fnmatch.fnmatchcase(module, f"{pattern}.*")
