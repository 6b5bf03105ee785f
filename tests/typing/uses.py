# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Uses of the Python API whose types `dev.py lint --types` checks. No test runs this file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import torch
import torch.backends.mudnn
import torch.backends.musa
import torch.musa
import torch.musa.amp
import torch.musa.mccl
from torch.musa import memory, streams
from torch.musa.memory import memory_stats
from typing_extensions import assert_type

import musa_runtime
import torch_musa
from musa_distributed import ProcessGroupMCCL, flight_recorder
from torch_musa import debug, musa
from torch_musa.utils import cpp_extension


def devices(tensor: torch.Tensor) -> None:
    assert_type(torch.musa.is_available(), bool)
    assert_type(torch.musa.device_count(), int)
    assert_type(torch.musa.current_device(), int)
    for device in (0, "musa:0", torch.device("musa"), None):
        assert_type(torch.musa.get_device_name(device), str)
        torch.musa.set_device(device)
        torch.musa.synchronize(device)
        with torch.musa.device(device):
            tensor.add_(1)
    with torch.musa.device_of(tensor):
        tensor.add_(1)
    properties = torch.musa.get_device_properties("musa:0")
    assert_type(properties.name, str)
    assert_type(properties.total_memory, int)
    assert_type(properties.uuid, UUID | None)
    assert_type(torch.musa.get_device_capability(), tuple[int, int])
    assert_type(torch.musa.get_arch_list(), list[str])
    assert_type(torch.musa.can_device_access_peer(0, "musa:1"), bool)
    assert_type(torch.musa.is_bf16_supported(including_emulation=False), bool)
    assert_type(torch.musa.mem_get_info(), tuple[int, int])
    torch.musa.set_sync_debug_mode("warn")
    torch.musa.set_sync_debug_mode(0)
    assert_type(torch.musa.utilization(), int)
    assert_type(torch.musa.list_gpu_processes(0), str)


def result_in_a_block(device: int) -> int:
    # Type checkers require a return statement after a context manager that may swallow exceptions.
    with torch.musa.device(device), torch.musa.stream(torch.musa.Stream()):
        return torch.musa.current_device()


def use_streams(tensor: torch.Tensor) -> None:
    stream = torch.musa.Stream("musa:0", priority=-1)
    assert_type(stream.musa_stream, int)
    assert_type(stream.priority, int)
    assert_type(torch.musa.Stream.priority_range(), tuple[int, int])
    assert_type(torch.musa.current_stream(), torch.musa.Stream)
    assert_type(torch.musa.default_stream(1), streams.Stream)
    event = torch.musa.Event(enable_timing=True)
    assert_type(event, torch.musa.Event)
    assert_type(stream.record_event(), torch.musa.Event)
    stream.record_event(event)
    stream.wait_event(event)
    event.record(stream)
    assert_type(event.query(), bool)
    assert_type(event.elapsed_time(torch.musa.Event(enable_timing=True)), float)
    assert_type(torch.musa.Event(interprocess=True).ipc_handle(), bytes)
    assert_type(torch.musa.Event.from_ipc_handle(0, b""), torch.musa.Event)
    with torch.musa.stream(stream):
        tensor.record_stream(stream)
    torch.musa.set_stream(torch.musa.ExternalStream(stream.musa_stream))


def use_memory() -> None:
    assert_type(torch.musa.memory_allocated("musa:1"), int)
    assert_type(torch.musa.max_memory_reserved(), int)
    assert_type(memory_stats(), dict[str, Any])
    assert_type(torch.musa.memory_summary(abbreviated=True), str)
    assert_type(torch.musa.memory_snapshot(), list[dict[str, Any]])
    assert_type(torch.musa.host_memory_stats(), dict[str, Any])
    torch.musa.set_per_process_memory_fraction(0.5, 0)
    torch.musa.memory._record_memory_history(stacks="python", skip_actions=["snapshot"])
    assert_type(memory._snapshot(), dict[str, Any])
    torch.musa.memory._dump_snapshot(Path("memory.pickle"))
    address = torch.musa.caching_allocator_alloc(1024, stream=torch.musa.current_stream())
    assert_type(address, int)
    torch.musa.caching_allocator_delete(address)
    allocator = torch.musa.MUSAPluggableAllocator("allocator.so", "allocate", "release")
    pool = torch.musa.MemPool(allocator.allocator(), no_split=True)
    assert_type(pool.id, tuple[int, int])
    with torch.musa.use_mem_pool(pool, device=0), torch.musa.caching_allocator_disabled():
        torch.musa.empty_cache()


def random_numbers() -> None:
    torch.musa.manual_seed_all(1)
    assert_type(torch.musa.initial_seed(), int)
    state = torch.musa.get_rng_state()
    assert_type(state, torch.Tensor)
    torch.musa.set_rng_state(state, "musa:0")
    torch.musa.set_rng_state_all(torch.musa.get_rng_state_all())
    assert_type(torch.musa.default_generators[0], torch.Generator)
    assert_type(torch.musa.default_generators[:1], tuple[torch.Generator, ...])
    with torch.musa.random.fork_rng([0, "musa:1"]):
        torch.musa.seed()


