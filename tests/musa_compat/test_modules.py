# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules of the vendor's torch_musa: the objects behind their names."""

import warnings

import pytest
import torch

import torch_musa
from tests.harness.subprocesses import run_code

pytestmark = pytest.mark.once


def test_the_scaler_of_fsdp_is_for_musa(musa):
    from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler as OfTorch

    from torch_musa.distributed.fsdp import ShardedGradScaler

    scaler = ShardedGradScaler(init_scale=8.0)
    assert isinstance(scaler, OfTorch) and scaler.is_enabled()
    assert scaler.scale(torch.ones((), device="musa")).item() == 8.0
    assert not ShardedGradScaler(enabled=False).is_enabled()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # torch's default device is a literal. If this fails, the page docs/design/compat.md is out of date.
        assert not OfTorch().is_enabled() and OfTorch(device="musa").is_enabled()


def test_the_architecture_is_that_of_the_current_device(two_devices):
    from torch_musa.testing import get_musa_arch

    major, minor = torch.musa.get_device_capability()
    assert get_musa_arch() == 10 * major + minor > 10


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_modules_of_core_have_the_objects_of_torch_musa(musa):
    from torch_musa.core import _utils, device, memory
    from torch_musa.core.amp.grad_scaler import GradScaler

    assert device.Device is musa.device and device.set_device is musa.set_device
    assert memory.empty_cache is musa.empty_cache
    assert memory._record_memory_history is musa.memory._record_memory_history
    assert GradScaler is musa.amp.GradScaler
    assert _utils._get_musa_device_index("musa:1") == 1
    assert _utils._get_musa_device_index(None, optional=True) == musa.current_device()
    with pytest.raises(AttributeError, match=r"torch_musa\.core\.device' has no attribute 'Devise'"):
        device.Devise  # noqa: B018
    assert "set_device" in dir(device)
    assert musa.core is torch_musa.core and musa.core._utils is _utils


def test_unified_memory_is_answered_with_a_warning():
    with pytest.warns(UserWarning, match="has no effect: tensors are copied"):
        torch_musa.use_unified_cpu_allocator()


def test_a_lazy_call_waits_for_the_first_use_of_the_device() -> None:
    code = (
        "import torch\n"
        "from torch_musa.core._lazy_init import _lazy_call\n"
        "calls = []\n"
        "_lazy_call(lambda: calls.append(1))\n"
        "_lazy_call(lambda: calls.append(2), seed_all=True)\n"
        "before = list(calls)\n"
        "torch.musa.init()\n"
        "_lazy_call(lambda: calls.append(3))\n"
        "print(before, calls)\n"
    )
    assert run_code(code) == "[] [1, 2, 3]\n"
