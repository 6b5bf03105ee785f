# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Counters of the caching allocator, and how an experiment keeps its peak small."""

import gc

import torch

torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
before = torch.cuda.memory_allocated()
x = torch.empty(1 << 18, device="cuda")
assert torch.cuda.memory_allocated() - before == 1 << 20
assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() > 0
assert torch.cuda.memory_reserved() >= torch.cuda.memory_allocated()
del x
gc.collect()
assert torch.cuda.memory_allocated() == before
torch.cuda.empty_cache()
stats = torch.cuda.memory_stats()
assert stats["allocated_bytes.all.peak"] >= 1 << 20 and stats["num_ooms"] == 0
assert torch.cuda.memory_stats_as_nested_dict()["allocation"]["all"]["allocated"] > 0
assert "memory summary" in torch.cuda.memory_summary(abbreviated=True)
torch.cuda.reset_accumulated_memory_stats()
torch.cuda.reset_max_memory_allocated()
free, total = torch.cuda.mem_get_info()
assert 0 < free <= total == torch.cuda.get_device_properties(0).total_memory
torch.cuda.set_per_process_memory_fraction(0.5, 0)
try:
    torch.empty(total, dtype=torch.int8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    assert "out of memory" in str(error)
else:
    raise AssertionError("an allocation above the limit succeeded")
torch.cuda.set_per_process_memory_fraction(1.0)
assert torch.cuda.memory_stats()["num_ooms"] == 1
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = torch.ones(1024, device="cuda")
assert torch.cuda.get_allocator_backend() == "native" and inside.sum() == 1024
assert torch.cuda.max_memory_cached() >= torch.cuda.memory_cached()
pinned = torch.empty(1024).pin_memory()
assert torch.cuda.host_memory_stats()["num_host_alloc"] >= 1 and pinned.is_pinned()
print("done")
