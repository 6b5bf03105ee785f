# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""musa tensors in other processes: the memory is shared, and is freed when the last process releases it."""

import gc
import io
import os
import pickle
import struct
import time
import warnings
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from torch import multiprocessing, nn

from musa_runtime._load import extension
from musa_runtime.errors import ProducerExitedError, SharingError
from tests.harness import emulator as emulator_api
from tests.harness import peers
from tests.harness.peers import Peer, PeerError
from tests.harness.subprocesses import run_code


def usage():
    return extension().ipc_usage()


# ---- functions for the peer ------------------------------------------------------------------------------


def _double_in_place(tensor):
    tensor.mul_(2)
    torch.musa.synchronize()
    return tensor.tolist()


def _describe(tensor):
    return {
        "type": type(tensor).__name__,
        "device": str(tensor.device),
        "dtype": tensor.dtype,
        "shape": tuple(tensor.shape),
        "stride": tensor.stride() if tensor.layout is torch.strided else None,
        "offset": tensor.storage_offset() if tensor.layout is torch.strided else None,
        "requires_grad": tensor.requires_grad,
        "layout": tensor.layout,
        "values": tensor.detach().cpu().to_dense().tolist(),
    }


def _share_memory(first, second):
    second.fill_(7)
    torch.musa.synchronize()
    return (
        first.untyped_storage()._cdata == second.untyped_storage()._cdata,
        first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr(),
        first.tolist(),
    )


def _kept_shares_memory_with(tensor):
    return _share_memory(peers.kept["x"], tensor)


def _make(fill):
    peers.kept["made"] = torch.full((3, 4), fill, device="musa")
    return peers.kept["made"]


def _calls(api):
    return emulator_api.loaded_sdk() and emulator_api.emulator_or_skip().calls(api)


def _train_step(model, x):
    model(x).sum().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.sub_(1)
    torch.musa.synchronize()
    return [type(parameter).__name__ for parameter in model.parameters()]


def _send_on(tensor):
    return tensor


def _send_copy(tensor):
    return tensor.clone()


def _usage():
    return usage()


def _kept_sum():
    return float(peers.kept["x"].sum())


def _read_and_report():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.musa.ipc_collect()
    return float(peers.kept["x"].sum()), [str(warning.message) for warning in caught]


def _use_on_side_stream(tensor):
    stream = torch.musa.Stream()
    stream.wait_stream(torch.musa.current_stream())
    with torch.musa.stream(stream):
        result = tensor + 1
        tensor.record_stream(stream)
    del tensor
    stream.synchronize()
    return result.cpu().tolist()


# ---- received values -------------------------------------------------------------------------------------


def test_a_tensor_arrives_as_the_same_memory(peer):
    x = torch.arange(6.0, device="musa")
    assert peer.call(_double_in_place, x) == [0, 2, 4, 6, 8, 10]
    assert x.tolist() == [0, 2, 4, 6, 8, 10]


def test_writes_of_the_sender_are_seen_by_the_receiver(peer, musa):
    x = torch.zeros(4, device="musa")
    peer.call(peers.keep, "x", x)
    x.fill_(5)
    musa.synchronize()
    assert peer.call(peers.kept_as_list, "x") == [5] * 4


def test_a_tensor_can_come_from_the_spawned_process(peer, musa):
    y = peer.call(_make, 3.0)
    assert y.device == torch.device("musa", 0)
    assert y.shape == (3, 4)
    y.add_(1)
    musa.synchronize()
    assert peer.call(peers.kept_as_list, "made") == [[4.0] * 4] * 3
    del y


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex64])
def test_values_of_every_kind_arrive(peer, dtype):
    x = torch.ones(3, 2, dtype=dtype, device="musa")
    got = peer.call(_describe, x)
    assert got["dtype"] is dtype
    assert got["values"] == x.cpu().tolist()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[2:, 1:],
        lambda x: x.t(),
        lambda x: x[::2, ::3],
        lambda x: x[0].expand(5, -1),
        lambda x: x[1, 1],
        lambda x: x[:0],
    ],
    ids=["offset", "transposed", "strided", "expanded", "scalar", "empty"],
)
def test_views_keep_shape_strides_and_offset(peer, view):
    x = view(torch.arange(24.0, device="musa").view(4, 6))
    got = peer.call(_describe, x)
    assert (got["shape"], got["stride"], got["offset"]) == (tuple(x.shape), x.stride(), x.storage_offset())
    assert got["values"] == x.tolist()


