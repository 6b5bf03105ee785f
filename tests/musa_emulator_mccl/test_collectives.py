# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every call gives each rank the result of its definition, and does not change the buffer that it sends. The
ranks are in one process or in several."""

import pytest

from tests.harness.parts import sample
from tests.musa_emulator_mccl.processes import outputs_of, run_ranks

pytestmark = pytest.mark.once

# "async" is sampled, because it runs a stream's work on a worker, like a device.
MODES = sample(("async", "inline", "lazy"), 3)

ALL_CALLS = """
comm, stream = join(), make_stream()
everyone = range(RANKS)

def joined(dtype, count=7):
    return torch.stack([values_of(rank, dtype, count).double() for rank in everyone])

def same(buffer, expected):
    dtype = buffer.like.dtype
    assert torch.equal(buffer.get().double(), expected.to(dtype).double()), (dtype, expected)

def multiplied_sum(dtype):
    op, factor = ctypes.c_int(), torch.tensor([2]).to(dtype)
    fine(mccl.mcclRedOpCreatePreMulSum(
        ctypes.byref(op), ctypes.c_void_p(factor.data_ptr()), DTYPES.index(dtype), 1, comm))
    return op.value

def mean(x, dtype):
    # An average of integers is cut off.
    return x.mean(0) if dtype.is_floating_point else x.mean(0).trunc()

REDUCED = {
    SUM: lambda x, _: x.sum(0), PROD: lambda x, _: x.prod(0), MAX: lambda x, _: x.amax(0),
    MIN: lambda x, _: x.amin(0), AVG: mean,
}
for dtype in DTYPES:
    own = values_of(RANK, dtype, 7)
    multiplied = multiplied_sum(dtype)
    for op, reduced in {**REDUCED, multiplied: lambda x, _: x.sum(0) * 2}.items():
        expected = reduced(joined(dtype), dtype)
        x, y = Buffer(own), Buffer(torch.zeros(7).to(dtype))
        fine(mccl.mcclAllReduce(x.pointer, y.pointer, x.count, x.dtype, op, comm, stream))
        same(y, expected)
        same(x, own.double())
        fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, op, comm, stream))
        same(x, expected)
        for root in everyone:
            x, y = Buffer(own), Buffer(torch.zeros(7).to(dtype))
            fine(mccl.mcclReduce(x.pointer, y.pointer, x.count, x.dtype, op, root, comm, stream))
            same(y, expected if RANK == root else torch.zeros(7))
            same(x, own.double())
        whole, parts = values_of(RANK, dtype, 5 * RANKS), joined(dtype, 5 * RANKS)
        expected = reduced(parts, dtype)[5 * RANK : 5 * RANK + 5]
        x, y = Buffer(whole), Buffer(torch.zeros(5).to(dtype))
        fine(mccl.mcclReduceScatter(x.pointer, y.pointer, y.count, y.dtype, op, comm, stream))
        same(y, expected)
        same(x, whole.double())
        place = x.part(5 * RANK)
        fine(mccl.mcclReduceScatter(x.pointer, place, y.count, y.dtype, op, comm, stream))
        assert torch.equal(x.get()[5 * RANK : 5 * RANK + 5].double(), expected)
    fine(mccl.mcclRedOpDestroy(multiplied, comm))
    for root in everyone:
        x = Buffer(own)
        fine(mccl.mcclBcast(x.pointer, x.count, x.dtype, root, comm, stream))
        same(x, joined(dtype)[root])
        x, y = Buffer(own), Buffer(torch.zeros(7).to(dtype))
        source = x.pointer if RANK == root else None
        fine(mccl.mcclBroadcast(source, y.pointer, x.count, x.dtype, root, comm, stream))
        same(y, joined(dtype)[root])
        same(x, own.double())
    x, y = Buffer(own), Buffer(torch.zeros(7 * RANKS).to(dtype))
    fine(mccl.mcclAllGather(x.pointer, y.pointer, x.count, x.dtype, comm, stream))
    same(y, joined(dtype).flatten())
    same(x, own.double())
    whole = torch.zeros(7 * RANKS).to(dtype)
    whole[7 * RANK : 7 * RANK + 7] = own
    y = Buffer(whole)
    fine(mccl.mcclAllGather(y.part(7 * RANK), y.pointer, x.count, x.dtype, comm, stream))
    same(y, joined(dtype).flatten())
    # A ring, where all send first.
    x, y = Buffer(own), Buffer(torch.zeros(7).to(dtype))
    fine(mccl.mcclGroupStart())
    fine(mccl.mcclSend(x.pointer, x.count, x.dtype, (RANK + 1) % RANKS, comm, stream))
    fine(mccl.mcclRecv(y.pointer, y.count, y.dtype, (RANK - 1) % RANKS, comm, stream))
    fine(mccl.mcclGroupEnd())
    same(y, joined(dtype)[(RANK - 1) % RANKS])
    same(x, own.double())
