# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves operator calls to files."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import call_file
from .host_arguments import HostArguments
from .observer import Observer
from .reproducer import of_rank
from .selection import Selection

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from .call import OperatorCall


class CallDump(Observer):
    """The observer of `dump`; see there for the arguments.

    Attributes:
        files (list of Path): the saved files.
    """

    def __init__(
        self,
        operators: str | Sequence[str] | None,
        folder: str | os.PathLike[str] = "musa_debug",
        *,
        modules: str | Sequence[str] | None = None,
        skip: int = 0,
        most: int = 1,
    ) -> None:
        self._selection, self._folder = Selection(operators, modules), folder
        self._skip, self._most = skip, most
        self._matched = 0
        self._pending: dict[int, HostArguments] = {}
        self._lock = threading.Lock()
        self.files: list[Path] = []

    def before(self, call: OperatorCall) -> None:
        if not call.on_device or not self._selection.includes(call):
            return
        with self._lock:
            number, self._matched = self._matched, self._matched + 1
        if self._skip <= number < self._skip + self._most:
            self._pending[call.index] = HostArguments(call)

    def after(self, call: OperatorCall) -> None:
        arguments = self._pending.pop(call.index, None)
        if arguments is None:
            return
        folder = of_rank(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{call.index:06d}_{call.name.replace('::', '.')}.pt"
        note = "" if call.error is None else f"it raised {type(call.error).__name__}"
        call_file.save(path, call, arguments, note=note)
        self.files.append(path)


def dump(
    operators: str | Sequence[str] | None,
    folder: str | os.PathLike[str] = "musa_debug",
    *,
    modules: str | Sequence[str] | None = None,
    skip: int = 0,
    most: int = 1,
) -> CallDump:
    """Saves operator calls of a `with` block, with their arguments, to files for `replay`.

    Args:
        operators (str or list of str): patterns of operators, e.g. "aten::mm" or "aten::*norm*".
        folder (path): the output folder; ranks of a distributed program use subfolders.
        modules (str or list of str): patterns of modules; default: all.
        skip (int): number of matching calls to skip first.
        most (int): maximum number of calls to save.

    Returns:
        CallDump: a context manager; `files` lists the saved files.

    Raises:
        CallFileError: if an argument cannot be saved; raised where the program calls the operator.
    """
    return CallDump(operators, folder, modules=modules, skip=skip, most=most)
