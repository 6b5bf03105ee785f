# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Mistakes: `dev.py lint --types` reports each `type: ignore` in a line where a type checker finds no error.

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
torch.musa.memory_alocated()  # type: ignore
torch.musa.memory_allocated(0.5)  # type: ignore
torch.musa.memory_allocated(devices=0)  # type: ignore
torch.musa.set_device()  # type: ignore
torch.musa.set_device([0])  # type: ignore
torch.musa.device_count(1)  # type: ignore
print(torch.musa.get_device_properties().total_memori)  # type: ignore
torch.musa.manual_seed("1")  # type: ignore
torch.musa.set_rng_state([1, 2])  # type: ignore
torch.musa.stream(0)  # type: ignore
torch.musa.set_stream("musa:0")  # type: ignore
torch.musa.Stream(priority="high")  # type: ignore
torch.musa.Event(timing=True)  # type: ignore
stream.wait_event(stream)  # type: ignore
print(stream.musa_streem)  # type: ignore
torch.musa.MemPool(use_on_oom="yes", split=False)  # type: ignore
torch.musa.graph(stream)  # type: ignore
torch.musa.MUSAGraph().capture_begin(pool=1)  # type: ignore
torch.musa.set_per_process_memory_fraction("half")  # type: ignore
torch.musa.comm.broadcast([1.0], [0])  # type: ignore
torch.musa.comm.scater(torch.ones(2), [0, 1])  # type: ignore
torch.musa.ops.prefer("aten::mm", 1)  # type: ignore
torch.musa.ops.set_fallback_mode("never")  # type: ignore
torch.musa.memory._record_memory_history(stacks="cpp")  # type: ignore
torch.musa.mttx.range_push(1)  # type: ignore
torch.musa.amp.GradScaler(scale=1.0)  # type: ignore
torch.musa.amp.autocast(dtype="float16")  # type: ignore
torch.backends.musa.matmul.allow_tf32 = "yes"  # type: ignore
torch.backends.musa.enable_flash()  # type: ignore
torch.backends.mudnn.set_flags(1.5)  # type: ignore
flight_recorder.dump(active=True)  # type: ignore
cpp_extension.load("name", [1])  # type: ignore
debug.compare(tolerances={torch.float32: 0.1})  # type: ignore
debug.dump("aten::mm", most="all")  # type: ignore
debug.write_report(Path("report.html"), stream)  # type: ignore
musa.memory_alocated()  # type: ignore
musa.current_stream(1.5)  # type: ignore
