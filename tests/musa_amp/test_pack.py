# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack with the runtime alone, and the errors where the pack or the device's support is missing."""

import importlib
import sys
from importlib.metadata import entry_points

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler

from musa_runtime.errors import PackError
from tests.harness.subprocesses import run_code, run_forked
from torch_musa import autocast, extras, pack_modules, plugins

TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).to("musa")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, fused=True)
scaler = torch.amp.GradScaler("musa")
x = torch.randn(64, 8, device="musa")
y = x.sum(1, keepdim=True)
losses = []
for _ in range(60):
    optimizer.zero_grad()
    with torch.autocast("musa"):
        output = model(x)
        loss = torch.nn.functional.mse_loss(output, y)
    assert output.dtype == torch.float16 and loss.dtype == torch.float32
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
print([pack.name for pack in __import__("torch_musa").plugins.records() if pack.status == "loaded"])
print(losses[-1] < 0.1 * losses[0])
"""
PRODUCT = """
import torch
a = torch.ones(2, 2, device="musa")
with torch.autocast("musa"):
    a @ a
"""


@pytest.mark.parametrize("memory", ["shared", "strict"])
def test_it_works_beside_the_runtime_alone(memory):
    installed = {entry.name for entry in entry_points(group="torch_musa.plugins.v2")}
    others = ",".join(installed - {"amp"})
    output = run_code(TRAIN, TORCH_MUSA_DISABLE_PACKS=others, MUSA_EMULATOR_MEMORY=memory)
    assert output.splitlines() == ["['amp']", "True"]


def test_a_pack_that_is_switched_off_is_named():
    done = run_forked(PRODUCT, TORCH_MUSA_DISABLE_PACKS="amp")
    assert done.returncode == 1
    assert "PackError" in done.stderr and "TORCH_MUSA_DISABLE_PACKS" in done.stderr


@pytest.fixture
def not_installed(monkeypatch):
    monkeypatch.setattr(autocast, "_pack_found", False)
    monkeypatch.setattr(pack_modules, "offered", dict)
    monkeypatch.setattr(extras, "version", lambda dist: None)
    monkeypatch.delitem(sys.modules, "torch.musa.amp", raising=False)
    monkeypatch.delattr(torch.musa, "amp", raising=False)  # set by an earlier import


def test_a_wheel_that_is_missing_is_named(musa, not_installed):
    with pytest.raises(PackError, match=r"Fix: .* -m pip install .*musa-amp"):
        torch.autocast("musa")
    with pytest.raises(AttributeError, match=r"Fix: .* -m pip install .*musa-amp"):
        _ = musa.amp
    with pytest.raises(ImportError, match=r"Fix: .* -m pip install .*musa-amp"):
        importlib.import_module("torch.musa.amp")


def test_programs_without_autocast_work_without_the_wheel(musa, not_installed):
    torch.autocast("musa", enabled=False)
    weight = torch.ones(3, device="musa", requires_grad=True)
    torch.utils.checkpoint.checkpoint(lambda w: (w * 2).sum(), weight, use_reentrant=False).backward()
    assert weight.grad.tolist() == [2, 2, 2]
    assert list(musa.get_amp_supported_dtype()) == [torch.float16, torch.bfloat16]


def test_the_error_says_why_the_pack_could_not_be_loaded(musa, monkeypatch):
    broken = plugins.PackRecord("amp", "musa-amp", "0.1.0", status="failed", error=PackError("no kernels"))
    monkeypatch.setattr(autocast, "_pack_found", False)
    monkeypatch.setattr(plugins, "records", lambda: [broken])
    with pytest.raises(PackError, match="no kernels"):
        torch.autocast("musa")


def test_a_device_without_bfloat16_refuses_it():
    program = """
    import torch
    print(torch.musa.get_amp_supported_dtype(), torch.autocast("musa").fast_dtype)
    try:
        torch.autocast("musa", dtype=torch.bfloat16)
    except RuntimeError as error:
        print(error)
    """
    output = run_code(program, MUSA_EMULATOR_ARCH="mp_21").splitlines()
    assert output[0] == "[torch.float16] torch.float16"
    assert "has no units for bfloat16" in output[1] and "dtype=torch.float16" in output[2]


def test_a_dtype_of_32_bits_switches_autocast_off_with_a_warning(musa):
    with pytest.warns(UserWarning, match="Disabling autocast"):
        region = torch.autocast("musa", dtype=torch.float32)
    with region:
        assert not torch.is_autocast_enabled("musa")


def test_a_decorator_touches_no_device():
    program = """
    import torch
    @torch.musa.amp.autocast()
    def f(x): return x @ x
    torch.amp.GradScaler("musa")
    print(torch.musa.is_initialized())
    """
    assert run_code(program).strip() == "False"


def test_a_region_entered_before_the_first_use_of_the_device_holds():
    program = """
    import torch
    with torch.autocast("musa"):
        a = torch.ones(2, 2, device="musa")
        print((a @ a).dtype)
    """
    assert run_code(program).strip() == "torch.float16"


class OneRank(dist.ProcessGroup):
    """A group of one process, so that an all-reduce leaves its input unchanged."""

    def allreduce(self, tensors, options):
        done = torch.futures.Future()
        done.set_result(tensors)
        return _create_work_from_future(done)

    def getBackendName(self):
        return "one_rank"


def test_a_sharded_scaler_unscales_and_recovers(musa, tmp_path):
    dist.Backend.register_backend(
        "one_rank", lambda store, rank, size, timeout: OneRank(rank, size), devices=["musa"]
    )
    dist.init_process_group("one_rank", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        scaler = ShardedGradScaler("musa", init_scale=8.0)
        weight = torch.ones(4, device="musa", requires_grad=True)
        optimizer = torch.optim.SGD([weight], lr=1.0)
        for spoiled in (False, True):
            optimizer.zero_grad()
            scaler.scale((weight * 2).sum()).backward()
            if spoiled:
                weight.grad[1] = float("nan")
            scaler.step(optimizer)
            scaler.update()
        assert weight.tolist() == [-1] * 4 and scaler.get_scale() == 4.0
    finally:
        dist.destroy_process_group()