def test_a_tensor_without_elements_arrives(peer):
    got = peer.call(_describe, torch.empty(0, 3, dtype=torch.int64, device="musa"))
    assert (got["device"], got["shape"], got["dtype"]) == ("musa:0", (0, 3), torch.int64)


def test_parameters_and_leaves_keep_requiring_grad(peer):
    got = peer.call(_describe, nn.Parameter(torch.ones(2, device="musa")))
    assert (got["type"], got["requires_grad"]) == ("Parameter", True)
    frozen = nn.Parameter(torch.ones(2, dtype=torch.int64, device="musa"), requires_grad=False)
    assert peer.call(_describe, frozen)["requires_grad"] is False
    got = peer.call(_describe, torch.ones(2, device="musa", requires_grad=True))
    assert (got["type"], got["requires_grad"]) == ("Tensor", True)


def test_a_module_is_trained_by_another_process(peer, musa):
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to("musa")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    assert peer.call(_train_step, model, torch.ones(4, 3, device="musa")) == ["Parameter"] * 4
    for old, new in zip(before, model.parameters(), strict=True):
        assert torch.equal((old - 1).cpu(), new.detach().cpu())
    assert model[1].num_batches_tracked.item() == 1


def test_a_tensor_that_is_not_a_leaf_is_refused_as_in_torch(musa):
    x = torch.ones(2, device="musa", requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="non-leaf"):
        ForkingPickler.dumps(x)
    assert usage()["sent"] == 0


class _Tagged(torch.Tensor):
    pass


def test_subclasses_and_storages_arrive(peer):
    tagged = torch.arange(3.0, device="musa").as_subclass(_Tagged)
    assert peer.call(_describe, tagged)["type"] == "_Tagged"
    x = torch.zeros(4, dtype=torch.uint8, device="musa")
    assert peer.call(_fill_storage, x.untyped_storage()) == ("musa:0", 4)
    assert x.tolist() == [9] * 4
    y = torch.zeros(2, device="musa")
    assert peer.call(_fill_storage, y.storage()) == ("musa:0", 2)
    assert y.tolist() == [9] * 2


def _fill_storage(storage):
    storage.fill_(9)
    torch.musa.synchronize()
    return str(storage.device), len(storage)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_arrive(peer, layout):
    dense = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    got = peer.call(_describe, dense.to_sparse(layout=layout).to("musa"))
    assert got["layout"] is layout
    assert got["values"] == dense.tolist()


# ---- shared storages stay shared -------------------------------------------------------------------------


def test_views_of_one_storage_share_a_storage_in_the_receiver(peer):
    x = torch.zeros(4, device="musa")
    same_storage, same_memory, values = peer.call(_share_memory, x, x[2:])
    assert same_storage and same_memory
    assert values == [0, 0, 7, 7]


def test_views_in_separate_messages_share_a_storage_too(peer):
    x = torch.zeros(4, device="musa")
    peer.call(peers.keep, "x", x)
    same_storage, same_memory, values = peer.call(_kept_shares_memory_with, x[1:2])
    assert same_storage and same_memory
    assert values == [0, 7, 0, 0]


def test_a_segment_is_opened_once(peer, emulator):
    first, second = torch.ones(8, device="musa"), torch.ones(8, device="musa")
    peer.call(peers.keep, "x", first)
    opened = peer.call(_calls, "musaIpcOpenMemHandle")
    asked = emulator.calls("musaIpcGetMemHandle")
    for _ in range(3):
        peer.call(_describe, second)
        peer.call(_describe, first)
    assert peer.call(_calls, "musaIpcOpenMemHandle") == opened
    assert emulator.calls("musaIpcGetMemHandle") == asked
    closed = peer.call(_calls, "musaIpcCloseMemHandle")
    peer.call(peers.drop)
    assert peer.call(_calls, "musaIpcCloseMemHandle") == closed + 1


def test_the_other_process_waits_for_work_in_flight(peer, musa):
    stream = musa.Stream()
    x = torch.zeros(1 << 18, device="musa")
    stream.wait_stream(musa.current_stream())
    with musa.stream(stream):
        for _ in range(50):
            x += 1
        assert peer.call(_extremes, x) == (50.0, 50.0)


