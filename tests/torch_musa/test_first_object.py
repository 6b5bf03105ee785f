# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Which provider serves an operator does not depend on the program's first use of the device.

Some of torch's functions initialise the device in C++, before any pack is loaded.
"""

import pytest

from tests.harness.subprocesses import run_python

pytestmark = pytest.mark.once

FIRST = {
    "tensor": "torch.ones(2, device='musa')",
    "pinned memory": "torch.empty(2, pin_memory=True)",
    "pinned copy": "torch.empty(2).pin_memory()",
    "loader": "list(torch.utils.data.DataLoader(torch.ones(4, 2), pin_memory=True))",
    "generator": "torch.Generator('musa')",
    "stream": "torch.Stream('musa')",
    "event": "torch.Event('musa').record()",
    "graph": "torch.musa.MUSAGraph()",
    "memory": "torch.musa.mem_get_info()",
    "seed": "torch.manual_seed(0)",
    "state": "torch.musa.get_rng_state()",
    "properties": "torch.musa.get_device_properties(0)",
    "accelerator": "torch.accelerator.synchronize()",
    "autocast": "torch.autocast('musa').__enter__()",
}
CODE = """
import torch
{first}
torch.ones(2, device="musa").relu()
for row in torch.musa.ops.table():
    print(row["op"], row["provider"], *row["candidates"], row["reason"], row["origin"])
"""


def table(name: str, **environment: str) -> list[str]:
    """Lines of the table of operators after the first use; a warning is an error."""
    code = CODE.format(first=FIRST[name])
    done = run_python("-c", code, PYTHONWARNINGS="error::UserWarning", **environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def expected():
    return table("tensor")


@pytest.mark.parametrize("name", [name for name in FIRST if name != "tensor"])
def test_providers_are_those_of_a_tensor_first(name, expected):
    assert len(expected) > 1000
    differing = [pair for pair in zip(table(name), expected, strict=True) if pair[0] != pair[1]]
    assert differing == []


def test_an_order_may_name_packs_that_are_not_loaded_yet():
    order = {"TORCH_MUSA_OPS": "ported,host-copy"}
    lines = table("pinned memory", **order)
    assert lines == table("tensor", **order)
    assert "aten::relu ported" in "\n".join(lines)
