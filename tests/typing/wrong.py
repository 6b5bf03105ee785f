# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Mistakes: `dev.py lint --types` requires an error of each type checker in each line marked as wrong.

No test runs this file."""

from pathlib import Path

import torch
import torch.backends.mudnn
import torch.backends.musa
import torch.musa
import torch.musa.amp

from musa_distributed import flight_recorder
from torch_musa import debug, musa
from torch_musa.utils import cpp_extension

stream = torch.musa.Stream()
torch.musa.memory_alocated()  # wrong
torch.musa.memory_allocated(0.5)  # wrong
torch.musa.memory_allocated(devices=0)  # wrong
torch.musa.set_device()  # wrong
torch.musa.set_device([0])  # wrong
torch.musa.device_count(1)  # wrong
print(torch.musa.get_device_properties().total_memori)  # wrong
torch.musa.manual_seed("1")  # wrong
torch.musa.set_rng_state([1, 2])  # wrong
torch.musa.stream(0)  # wrong
torch.musa.set_stream("musa:0")  # wrong
torch.musa.Stream(priority="high")  # wrong
torch.musa.Event(timing=True)  # wrong
stream.wait_event(stream)  # wrong
print(stream.musa_streem)  # wrong
torch.musa.MemPool(use_on_oom="yes", split=False)  # wrong
torch.musa.graph(stream)  # wrong
torch.musa.MUSAGraph().capture_begin(pool=1)  # wrong
torch.musa.set_per_process_memory_fraction("half")  # wrong
torch.musa.comm.broadcast([1.0], [0])  # wrong
torch.musa.comm.scater(torch.ones(2), [0, 1])  # wrong
torch.musa.ops.prefer("aten::mm", 1)  # wrong
torch.musa.ops.set_fallback_mode("never")  # wrong
torch.musa.memory._record_memory_history(stacks="cpp")  # wrong
torch.musa.mttx.range_push(1)  # wrong
torch.musa.amp.GradScaler(scale=1.0)  # wrong
torch.musa.amp.autocast(dtype="float16")  # wrong
torch.backends.musa.matmul.allow_tf32 = "yes"  # wrong
torch.backends.musa.enable_flash()  # wrong
torch.backends.mudnn.set_flags(1.5)  # wrong
flight_recorder.dump(active=True)  # wrong
cpp_extension.load("name", [1])  # wrong
debug.compare(tolerances={torch.float32: 0.1})  # wrong
debug.dump("aten::mm", most="all")  # wrong
debug.write_report(Path("report.html"), stream)  # wrong
musa.memory_alocated()  # wrong
musa.current_stream(1.5)  # wrong