def _extremes(tensor):
    return float(tensor.min()), float(tensor.max())


def test_a_queue_that_pickles_on_its_own_thread_waits_for_all_streams(peer, musa):
    queue = multiprocessing.get_context("spawn").Queue()
    stream = musa.Stream()
    x = torch.zeros(1 << 18, device="musa")
    stream.wait_stream(musa.current_stream())
    with musa.stream(stream):
        for _ in range(50):
            x += 1
        queue.put(x)
        y = queue.get(timeout=60)
    assert y.data_ptr() == x.data_ptr()
    assert y.cpu().eq(50).all()
    queue.close()
    queue.join_thread()


def test_other_tensors_of_the_segment_keep_what_is_written_during_the_first_share(musa):
    """The first share may move the segment; a concurrent write must not be lost.

    Runs in a separate process: in the process of a whole leg, in strict memory, the emulator has crashed here
    for an unknown reason. So only one test fails, with its message, and not the leg.
    """
    run_code("""
        import pickle, threading, time
        import torch
        from multiprocessing.reduction import ForkingPickler

        shared = torch.zeros(2 << 20, dtype=torch.uint8, device="musa")
        beside = torch.zeros(1 << 20, device="musa")
        assert 0 < beside.data_ptr() - shared.data_ptr() < 20 << 20, "both must be in one segment"
        stop = threading.Event()
        steps = 0

        def work():
            global steps
            while not stop.is_set():
                beside.add_(1)
                steps += 1

        worker = threading.Thread(target=work)
        worker.start()
        time.sleep(0.02)
        message = ForkingPickler.dumps(shared)
        time.sleep(0.02)
        stop.set()
        worker.join()
        torch.musa.synchronize()
        assert steps > 2
        assert beside.cpu().eq(steps).all()
        assert pickle.loads(message).cpu().eq(0).all()
    """)


# ---- the lifetime of memory ------------------------------------------------------------------------------


def test_memory_lives_until_the_receiver_releases_it(peer, musa):
    before = musa.memory_allocated()
    x = torch.full((1 << 20,), 2.0, device="musa")
    peer.call(peers.keep, "x", x)
    del x
    gc.collect()
    musa.ipc_collect()
    assert musa.memory_allocated() == before + (4 << 20)
    assert usage()["limbo"] == 1 and usage()["held"] == 1
    assert peer.call(_kept_sum) == 2 << 20
    peer.call(peers.drop)
    musa.ipc_collect()
    assert musa.memory_allocated() == before
    assert usage()["limbo"] == usage()["held"] == 0


def test_memory_that_the_receiver_has_released_is_freed_with_its_tensor(peer, musa):
    before = musa.memory_allocated()
    x = torch.ones(1 << 20, device="musa")
    peer.call(_describe, x[:1])
    assert usage()["held"] == 0
    del x
    assert musa.memory_allocated() == before


def test_the_next_message_collects(peer, musa):
    before = musa.memory_allocated()
    x = torch.ones(1 << 20, device="musa")
    peer.call(peers.keep, "x", x)
    del x
    peer.call(peers.drop)
    assert musa.memory_allocated() > before
    peer.call(_describe, torch.ones(1, device="musa"))
    musa.ipc_collect()
    assert musa.memory_allocated() == before


def test_the_allocator_collects_before_it_allocates_a_segment(peer, musa, emulator):
    x = torch.ones(9 << 20, device="musa")
    peer.call(peers.keep, "x", x)
    del x
    peer.call(peers.drop)
    assert usage()["limbo"] == 1
    malloced = emulator.calls("musaMalloc")
    y = torch.empty(9 << 20, device="musa")
    assert usage()["limbo"] == 0
    assert emulator.calls("musaMalloc") == malloced, "the shared memory must be reused"
    del y


def test_memory_on_two_streams_is_waited_for(peer, musa):
    x = torch.ones(1000, device="musa")
    assert peer.call(_use_on_side_stream, x) == [2.0] * 1000
    side = musa.Stream()
    side.wait_stream(musa.current_stream())
    with musa.stream(side):
        y = x * 3
        x.record_stream(side)
    del x
    side.synchronize()
    assert y.cpu().eq(3).all()
    musa.empty_cache()