def graphs(tensor: torch.Tensor) -> None:
    graph = torch.musa.MUSAGraph(keep_graph=True)
    with torch.musa.graph(graph, pool=torch.musa.graph_pool_handle(), stream=torch.musa.Stream()):
        tensor.add_(1)
    graph.replay()
    graph.debug_dump(Path("graph.dot"))
    assert_type(graph.pool(), tuple[int, int])
    assert_type(torch.musa.is_current_stream_capturing(), bool)
    module = torch.nn.Linear(4, 4)
    assert_type(torch.musa.make_graphed_callables(module, (tensor,)), torch.nn.Linear)
    several = torch.musa.make_graphed_callables((module, torch.relu), ((tensor,), (tensor,)))
    assert_type(several, tuple[Callable[..., Any], ...])


def several_devices(tensor: torch.Tensor, module: torch.nn.Module) -> None:
    copies = torch.musa.comm.broadcast(tensor, [0, "musa:1"])
    assert_type(copies, tuple[torch.Tensor, ...])
    assert_type(torch.musa.comm.reduce_add(copies, destination=0), torch.Tensor)
    assert_type(torch.musa.comm.scatter(tensor, [0, 1], chunk_sizes=[1, 2]), tuple[torch.Tensor, ...])
    assert_type(torch.musa.comm.gather(copies, destination="cpu"), torch.Tensor)
    assert_type(torch.musa.parallel.replicate(module, [0, 1]), list[torch.nn.Module])
    torch.musa.parallel.DataParallel(module, device_ids=[0, 1])(tensor)


def operators() -> None:
    assert_type(torch.musa.ops.explain(torch.ops.aten.mm.default), dict[str, Any])
    assert_type(torch.musa.ops.table("*norm*"), list[dict[str, Any]])
    with torch.musa.ops.prefer("aten::mm", "host", "runtime") as preference:
        assert_type(preference.providers, tuple[str, ...])
    torch.musa.ops.set_fallback_mode("error")


def profiling() -> None:
    with torch.musa.profiler.profile(), torch.musa.mttx.range("step {}", 1):
        assert_type(torch.musa.mttx.range_push("inner"), int)
        torch.musa.mttx.range_pop()
    assert_type(torch.musa.profiler.why_unavailable(), str | None)
    torch.musa.check_error(torch.musa.musart().musaProfilerStart())
    torch.musa.check_error(torch.musa.musaStatus.SUCCESS)


def errors() -> None:
    try:
        torch.musa.init()
    except (torch.musa.OutOfMemoryError, torch.musa.AcceleratorError) as error:
        print(error)
    except torch.musa.MusaError as error:
        assert_type(error.command, str | None)


def older_names(tensor: torch.Tensor) -> None:
    if isinstance(tensor, torch.musa.FloatTensor):
        assert_type(torch.musa.sparse.FloatTensor(2, 3).to_dense(), torch.Tensor)
    assert_type(torch.musa.has_half, bool)


def backends() -> None:
    torch.backends.musa.matmul.allow_tf32 = True
    assert_type(torch.backends.musa.matmul.fp32_precision, str)
    assert_type(torch.backends.musa.is_built(), bool)
    assert_type(torch.backends.musa.flash_sdp_enabled(), bool)
    with torch.backends.musa.sdp_kernel(enable_flash=False):
        torch.backends.musa.enable_math_sdp(True)
    torch.backends.mudnn.allow_tf32 = False
    assert_type(torch.backends.mudnn.version(), int | None)
    with torch.backends.mudnn.flags(deterministic=True):
        assert_type(torch.backends.mudnn.enabled, bool)


def packs(loss: torch.Tensor) -> None:
    scaler = torch.musa.amp.GradScaler(init_scale=1024.0)
    with torch.musa.amp.autocast(dtype=torch.bfloat16):
        assert_type(scaler.scale(loss), torch.Tensor)
    assert_type(torch.musa.mccl.version(), tuple[int, int, int])
    assert_type(flight_recorder.dump(only_active=True), bytes)
    assert_type(ProcessGroupMCCL.Options(is_high_priority_stream=True).is_high_priority_stream, bool)
    extension = cpp_extension.load("ops", ["ops.cpp", Path("kernels.mu")], extra_cflags=["-O2"])
    extension.function()
    assert_type(cpp_extension.include_paths(), list[str])


def debugging(model: torch.nn.Module, batch: torch.Tensor) -> None:
    with debug.compare(
        Path("found"), operators="aten::mm", tolerances={torch.float32: (1e-4, 1e-6)}
    ) as found:
        model(batch)
    assert_type(found.first, debug.Difference | None)
    with debug.track_nonfinite(("nan",)) as tracker, debug.log_operators() as log:
        model(batch)
    assert_type(tracker.findings, list[debug.NonFinite])
    assert_type(log.table(limit=None), str)
    debug.write_report("report.html", found, tracker, log, title="step")
    with debug.dump(["aten::mm"], most=2) as dumped:
        model(batch)
    assert_type(dumped.files, list[Path])
    assert_type(debug.replay(dumped.files[0]).differences, list[debug.Difference])
    assert_type(debug.check_determinism(lambda: model(batch), restore=[model]).deterministic, bool)


def without_stubs() -> None:
    # The module torch.musa under the name that needs no stub package.
    assert_type(musa.memory_allocated("musa:0"), int)
    assert_type(musa.current_stream(), musa.Stream)
    with musa.stream(musa.Stream()), musa.amp.autocast():
        musa.synchronize()
    assert_type(torch_musa.__version__, str)
    assert_type(torch_musa.current_device(), int)
    assert_type(musa_runtime.load().status, str)
    assert_type(musa_runtime.load().reason, str | None)
