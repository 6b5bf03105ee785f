# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A pytest plug-in that loads the pack's library from $MUSA_TEST_LIBRARY, and writes the number of calls of
each operator to $MUSA_TEST_SERVED at the end."""

import json
import os
from pathlib import Path

from musa_ops_ported import plugin

from musa_runtime.hookspecs import hookimpl


def _libraries():
    return [os.environ["MUSA_TEST_LIBRARY"]]


plugin.musa_libraries = hookimpl(_libraries)


def pytest_sessionfinish():
    import torch

    calls = {}
    for row in torch.musa.ops.table():
        for candidate in torch.musa.ops.explain(row["op"])["candidates"]:
            if candidate["provider"] == "ported":
                calls[row["op"]] = candidate["calls"]
    Path(os.environ["MUSA_TEST_SERVED"]).write_text(json.dumps(calls))