def test_memory_of_a_killed_receiver_is_freed(musa):
    before = musa.memory_allocated()
    peer = Peer()
    x = torch.ones(1 << 20, device="musa")
    peer.call(peers.keep, "x", x)
    del x
    musa.ipc_collect()
    assert musa.memory_allocated() > before
    peer.kill()
    musa.ipc_collect()
    assert musa.memory_allocated() == before


def test_resizing_a_shared_storage_does_not_affect_the_receivers_memory(peer, musa):
    x = torch.ones(1 << 10, device="musa")
    peer.call(peers.keep, "x", x)
    x.untyped_storage().resize_(0)
    junk = [torch.zeros(1 << 10, device="musa") for _ in range(10)]
    musa.synchronize()
    assert peer.call(_kept_sum) == 1 << 10
    peer.call(peers.drop)
    musa.ipc_collect()
    assert usage()["limbo"] == 0
    del junk


def test_received_memory_cannot_be_resized(peer):
    y = peer.call(_make, 1.0)
    with pytest.raises(RuntimeError, match="not resizable"):
        y.untyped_storage().resize_(1 << 20)


# ---- the same process ------------------------------------------------------------------------------------


def _load(message):
    return pickle.loads(bytes(message))


def test_a_message_to_oneself_gives_the_same_storage(musa):
    x = torch.arange(4.0, device="musa")
    y = _load(ForkingPickler.dumps(x[1:]))
    assert y.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert y.tolist() == [1, 2, 3]
    assert usage()["sent"] == 0


def test_a_message_to_oneself_keeps_the_memory_alive(musa):
    before = musa.memory_allocated()
    x = torch.arange(4.0, device="musa")
    message = ForkingPickler.dumps(x)
    del x
    musa.ipc_collect()
    y = _load(message)
    assert y.tolist() == [0, 1, 2, 3]
    # Returned memory belongs to the process again, and can be sent again.
    again = _load(ForkingPickler.dumps(y))
    assert again.data_ptr() == y.data_ptr()
    del y, again
    assert musa.memory_allocated() == before


def test_a_message_is_received_once(musa, peer):
    message = bytes(ForkingPickler.dumps(torch.ones(2, device="musa")))
    pickle.loads(message)
    with pytest.raises(SharingError, match="second time"):
        pickle.loads(message)
    to_peer = bytes(ForkingPickler.dumps((_describe, (torch.ones(2, device="musa"),))))
    peer.send_raw(to_peer)
    assert peer.answer()["values"] == [1, 1]
    peer.send_raw(to_peer)
    with pytest.raises(PeerError, match=r"SharingError: [\s\S]*second time"):
        peer.answer()


def _share(tensor):
    return extension().ipc_share(tensor.to("musa").untyped_storage())


def _addresses_of_files(folder):
    """Returns descriptors of this process that are not counters: process, descriptor, inode, file system."""
    short, memory = (os.memfd_create(name) for name in ("torch_musa-shared", "musa-emulator"))
    for descriptor in (short, memory):
        os.truncate(descriptor, 4096)
    foreign = os.memfd_create("something else")
    os.truncate(foreign, 4 << 20)
    os.mkfifo(folder / "pipe")
    descriptors = {
        "short": short,
        "memory": memory,
        "foreign": foreign,
        "file": os.open(folder / "file", os.O_RDWR | os.O_CREAT),
        "pipe": os.open(folder / "pipe", os.O_RDWR),
        "folder": os.open(folder, os.O_RDONLY),
    }
    os.write(descriptors["file"], b"precious" * (1 << 19))
    addresses = {}
    for name, descriptor in descriptors.items():
        status = os.fstat(descriptor)
        addresses[name] = (os.getpid(), descriptor, status.st_ino, status.st_dev)
    return addresses


def test_a_message_that_names_another_file_is_refused_and_the_file_is_untouched(peer, tmp_path):
    (process, descriptor, inode, file_system, slot), *rest = peer.call(_share, torch.ones(2))
    for name, address in peer.call(_addresses_of_files, tmp_path).items():
        with pytest.raises(SharingError, match=r"instead of the 4194304 bytes of counters"):
            extension().ipc_open((*address, slot), *rest)
        assert name != "file" or (tmp_path / "file").read_bytes() == b"precious" * (1 << 19)
    for wrong in ((inode + 1, file_system), (inode, file_system + 1)):
        with pytest.raises(ProducerExitedError):
            extension().ipc_open((process, descriptor, *wrong, slot), *rest)
    own = extension().ipc_share(torch.ones(2, device="musa").untyped_storage())
    with pytest.raises(SharingError, match="second time"):
        extension().ipc_open((*own[0][:4], own[0][4] + 1000), *own[1:])
    assert extension().ipc_open(*own).nbytes() == 8


