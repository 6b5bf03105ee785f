# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`torch_musa.debug.log_operators`: shapes, dtypes, provider, time and copies of each operator."""

import json

import pytest
import torch

from tests.harness.subprocesses import run_code
from tests.torch_musa.debug.programs import GPT, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


def logged(function, **options):
    with debug.log_operators(**options) as log:
        function()
    return log


def test_shapes_dtypes_modules_and_times():
    rows = logged(Training(GPT(), torch.bfloat16)).rows
    product = next(row for row in rows if row.module == "GPT.layers.0.qkv" and row.operator == "aten::addmm")
    assert product.arguments == (
        "self: bfloat16[96]",
        "mat1: bfloat16[64, 32]",
        "mat2: bfloat16[32, 96] strides [1, 32]",
    )
    assert product.phase == "forward" and 0 < product.seconds < 10
    assert {row.phase for row in rows} == {"forward", "backward"}
    starts = [row.start for row in rows]
    assert starts == sorted(starts) and min(row.seconds for row in rows) >= 0


def test_the_provider_is_the_one_whose_kernel_ran():
    x = torch.ones(8, 8, device="musa")
    with torch.musa.ops.prefer("aten::mm", "host-copy"):
        assert [row.provider for row in logged(lambda: x @ x).rows] == ["host-copy"]
    rows = logged(lambda: x @ x).rows
    assert [row.provider for row in rows] == [torch.musa.ops.explain("aten::mm")["provider"]]


def test_operators_that_torch_composes_name_the_operator_that_ran():
    x, w = torch.ones(1, 2, 8, 8, device="musa"), torch.ones(2, 2, 3, 3, device="musa")
    served = torch.musa.ops.explain("aten::convolution_overrideable")["provider"]
    for _ in range(2):  # the second time from a cache
        [row] = logged(lambda: torch.conv2d(x, w)).rows
        assert row.provider == f"{served} (aten::convolution_overrideable)"


def test_copies_between_host_and_device_are_counted():
    def program():
        x = torch.ones(100).to("musa")
        x.copy_(torch.zeros(100))
        x.cpu()
        x.sum().item()
        x + x

    rows = logged(program).rows
    copies = [row.copied for row in rows if row.copied != (0, 0)]
    assert copies == [(400, 0), (400, 0), (0, 400), (0, 4)]


def test_copies_of_kernels_that_run_on_the_host_are_noted():
    out = run_code(
        """
        import torch
        from torch_musa import debug

        torch.musa.ops.set_fallback_mode("allow")
        x = torch.ones(100, device="musa")
        with torch.musa.ops.prefer("aten::relu", "host-copy"), debug.log_operators() as log:
            torch.relu(x)
        print([(row.provider, row.note) for row in log.rows])
        """
    )
    assert out == (
        "[('host-copy', \"800 bytes were copied to host memory and back, for the CPU's kernel\")]\n"
    )


def test_operators_of_the_host_are_logged_on_request():
    assert logged(lambda: torch.ones(2) + 1).rows == []
    assert [row.verdict for row in logged(lambda: torch.ones(2) + 1, device_only=False).rows] == ["host"] * 2


def test_the_table_and_the_file(tmp_path):
    x = torch.ones(64, 64, device="musa")
    log = logged(lambda: [x @ x, x @ x, torch.relu(x)])
    assert "2 calls" in next(line for line in log.table().splitlines() if "aten::mm" in line)
    assert len(log.table(limit=1).splitlines()) == 1
    log.save(tmp_path / "log.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["operator"] for row in rows] == ["aten::mm", "aten::mm", "aten::relu"]
    assert rows[0]["arguments"] == ["self: float32[64, 64]", "mat2: float32[64, 64]"]


def test_an_operator_that_raises_is_logged():
    def program():
        with pytest.raises(RuntimeError):
            torch.ones(2, 3, device="musa") @ torch.ones(2, 3, device="musa")

    assert "it raised RuntimeError" in logged(program).rows[-1].note
