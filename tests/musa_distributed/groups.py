# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A rank's part of test_groups.py: reductions, refusals, groups, works, graphs, the flight record."""

from __future__ import annotations

import contextlib
import gc
import json
import pickle
import tempfile
import time
import weakref
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from tests.musa_distributed.collectives import all_gather_single, reduce_scatter_single


def world() -> tuple[int, int, torch.device]:
    return dist.get_rank(), dist.get_world_size(), torch.device("musa", torch.musa.current_device())


def backend(group: dist.ProcessGroup | None = None):
    return (group or dist.group.WORLD)._get_backend(torch.device("musa"))


# ---- reductions


def averages() -> None:
    rank, size, device = world()
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        x = torch.full((5,), rank + 1, dtype=dtype, device=device)
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert (x == (size + 1) / 2).all()
    whole, part = torch.full((2 * size,), float(rank), device=device), torch.empty(2, device=device)
    reduce_scatter_single(part, whole, dist.ReduceOp.AVG)
    assert (part == (size - 1) / 2).all()


def products_before_sums() -> None:
    rank, size, device = world()
    total = sum(0.5 * (other + 1) for other in range(size))
    for factor in (0.5, torch.tensor([0.5], device=device), torch.tensor([0.5])):
        x = torch.full((3,), float(rank + 1), device=device)
        dist.all_reduce(x, dist._make_nccl_premul_sum(factor))
        assert (x == total).all()


def refusals() -> None:
    """Each call is refused before anything is sent, so that the group stays usable."""
    rank, size, device = world()
    x = torch.ones(4, device=device)
    pairs, odd = x[:1].to(torch.complex64), torch.ones(size + 1, device=device)
    cases = [
        (ValueError, "no bitwise reductions", lambda: dist.all_reduce(x.int(), dist.ReduceOp.BXOR)),
        (TypeError, "cannot reduce tensors of Short", lambda: dist.all_reduce(x.short())),
        (
            TypeError,
            "SUM and AVG only",
            lambda: reduce_scatter_single(pairs, pairs.repeat(size), dist.ReduceOp.MAX),
        ),
        (
            TypeError,
            "AVG does not support bool tensors",
            lambda: dist.all_reduce(x.bool(), dist.ReduceOp.AVG),
        ),
        *(
            (
                TypeError,
                "PREMUL_SUM does not support bool tensors",
                lambda factor=factor: dist.all_reduce(x.bool(), dist._make_nccl_premul_sum(factor)),
            )
            for factor in (1.0, x[:1].bool())
        ),
        (ValueError, "has no tags", lambda: dist.send(x, (rank + 1) % size, tag=3)),
        (ValueError, "is not .* times that of", lambda: all_gather_single(x, x)),
        (ValueError, "cannot be split evenly", lambda: dist.all_to_all_single(odd.clone(), odd)),
        (TypeError, "of one dtype", lambda: backend().allgather([[x.int()] * size], [x])),
        (ValueError, "supports dense tensors only", lambda: dist.broadcast(x.to_sparse(), 0)),
    ]
    for kind, text, call in cases:
        with pytest.raises((kind, RuntimeError), match=text):
            call()
    dist.all_reduce(x)
    assert (x == size).all()


# ---- groups


def subgroups_in_turn() -> None:
    rank, size, device = world()
    pairs = [dist.new_group([first, first + 1]) for first in range(size - 1)]
    for first, pair in enumerate(pairs):
        if rank in (first, first + 1):
            x = torch.full((3,), float(rank), device=device)
            dist.all_reduce(x, group=pair)
            assert (x == 2 * first + 1).all()
    for pair in pairs:
        with contextlib.suppress(ValueError):  # the pair may be a group without this rank
            dist.destroy_process_group(pair)


def high_priority() -> None:
    import musa_distributed

    _, size, device = world()
    options = musa_distributed.ProcessGroupMCCL.Options(is_high_priority_stream=True)
    group = dist.new_group(pg_options=options)
    assert backend(group).options.is_high_priority_stream
    x = torch.ones(2, device=device)
    dist.all_reduce(x, group=group, async_op=True).wait()
    assert (x == size).all()
    with pytest.raises(TypeError, match=r"ProcessGroupMCCL\.Options"):
        # mccl only, because a gloo group would be destroyed while the other rank still connects to it.
        dist.new_group(backend="mccl", pg_options=dist.ProcessGroupGloo._Options())


def a_block_that_raises_leaves_nothing_open() -> None:
    _, size, device = world()
    x = torch.ones(2, device=device)
    group = dist.group.WORLD
    with pytest.raises(KeyError), dist._coalescing_manager(group, device):
        dist.broadcast(x * 2, 0)
        raise KeyError
    dist.distributed_c10d._world.pg_coalesce_state.pop(group, None)
    with dist._coalescing_manager(group, device, async_ops=True) as manager:
        dist.broadcast(x, 0)
    manager.wait()
    dist.all_reduce(x)
    assert (x == size).all()


# ---- works