fine(mccl.mcclCommDestroy(comm))
print("done")
"""


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_all_calls_in_all_data_types(tmp_path, ranks):
    assert outputs_of(ALL_CALLS, tmp_path, ranks) == ["done"] * ranks


@pytest.mark.parametrize("mode", MODES)
def test_all_calls_in_memory_that_the_host_cannot_address(tmp_path, mode):
    settings = {"MUSA_EMULATOR_MODE": mode, "MUSA_EMULATOR_MEMORY": "strict"}
    assert outputs_of(ALL_CALLS, tmp_path, 2, **settings) == ["done"] * 2


def test_all_reduces_of_large_operands(tmp_path):
    """Large operands take another path than small ones."""
    code = """
        comm, stream = join(), make_stream()
        for dtype in DTYPES:
            count = 2**21 // dtype.itemsize + 5
            own = values_of(RANK, dtype, count)
            x, y = Buffer(own), Buffer(torch.zeros(count).to(dtype))
            fine(mccl.mcclAllReduce(x.pointer, y.pointer, x.count, x.dtype, SUM, comm, stream))
            sum_of_all = sum(values_of(rank, dtype, count).double() for rank in range(RANKS))
            assert torch.equal(y.get().double(), sum_of_all.to(dtype).double()), dtype
            assert torch.equal(x.get().double(), own.double()), dtype
        print("done")
    """
    assert outputs_of(code, tmp_path, 3) == ["done"] * 3


@pytest.mark.parametrize("mode", MODES)
def test_more_calls_than_a_stream_holds(tmp_path, mode):
    """Rank 1 makes its first call when rank 0's stream is full."""
    code = """
        comm, stream = join(), make_stream()
        if RANK == 1:
            time.sleep(0.5)
        x = Buffer(torch.zeros(3))
        for _ in range(1500):
            fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, MAX, comm, stream))
        ok(rt.musaStreamSynchronize(stream))
        print(x.get().tolist())
    """
    assert outputs_of(code, tmp_path, MUSA_EMULATOR_MODE=mode) == ["[0.0, 0.0, 0.0]"] * 2


@pytest.mark.parametrize("mode", MODES)
def test_an_abort_frees_space_in_a_full_stream(tmp_path, mode):
    code = """
        comm, stream = join(), make_stream()
        x = Buffer(torch.zeros(3))
        if RANK == 0:
            import threading
            threading.Timer(0.5, lambda: mccl.mcclCommAbort(comm)).start()
            call = lambda: mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, MAX, comm, stream)
            results = [call() for _ in range(1500)]
            assert results.count(0) >= 1024 and set(results) <= {0, INVALID_ARGUMENT}
            ok(rt.musaStreamSynchronize(stream))
        print("done")
    """
    assert outputs_of(code, tmp_path, MUSA_EMULATOR_MODE=mode) == ["done"] * 2


@pytest.mark.parametrize("mode", MODES)
def test_a_call_returns_before_its_peers_call(tmp_path, mode):
    """Rank 1 makes its call only after a signal from rank 0, whose call is pending."""
    code = """
        comm, stream = join(), make_stream()
        said = Path(os.environ["MCCL_TEST_FOLDER"], "said")
        x = Buffer(torch.ones(3))
        if RANK == 1:
            wait_until(said.exists)
        fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
        if RANK == 0:
            assert not finished(stream)
            said.touch()
        ok(rt.musaStreamSynchronize(stream))
        print(x.get().tolist())
    """
    assert outputs_of(code, tmp_path, MUSA_EMULATOR_MODE=mode) == ["[2.0, 2.0, 2.0]"] * 2


@pytest.mark.parametrize("mode", MODES)
def test_work_after_a_call_runs_without_a_waiting_thread(tmp_path, mode):
    """Another stream waits for an event after the call; polling that stream is enough."""
    code = """
        comm, first, second = join(), make_stream(), make_stream()
        x, y = Buffer(torch.ones(3)), Buffer(torch.zeros(3))
        event = ctypes.c_void_p()
        ok(rt.musaEventCreateWithFlags(ctypes.byref(event), 2))
        if RANK == 1:
            time.sleep(0.3)
        fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, first))
        ok(rt.musaEventRecord(event, first))
        ok(rt.musaStreamWaitEvent(second, event, 0))
        ok(rt.musaMemcpyAsync(y.pointer, x.pointer, size(x.bytes), 3, second))
        wait_until(lambda: finished(second))
        print(y.get().tolist())
    """
    assert outputs_of(code, tmp_path, MUSA_EMULATOR_MODE=mode) == ["[2.0, 2.0, 2.0]"] * 2


