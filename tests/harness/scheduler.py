# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""How pytest-xdist divides the tests among its processes."""

from __future__ import annotations

import zlib

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

# Thousands of tests, and tests of a minute that start processes of their own. No fixture takes time.
DIVIDED = (
    "tests/conformance/",
    "tests/musa_distributed/test_faults.py",
    "tests/musa_distributed/test_training.py",
)
DIVISIONS = 40


class FileScheduler(LoadScopeScheduling):
    """The tests of a file run in order in one process, because its fixtures compile kernels and start
    servers. DIVIDED are divided by test."""

    def __init__(self, config: pytest.Config, log: object = None) -> None:
        super().__init__(config, log)
        self.crashed: set[str] = set()

    def _split_scope(self, nodeid: str) -> str:
        for start in DIVIDED:
            if nodeid.startswith(start):
                return f"{start} {zlib.crc32(nodeid.encode()) % DIVISIONS}"
        return nodeid.split("::")[0]

    def remove_node(self, node: WorkerController) -> str | None:
        units = self.assigned_work[node].values()
        pending = (nodeid for unit in units for nodeid, completed in unit.items() if not completed)
        self.crashed.update([next(pending)] if self._pending_of(self.assigned_work[node]) else [])
        return super().remove_node(node)

    def _reschedule(self, node: WorkerController) -> None:
        # Otherwise a test that ended its process would run, and be counted, again in each new process.
        for scope, unit in list(self.workqueue.items()) if self.crashed else []:
            unit.update(dict.fromkeys(self.crashed & unit.keys(), True))
            if all(unit.values()):
                del self.workqueue[scope]
        super()._reschedule(node)
