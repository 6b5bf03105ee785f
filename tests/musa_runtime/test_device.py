# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Devices: selection per thread, checks before use, and visibility by the environment."""

import io
import threading

import pytest
import torch

from tests.harness.subprocesses import run_code, run_forked


@pytest.mark.parametrize(
    "use",
    [
        lambda index: torch.ones(2, device=f"musa:{index}"),
        lambda index: torch.empty(2, device=torch.device("musa", index)),
        lambda index: torch.ones(2).to(f"musa:{index}"),
        lambda index: torch.ones(2, device="musa").to(f"musa:{index}"),
        lambda index: torch.musa.set_device(index),
        lambda index: torch.musa.get_device_properties(index),
        lambda index: torch.musa.synchronize(index),
        lambda index: torch.musa.memory_allocated(index),
        lambda index: torch.musa.Stream(index),
        lambda index: torch.Generator(f"musa:{index}"),
        lambda index: torch.rand(2, device=f"musa:{index}"),
        lambda index: torch.nn.Linear(2, 2, device=f"musa:{index}"),
        lambda index: torch.load(_saved(), map_location=f"musa:{index}"),
    ],
    ids=[
        "ones",
        "empty",
        "from the cpu",
        "from the device",
        "set_device",
        "properties",
        "synchronize",
        "memory",
        "stream",
        "generator",
        "rand",
        "module",
        "load",
    ],
)
def test_an_index_out_of_range_is_refused_and_the_next_operation_works(musa, use):
    index = musa.device_count() + 3
    with pytest.raises((RuntimeError, ValueError, AssertionError), match=str(index)):
        use(index)
    assert musa.current_device() == 0
    assert torch.ones(2, device="musa").sum().item() == 2


def _saved():
    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer)
    buffer.seek(0)
    return buffer


def test_each_thread_has_its_own_current_device(two_devices):
    seen = []

    def work():
        seen.append(two_devices.current_device())
        two_devices.set_device(1)
        seen.append(torch.ones(1, device="musa").device.index)

    two_devices.set_device(0)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [0, 1]
    assert two_devices.current_device() == 0


def test_work_does_not_change_the_current_device(two_devices):
    x = torch.ones(100, device="musa:1", requires_grad=True)
    (x * 2).sum().backward()
    x.grad.to("musa:0").cpu()
    two_devices.synchronize(1)
    assert two_devices.current_device() == 0


def test_the_context_restores_after_an_exception(two_devices):
    with pytest.raises(ZeroDivisionError), two_devices.device(1):
        raise ZeroDivisionError
    assert two_devices.current_device() == 0


@pytest.mark.parametrize(
    ("visible", "count"), [("0", 1), ("1", 1), ("1,0", 2), ("", 0), ("-1", 0), ("0,7", 1), ("7,0", 0)]
)
def test_visible_devices_are_those_before_the_first_that_does_not_exist(two_devices, visible, count):
    out = run_code(
        "import torch; print(torch.musa.device_count(), torch.musa.is_available())",
        MUSA_VISIBLE_DEVICES=visible,
    )
    assert out.split() == [str(count), str(count > 0)]


def test_an_invalid_list_of_visible_devices_is_named_and_the_cpu_works(two_devices):
    done = run_forked(
        "import torch; print(float(torch.ones(3).sum())); torch.ones(1, device='musa')",
        MUSA_VISIBLE_DEVICES="first,second",
    )
    assert done.returncode != 0
    assert "3.0" in done.stdout
    assert "MUSA_VISIBLE_DEVICES" in done.stderr
    assert "first,second" in done.stderr


def test_launch_blocking_gives_the_same_results(musa):
    out = run_code(
        "import torch; x = torch.ones(100, device='musa'); print(float((x * 3 + 1).sum()))",
        MUSA_LAUNCH_BLOCKING="1",
    )
    assert out.split() == ["400.0"]


def test_properties_describe_the_device(musa):
    properties = musa.get_device_properties(0)
    assert properties.gcnArchName == properties.name
    assert properties.name
    assert properties.total_memory == musa.mem_get_info(0)[1]
    assert properties.warp_size in (32, 128)
    assert properties.multi_processor_count > 0
    assert properties.max_threads_per_block >= 256
    assert (properties.major, properties.minor) == musa.get_device_capability(0)
