# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls a function once a module has been imported, now or later."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def after_import(name: str, action: Callable[[], object]) -> None:
    """Call `action` after the module `name` has been imported: now if it is, otherwise later.

    A module in the middle of its import counts as not imported, so the action waits for its next import.

    Args:
        name (str): the full name of the module.
        action (callable): takes nothing. An exception that it raises is raised by the import.
    """
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, once, by the later finders, with a loader that calls the action."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self.name, self.action = name, action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.action)
        return spec


class _Loader(importlib.abc.Loader):
    """The module's own loader, and then the action."""

    def __init__(self, loader: importlib.abc.Loader, action: Callable[[], object]) -> None:
        self.loader, self.action = loader, action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        # As without this loader: tools read sources and resources through the module's loader.
        module.__spec__.loader = module.__loader__ = self.loader  # type: ignore[union-attr]
        self.loader.exec_module(module)
        self.action()