def test_a_handle_that_names_another_file_is_refused_and_the_file_is_untouched(peer, tmp_path, emulator):
    """The handle's format is the SDK's; this test uses the emulator's."""
    for name, address in peer.call(_addresses_of_files, tmp_path).items():
        counters, device, segment, *place = peer.call(_share, torch.ones(2))
        magic, _, _, ordinal, size = struct.unpack_from("=IiiiQ", segment)
        wrong = struct.pack("=IiiiQQQ", magic, *address[:2], ordinal, size, *address[2:])
        with pytest.raises(RuntimeError, match="invalid resource handle"):
            extension().ipc_open(counters, device, wrong.ljust(len(segment), b"\0"), *place)
        assert name != "file" or (tmp_path / "file").read_bytes() == b"precious" * (1 << 19)


# ---- tensors that cannot be shared -----------------------------------------------------------------------


def test_a_received_tensor_cannot_be_sent_on_but_its_copy_can(peer):
    x = torch.ones(3, device="musa")
    with pytest.raises(PeerError, match=r"SharingError: [\s\S]*clone\(\)"):
        peer.call(_send_on, x)
    assert peer.call(_send_copy, x).tolist() == [1, 1, 1]


def test_foreign_memory_is_refused_by_name(musa):
    x = torch.ones(3, device="musa")
    foreign = torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    with pytest.raises(SharingError, match=r"did not come from the musa caching allocator[\s\S]*clone\(\)"):
        ForkingPickler.dumps(foreign)
    assert _load(ForkingPickler.dumps(foreign.clone())).tolist() == [1, 1, 1]


def test_memory_without_a_handle_is_refused_by_name(musa, emulator):
    musa.empty_cache()
    x = torch.ones(3 << 20, device="musa")
    emulator.fail_next("musaIpcGetMemHandle", emulator_api.INVALID_VALUE)
    with pytest.raises(SharingError, match="expandable_segments:False"):
        ForkingPickler.dumps(x)
    assert _load(ForkingPickler.dumps(x)).data_ptr() == x.data_ptr()
    assert usage()["sent"] == 0


def test_devices_are_matched_by_identity_and_not_by_index(two_devices):
    peer = Peer(MUSA_VISIBLE_DEVICES="1")
    got = peer.call(_describe, torch.ones(2, device="musa:1"))
    assert (got["device"], got["values"]) == ("musa:0", [1, 1])
    peer._pipe.send((_describe, (torch.ones(2, device="musa:0"),)))
    with pytest.raises(PeerError, match=r"SharingError: [\s\S]*cannot see[\s\S]*MUSA_VISIBLE_DEVICES"):
        peer.answer()
    got = peer.call(_describe, torch.empty(0, device="musa:1"))
    assert got["device"] == "musa:0"
    assert peer.close() == 0
    two_devices.ipc_collect()


def test_tensors_of_the_second_device_arrive_on_it(two_devices, peer):
    with two_devices.device(0):
        got = peer.call(_describe, torch.ones(2, device="musa:1"))
    assert got["device"] == "musa:1"


# ---- torch handles CPU tensors ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_cpu_tensors_are_reduced_by_torch_alone(musa, strategy):
    before = multiprocessing.get_sharing_strategy()
    multiprocessing.set_sharing_strategy(strategy)
    try:
        buffer = io.BytesIO()
        x = torch.ones(3)
        pickler = ForkingPickler(buffer, pickle.HIGHEST_PROTOCOL)
        pickler.dump(x)
        assert b"musa_runtime" not in buffer.getvalue()
        assert b"torch.multiprocessing.reductions" in buffer.getvalue()
        y = pickle.loads(buffer.getvalue())
        y.fill_(4)
        assert x.tolist() == [4, 4, 4]
    finally:
        multiprocessing.set_sharing_strategy(before)
    with pytest.raises(RuntimeError, match="meta storage"):
        ForkingPickler.dumps(torch.ones(2, device="meta").untyped_storage())