def test_calls_on_two_streams_keep_their_order(tmp_path):
    code = """
        comm, streams = join(), [make_stream(), make_stream()]
        buffers = [Buffer(torch.full((1000,), float(i))) for i in range(50)]
        for i, x in enumerate(buffers):
            stream = streams[(i + RANK) % 2]
            fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
        assert all(x.get().eq(2 * i).all() for i, x in enumerate(buffers))
        print("done")
    """
    assert outputs_of(code, tmp_path, MUSA_EMULATOR_MODE="async") == ["done"] * 2


@pytest.mark.parametrize("mode", MODES)
def test_devices_of_one_process_communicate_within_a_group(tmp_path, mode):
    code = """
        comms = (ctypes.c_void_p * 2)()
        fine(mccl.mcclCommInitAll(comms, 2, None))
        streams, buffers = [], []
        for device in range(2):
            ok(rt.musaSetDevice(device))
            streams.append(make_stream())
            buffers.append(Buffer(torch.full((5,), device + 1.0)))
        for _ in range(2):
            fine(mccl.mcclGroupStart())
            for x, handle, stream in zip(buffers, comms, streams):
                comm = ctypes.c_void_p(handle)
                fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
            fine(mccl.mcclGroupEnd())
        for stream in streams:
            ok(rt.musaStreamSynchronize(stream))
        print([x.get()[0].item() for x in buffers])
        places = []
        for comm in comms:
            place = ctypes.c_int()
            fine(mccl.mcclCommMuDevice(ctypes.c_void_p(comm), ctypes.byref(place)))
            places.append(place.value)
        print(places)
    """
    done = outputs_of(code, tmp_path, 1, MUSA_EMULATOR_MODE=mode, MUSA_EMULATOR_DEVICES="2")
    assert done[0].splitlines() == ["[6.0, 6.0]", "[0, 1]"]


@pytest.mark.parametrize("mode", MODES)
def test_calls_are_captured_and_replayed(tmp_path, mode):
    code = """
        comm, stream = join(), make_stream()
        x = Buffer(torch.ones(3) * (RANK + 1))
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        ok(rt.musaStreamBeginCapture(stream, 0))
        fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, SUM, comm, stream))
        ok(rt.musaStreamEndCapture(stream, ctypes.byref(graph)))
        print(x.get().tolist())
        ok(rt.musaGraphInstantiateWithFlags(ctypes.byref(executable), graph, ctypes.c_ulonglong(0)))
        for _ in range(3):
            ok(rt.musaGraphLaunch(executable, stream))
        ok(rt.musaStreamSynchronize(stream))
        print(x.get().tolist())
    """
    done = outputs_of(code, tmp_path, MUSA_EMULATOR_MODE=mode)
    before = [[float(rank)] * 3 for rank in (1, 2)]
    assert [one.splitlines() for one in done] == [[str(x), "[12.0, 12.0, 12.0]"] for x in before]


def test_a_scalar_on_the_device_is_read_when_the_call_runs(tmp_path):
    code = """
        comm, stream = join(), make_stream()
        x, factor, op = Buffer(torch.ones(3)), Buffer(torch.tensor([5.0])), ctypes.c_int()
        fine(mccl.mcclRedOpCreatePreMulSum(ctypes.byref(op), factor.pointer, factor.dtype, 0, comm))
        later = torch.tensor([7.0 + RANK])
        ok(rt.musaMemcpy(factor.pointer, ctypes.c_void_p(later.data_ptr()), size(4), 1))
        fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, op, comm, stream))
        print(x.get().tolist())
    """
    assert outputs_of(code, tmp_path) == ["[15.0, 15.0, 15.0]"] * 2


def test_calls_without_elements_send_nothing(tmp_path):
    code = """
        comm, stream = join(), make_stream()
        for call in ("mcclAllReduce", "mcclReduceScatter"):
            fine(getattr(mccl, call)(None, None, size(0), 7, SUM, comm, stream))
        fine(mccl.mcclAllGather(None, None, size(0), 7, comm, stream))
        fine(mccl.mcclSend(None, size(0), 7, 1 - RANK, comm, stream))
        ok(rt.musaStreamSynchronize(stream))
        print("done")
    """
    assert outputs_of(code, tmp_path) == ["done"] * 2


def test_info_logs_every_call(tmp_path):
    code = "comm, s, x = join(), make_stream(), Buffer(torch.ones(3))\n"
    code += "fine(mccl.mcclAllReduce(x.pointer, x.pointer, x.count, x.dtype, MAX, comm, s)); x.get()"
    for rank, done in enumerate(run_ranks(code, tmp_path, MCCL_DEBUG="INFO")):
        assert f"rank {rank} of 2 on device {rank} calls mcclAllReduce of 3 float32, op 2" in done.err
    assert [done.err for done in run_ranks(code, tmp_path)] == ["", ""]
