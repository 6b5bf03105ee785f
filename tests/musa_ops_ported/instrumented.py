# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A pytest plug-in: the pack's library is another build of it, $MUSA_TEST_LIBRARY, and in the end
$MUSA_TEST_SERVED gets the operators that it served."""

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