def test_cpu_tensors_reach_another_process(peer):
    x = torch.ones(3)
    assert peer.call(_double_cpu, x) == [2, 2, 2]
    assert x.tolist() == [2, 2, 2]


def _double_cpu(tensor):
    return tensor.mul_(2).tolist()


# ---- senders that exit -----------------------------------------------------------------------------------


def test_memory_of_a_killed_sender_is_reported_and_causes_no_crash(musa, capfd):
    peer = Peer()
    y = peer.call(_make, 6.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        musa.ipc_collect()  # nothing to report yet
    capfd.readouterr()
    peer.kill()
    reported, deadline = "", time.monotonic() + 20
    while "clone()" not in reported and time.monotonic() < deadline:
        time.sleep(0.02)
        reported += capfd.readouterr().err
    assert f"Process {peer.pid} ended while this process still held" in reported, (
        "the exit must be reported at once, without a call"
    )
    assert usage()["ended"] == [peer.pid]
    with pytest.warns(RuntimeWarning, match=rf"process {peer.pid} has ended[\s\S]*clone\(\)"):
        musa.ipc_collect()
    (y + 1).cpu()  # the memory stays on the emulator; on a device, only a crash is excluded
    emulator_api.emulator_or_skip()
    assert y.cpu().eq(6).all()
    del y
    assert usage()["received"] == 0
    assert "ended while" not in capfd.readouterr().err, "it must be reported once"


def test_a_sender_that_exits_after_all_memory_was_released_is_not_reported(musa, capfd):
    peer = Peer()
    y = peer.call(_make, 6.0)
    del y
    assert peer.close() == 0
    musa.ipc_collect()
    assert "ended while" not in capfd.readouterr().err


def test_the_error_for_a_message_of_an_exited_sender_names_the_fix(musa):
    peer = Peer()
    peer.call(_make, 1.0)
    message = peer.call(_dump_kept)
    peer.kill()
    with pytest.raises(
        ProducerExitedError, match=rf"process {peer.pid}[\s\S]*keep the sending process alive"
    ):
        pickle.loads(message)
    assert usage()["received"] == 0


def _dump_kept():
    return bytes(ForkingPickler.dumps(peers.kept["made"]))


# ---- many messages ---------------------------------------------------------------------------------------


def test_a_thousand_messages_leak_nothing(peer, musa, emulator):
    before = emulator.footprint(2), musa.memory_allocated(), usage()
    for _ in range(10):
        tensors = [torch.full((10,), float(i), device="musa") for i in range(100)]
        assert peer.call(_sum_all, tensors) == sum(10 * i for i in range(100))
        del tensors
    musa.ipc_collect()
    musa.empty_cache()
    after = emulator.footprint(2), musa.memory_allocated(), usage()
    assert after[1:] == before[1:]
    assert after[0].events <= before[0].events + 2
    assert peer.call(_usage)["received"] == 0


def _sum_all(tensors):
    return float(sum(tensor.sum().item() for tensor in tensors))


def test_a_thread_without_a_stream_waits_for_the_programs_own_streams(musa):
    # As the thread of a queue does. The program's stream is the only one besides the default stream.
    alive = run_code(
        """
        import ctypes, threading, torch
        import torch.multiprocessing
        from multiprocessing.reduction import ForkingPickler
        from tests.harness.emulator import loaded_sdk

        x = torch.zeros(4, device="musa")
        ForkingPickler.dumps(torch.zeros(4, device="musa"))
        torch.musa.synchronize()
        sdk, handle, opened = loaded_sdk(), ctypes.c_void_p(), threading.Event()
        assert sdk.musaStreamCreate(ctypes.byref(handle)) == 0
        gate = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: opened.wait())
        assert sdk.musaLaunchHostFunc(handle, gate, None) == 0
        with torch.musa.stream(torch.musa.ExternalStream(handle.value)):
            pass
        thread = threading.Thread(target=ForkingPickler.dumps, args=(x,))
        thread.start()
        thread.join(0.5)
        print(thread.is_alive())
        opened.set()
        thread.join()
        """,
        MUSA_EMULATOR_MODE="async",
    )
    assert alive == "True\n"
