# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves operator calls to files."""

import threading

from . import call_file
from .host_arguments import HostArguments
from .observer import Observer
from .reproducer import of_rank
from .selection import Selection


class CallDump(Observer):
    """The observer of `dump`; see there for the arguments.

    Attributes:
        files (list of Path): the saved files.
    """

    def __init__(self, operators, folder="musa_debug", *, modules=None, skip=0, most=1):
        self._selection, self._folder = Selection(operators, modules), folder
        self._skip, self._most = skip, most
        self._matched = 0
        self._pending = {}
        self._lock = threading.Lock()
        self.files = []

    def before(self, call):
        if not call.on_device or not self._selection.includes(call):
            return
        with self._lock:
            number, self._matched = self._matched, self._matched + 1
        if self._skip <= number < self._skip + self._most:
            self._pending[call.index] = HostArguments(call)

    def after(self, call):
        arguments = self._pending.pop(call.index, None)
        if arguments is None:
            return
        folder = of_rank(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{call.index:06d}_{call.name.replace('::', '.')}.pt"
        note = "" if call.error is None else f"it raised {type(call.error).__name__}"
        call_file.save(path, call, arguments, note=note)
        self.files.append(path)


def dump(operators, folder="musa_debug", *, modules=None, skip=0, most=1):
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
