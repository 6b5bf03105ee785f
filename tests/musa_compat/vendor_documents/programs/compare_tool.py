# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Comparison with the CPU, tracking of modules, NaN, limits by step, rank and operator."""

import glob
import os

import torch

from tests.torch_musa.debug.planted import planted, wrong
from torch_musa.utils.compare_tool import (
    CompareWithCPU,
    ModuleInfo,
    NanInfTracker,
    compare_for_single_op,
    nan_inf_track_for_single_op,
    open_module_tracker,
)

torch.manual_seed(0)  # all results of gelu may be too small for a difference of five per cent to count
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU()).musa()
inputs = torch.ones(2, 4, device="musa")


def train(network, factor=1.0):
    (network(inputs) * factor).sum().backward()


with CompareWithCPU(atol=0.001, rtol=0.001, verbose=True) as tool:
    train(model)
assert tool.compared > 0 and tool.differences == []
with CompareWithCPU(enabled=False, atol=0.001, rtol=0.001, verbose=True) as tool:
    train(model)
assert tool.compared == 0
open_module_tracker(model)
assert ModuleInfo
with NanInfTracker():
    train(model)
only = ["torch.ops.aten.gelu"]
with CompareWithCPU(atol=0.01, rtol=0.01, target_op=only) as tool:
    train(model)
assert tool.compared == 1
with CompareWithCPU(atol=0.001, rtol=0.001, white_list=only):
    train(model)
with CompareWithCPU(atol=0.001, rtol=0.001, verbose=True, start_step=2) as tool:
    for _ in range(3):
        train(model)
        tool.step()
assert tool.step_cnt == 3
folder = "path_to_save"
with CompareWithCPU(
    atol=0.001, rtol=0.001, verbose=True, should_log_to_file=True, output_dir=folder, enable_ranks=[0]
):
    train(model)
assert glob.glob(f"{folder}/*rank0.log")
with (
    planted("gelu", wrong("gelu")),
    CompareWithCPU(
        atol=0.01, rtol=0.01, verbose=True, target_op=only, dump_error_data=True, output_dir=folder
    ) as tool,
):
    train(model)
saved = f"{folder}/torch.ops.aten.gelu_inputs.pkl"
assert os.path.exists(saved) and tool.differences
correct, arguments, options, output = compare_for_single_op(saved, torch.ops.aten.gelu, atol=0.01, rtol=0.01)
assert correct and len(arguments) == 1 and output.shape == (2, 4)
correct, arguments, options, output = nan_inf_track_for_single_op(saved, torch.ops.aten.gelu)
assert correct
print("done")
