# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The partial file, to which each result is appended, and the final file with the orders."""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from musa_runtime import measured_orders
from musa_runtime.errors import MusaError

if TYPE_CHECKING:
    from collections.abc import Mapping


class OutputError(MusaError):
    """The file with the orders cannot be written."""


class Journal:
    """Results of an unfinished run, one line of JSON for each operator.

    Args:
        output (str): the final file; the results are in `<output>.partial` until it is complete.
        header (dict): settings of the run; results of a run with other settings are discarded.
        restart (bool): discard all results.

    Attributes:
        results (dict of str to dict): the line of each operator that is complete.

    Raises:
        OutputError: the folder is not writable.
    """

    def __init__(self, output: str, header: Mapping[str, Any], restart: bool = False) -> None:
        self.path = f"{output}.partial"
        self.results: dict[str, dict[str, Any]] = {}
        try:
            os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
            if os.path.isdir(output):
                raise IsADirectoryError(21, "Is a directory", output)
            keep = not restart and self._load(header)
            self._file = open(self.path, "a" if keep else "w", encoding="utf-8")  # noqa: SIM115 - kept open
        except OSError as error:
            raise _unwritable(output, error) from error
        if not keep:
            self._append(header)

    def _load(self, header: Mapping[str, Any]) -> bool:
        """Reads the results of an earlier run; returns whether they are of the same settings."""
        try:
            with open(self.path, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file if line.endswith("\n")]
        except (FileNotFoundError, ValueError):
            return False
        if not lines or lines[0] != json.loads(json.dumps(header)):
            return False
        started = ""
        for line in lines[1:]:
            if "started" in line:
                if started:
                    self.results[started] = _ended_process()
                started = line["started"]
            else:
                started = ""
                if not line.get("interrupted"):
                    self.results[line.pop("op")] = line
        if started:
            self.results[started] = _ended_process()
        return True

    def start(self, op: str) -> None:
        """Records that an operator is being measured, for the case that it ends the process."""
        self._append({"started": op})

    def finish(self, op: str, row: Mapping[str, Any]) -> None:
        """Records the result of an operator."""
        self.results[op] = dict(row)
        self._append({"op": op, **row})

    def interrupt(self, op: str) -> None:
        """Records that the measurement of an operator was interrupted by the user."""
        self._append({"op": op, "interrupted": True})

    def close(self, remove: bool) -> None:
        """Closes the partial file, and removes it if the run is complete."""
        self._file.close()
        if remove:
            os.unlink(self.path)

    def _append(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def _ended_process() -> dict[str, Any]:
    return {"reason": "the process ended while it was measured; --restart measures it again"}


def write(output: str, content: Mapping[str, Any]) -> None:
    """Replaces the final file in one step, so that no process reads a part of it.

    Raises:
        OutputError: the folder is not writable.
    """
    folder = os.path.dirname(os.path.abspath(output))
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix=os.path.basename(output), suffix=".new", delete=False, encoding="utf-8"
        ) as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        os.chmod(file.name, 0o644)
        os.replace(file.name, output)
    except OSError as error:
        raise _unwritable(output, error) from error


def _unwritable(output: str, error: OSError) -> OutputError:
    command = "python -m torch_musa tune --output orders.json"
    return OutputError(
        f"the orders cannot be written to {output}: {error.strerror or error}.\n"
        "Likely causes: the folder belongs to another user, is read-only, or the path names a folder.\n"
        f"Fix: name another file ({command}), and set {measured_orders.VARIABLE} to it in programs",
        command,
    )
