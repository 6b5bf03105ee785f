# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Writes the number of calls of each provider of musa at the end of a process, for `run_scripts.py`.

Python imports this module at its start because the folder is in PYTHONPATH. It writes one file for each
process into the folder that MUSA_CALL_COUNTS names.
"""

import atexit
import json
import os
import sys
from multiprocessing import util


def _write():
    torch = sys.modules.get("torch")
    musa = getattr(torch, "musa", None)
    if musa is None or not musa.is_initialized():
        return
    calls = {}
    for row in musa.ops.table():
        calls[row["provider"]] = calls.get(row["provider"], 0) + row["calls"]
    copied = sum(row["count"] for row in musa.ops.fallback_report())
    path = os.path.join(os.environ["MUSA_CALL_COUNTS"], f"{os.getpid()}.json")
    with open(path, "w") as file:
        json.dump({"calls": calls, "on_host_copies": copied}, file)


def _when_the_child_ends(_):
    # Processes of multiprocessing end without running atexit functions.
    util.Finalize(None, _write, exitpriority=0)


if "MUSA_CALL_COUNTS" in os.environ:
    atexit.register(_write)
    util.register_after_fork(_write, _when_the_child_ends)