def works() -> None:
    rank, size, device = world()
    x = torch.full((4,), float(rank + 1), device=device)
    work = dist.all_reduce(x, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    work.wait()
    total = size * (size + 1) / 2
    assert (doubled.wait() == 2 * total).all()
    torch.musa.synchronize()
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.get_future_result().wait() == 0
    assert torch.equal(work.result()[0], x)
    before = backend()._get_sequence_number_for_group()
    dist.all_reduce(x)
    assert backend()._get_sequence_number_for_group() == before + 1


def durations() -> None:
    _, _, device = world()
    group = dist.new_group(backend="mccl")
    group._enable_collectives_timing()
    x = torch.ones(1000, device=device)
    dist.all_reduce(x, group=group)  # a first call may load kernels
    work = dist.all_reduce(x, group=group, async_op=True)
    work.wait()
    torch.musa.synchronize()
    assert 0 < work._get_duration() < 10_000


def profiled() -> None:
    """The trace has the arguments that trace tools read: the group, the collective and the sizes."""
    _, size, device = world()
    group = dist.new_group(group_desc="profiled")
    x = torch.ones(6, dtype=torch.float16, device=device)
    torch.musa.synchronize()
    with torch.profiler.profile(record_shapes=True) as profiler:
        dist.all_reduce(x, group=group)
        whole = torch.empty(6 * size, dtype=x.dtype, device=device)
        all_gather_single(whole, x, group=group, async_op=True).wait()
        torch.musa.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        profiler.export_chrome_trace(f"{folder}/trace.json")
        events = json.loads(Path(folder, "trace.json").read_text())["traceEvents"]
    calls = [event["args"] for event in events if event["name"] == "record_param_comms"]
    told = ("Collective name", "In msg nelems", "Out msg nelems", "dtype")
    seen = [tuple(call[key] for key in told) for call in calls]
    assert seen == [("allreduce", 6, 6, "Half"), ("_allgather_base", 6, 6 * size, "Half")]
    for number, call in enumerate(calls, start=1):
        assert call["Process Group Name"] == group.group_name
        assert call["Process Group Description"] == "profiled"
        assert call["Group size"] == size
        assert json.loads(call["Process Group Ranks"]) == list(range(size))
        assert call["Seq"] == number


def hooks() -> None:
    _, _, device = world()
    seen = []
    group = dist.new_group(backend="mccl")
    group._register_on_completion_hook(lambda info: seen.append((info.op_type, info.seq)))
    for _ in range(3):
        dist.all_reduce(torch.ones(4, device=device), group=group)
    group._wait_for_pending_works()
    assert [number for _, number in seen] == [1, 2, 3]


def operands_live_as_long_as_the_call() -> None:
    """Memory of a temporary that the program drops at once is not reused while the call reads it."""
    rank, size, device = world()
    torch.musa.synchronize()
    total = torch.zeros((), device=device)
    for turn in range(20):
        x = torch.full((4096,), float(turn + rank), device=device)
        work = dist.all_reduce(x, async_op=True)
        reference = weakref.ref(x)
        del x
        gc.collect()
        torch.full((4096,), -1.0, device=device)
        work.wait()
        total += work.result()[0].sum()
        del work
        assert reference() is None
    expected = sum(4096 * sum(turn + other for other in range(size)) for turn in range(20))
    assert total.item() == expected


def gradients_are_not_asked() -> None:
    _, size, device = world()
    x = torch.ones(6, device=device, requires_grad=True)
    dist.broadcast(x, 0)
    wide = torch.ones(3, 4, device=device, requires_grad=True)
    with torch.no_grad():
        dist.all_reduce(wide.t())
    assert (wide == size).all()


# ---- graphs


def captured() -> None:
    _, size, device = world()
    x, y = torch.ones(8, device=device), torch.zeros(8 * size, device=device)
    dist.all_reduce(torch.ones(1, device=device))  # creates communicators outside the capture
    torch.musa.synchronize()
    graph = torch.musa.MUSAGraph()
    before = dist.all_reduce(torch.ones(1, device=device), async_op=True)
    with torch.musa.graph(graph):
        time.sleep(0.2)  # the watchdog must not query the earlier call during the capture
        doubled = x * 2
        dist.all_reduce(doubled)
        work = all_gather_single(y, doubled, async_op=True)
        work.wait()
        result = y + 1
    for value in (1.0, 3.0):
        x.fill_(value)
        graph.replay()
        torch.musa.synchronize()
        assert (result == 2 * value * size + 1).all()
    before.wait()
    dist.all_reduce(x)
    assert (x == 3 * size).all()


# ---- the record


def record() -> None:
    from musa_distributed import flight_recorder

    rank, size, device = world()
    torch.musa.synchronize()
    flight_recorder.reset()
    group = dist.new_group(group_desc="recorded")
    x = torch.ones(3, 2, device=device)
    dist.all_reduce(x, group=group)
    transfers = [
        dist.P2POp(dist.isend, x, (rank + 1) % size, group),
        dist.P2POp(dist.irecv, x.clone(), (rank - 1) % size, group),
    ]
    for work in dist.batch_isend_irecv(transfers):
        work.wait()
    torch.musa.synchronize()
    found = pickle.loads(flight_recorder.dump())
    names = [entry["profiling_name"] for entry in found["entries"]]
    send, receive = f"mccl:send {rank}->{(rank + 1) % size}", f"mccl:recv {rank}<-{(rank - 1) % size}"
    assert names == ["mccl:all_reduce", send, receive, "mccl:coalesced"]
    first = found["entries"][0]
    assert first["process_group"] == (group.group_name, "recorded")
    assert (first["input_sizes"], first["input_dtypes"], first["is_p2p"]) == ([[3, 2]], ["Float"], False)
    assert {entry["state"] for entry in found["entries"]} == {"completed"}
    assert found["pg_config"][group.group_name]["ranks"] == str(list(range(size)))
    assert found["comm_lib_version"].count(".") == 2
    assert "entries" not in pickle.loads(flight_recorder.dump(include_collectives=False))
