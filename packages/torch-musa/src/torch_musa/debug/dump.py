# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Saves calls of operators to files."""

import threading

from . import call_file
from .host_arguments import HostArguments
from .observer import Observer
from .reproducer import of_rank
from .selection import Selection


class CallDump(Observer):
    """The observer of `dump`, which has the arguments.

    Attributes:
        files (list of Path): what was saved.
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
    """Saves calls of a `with` block to files for `replay`, with the arguments that the operator is given.

    Args:
        operators (str or list of str): patterns of operators, e.g. "aten::mm" or "aten::*norm*".
        folder (path): where the files are written; ranks of a distributed program get folders of their own
            inside of it.
        modules (str or list of str): patterns of modules; None for all.
        skip (int): matching calls that are passed over first.
        most (int): calls that are saved.

    Returns:
        CallDump: a context manager; `files` lists the saved files.

    Raises:
        CallFileError: an argument of a call cannot be saved; raised where the program calls the operator.
    """
    return CallDump(operators, folder, modules=modules, skip=skip, most=most)
