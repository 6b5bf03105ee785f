# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""accelerate finds musa: training loops, precision, state, big models, and programs of two processes."""

from __future__ import annotations

import subprocess
import sys

import accelerate
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState

from tests.ecosystem import tiny
from tests.ecosystem.programs import free_port
from tests.ecosystem.training import gradients


@pytest.fixture(autouse=True)
def _fresh_state():
    """accelerate keeps the device of the first Accelerator of a process."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()


def loop(device: str, steps: int = 4, **options) -> dict:
    """A training loop as in accelerate's documentation."""
    AcceleratorState._reset_state(reset_partial_state=True)
    GradientState._reset_state()
    accelerator = Accelerator(cpu=device == "cpu", **options)
    assert accelerator.device.type == device
    rows = [{"input_ids": row, "labels": row} for row in tiny.tokens(4 * steps, 8)]
    model = tiny.llama("cpu")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=steps)
    loader = torch.utils.data.DataLoader(rows, batch_size=4)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for batch in loader:
        with accelerator.accumulate(model):
            output = model(**batch)
            accelerator.backward(output.loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(output.loss.detach())
    return {"losses": losses, "weights": dict(model.named_parameters())}


VARIANTS = {
    "defaults": {},
    "accumulation": {"gradient_accumulation_steps": 2},
    "split batches": {"split_batches": True},
    "step with optimizer": {"step_scheduler_with_optimizer": False},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_loop(variant, both):
    both(lambda device: loop(device, **VARIANTS[variant]), within=1e-4)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision(precision, both):
    both(
        lambda device: {
            "losses": loop(device, mixed_precision=precision if device == "musa" else "bf16")["losses"]
        },
        within=5e-3,
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_dynamo_backend(backend, both):
    def program(device):
        torch._dynamo.reset()
        return loop(device, steps=2, dynamo_backend=backend)["losses"]

    both(program, within=1e-4, watch_modules=False)


def test_state_is_saved_and_loaded(both, tmp_path):
    def program(device):
        AcceleratorState._reset_state(reset_partial_state=True)
        accelerator = Accelerator(cpu=device == "cpu", project_dir=str(tmp_path / device))
        model = tiny.llama("cpu")
        model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-2))
        inputs = tiny.tokens(2, 8).to(accelerator.device)

        def step():
            optimizer.zero_grad()
            loss = model(input_ids=inputs, labels=inputs).loss
            accelerator.backward(loss)
            optimizer.step()
            return loss.detach()

        step()
        accelerator.save_state(str(tmp_path / device / "state"))
        drawn = torch.rand(3, device=accelerator.device)
        first = [step(), step()]
        accelerator.load_state(str(tmp_path / device / "state"))
        assert torch.equal(drawn, torch.rand(3, device=accelerator.device)), (
            "the generator's state is not loaded"
        )
        assert torch.equal(torch.stack(first), torch.stack([step(), step()]))
        return first

    both(program, within=1e-4)


def test_the_batch_size_is_halved_while_memory_lacks(both):
    """find_executable_batch_size halves the size while the device is out of memory."""
    tried = []

    def program(device):
        @accelerate.utils.find_executable_batch_size(starting_batch_size=8)
        def inner(size):
            tried.append((device, size))
            if device == "musa" and size > 4:
                torch.empty(2**62, dtype=torch.uint8, device=device)
            return torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)

        return inner()

    both(program)
    sizes = [size for device, size in tried if device == "musa"]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == 8 and sizes[-1] <= 4


MAPS = {
    "two devices": (
        {"model.embed_tokens": 0, "model.layers": 1, "model.norm": 1, "model.rotary_emb": 1, "lm_head": 1},
        "",
    ),
    "CPU": (
        {
            "model.embed_tokens": 0,
            "model.layers": "cpu",
            "model.norm": 0,
            "model.rotary_emb": 0,
            "lm_head": 0,
        },
        "",
    ),
    "disk": (
        {
            "model.embed_tokens": 0,
            "model.layers": "disk",
            "model.norm": 0,
            "model.rotary_emb": 0,
            "lm_head": 0,
        },
        "",
    ),
}


@pytest.mark.parametrize("name", MAPS)
def test_dispatch_of_a_big_model(name, both, tmp_path):
    def program(device):
        model = tiny.llama("cpu").eval()
        if device == "musa":
            model = accelerate.dispatch_model(model, MAPS[name][0], offload_dir=str(tmp_path / "offloaded"))
        with torch.no_grad():
            return model(tiny.tokens(2, 8).to(device)).logits.to(device)

    both(program, within=1e-5)


def test_a_checkpoint_is_loaded_and_dispatched(both, tmp_path):
    """init_empty_weights, then weights go from the file to the devices."""
    source = tiny.llama("cpu")
    source.save_pretrained(tmp_path / "saved")

    def program(device):
        with accelerate.init_empty_weights():
            model = type(source)(source.config)
        model.tie_weights()
        chosen = {"": device} if device == "cpu" else "auto"
        model = accelerate.load_checkpoint_and_dispatch(
            model,
            str(tmp_path / "saved"),
            device_map=chosen,
            no_split_module_classes=["LlamaDecoderLayer"],
        ).eval()
        assert {p.device.type for p in model.parameters()} == {device}
        with torch.no_grad():
            return model(tiny.tokens(2, 8).to(device)).logits

    both(program)


def test_cpu_offload_with_a_hook(both):
    def program(device):
        model = tiny.llama("cpu").eval()
        model, hook = accelerate.cpu_offload_with_hook(model, execution_device=device)
        with torch.no_grad():
            result = model(tiny.tokens(2, 8).to(device)).logits
        gone = {p.device.type for p in model.parameters()}
        hook.offload()
        assert gone == {device} and {p.device.type for p in model.parameters()} == {"cpu"}
        return result

    both(program)


def test_gradients_are_those_of_plain_torch(both):
    def program(device):
        accelerator = Accelerator(cpu=device == "cpu")
        model = accelerator.prepare(tiny.llama("cpu"))
        inputs = tiny.tokens(2, 8).to(accelerator.device)
        accelerator.backward(model(input_ids=inputs, labels=inputs).loss)
        AcceleratorState._reset_state(reset_partial_state=True)
        return gradients(model)

    both(program)


def test_the_environment_report_names_musa():
    done = subprocess.run([sys.executable, "-m", "accelerate.commands.env"], capture_output=True, text=True)
    assert done.returncode == 0 and "musa" in done.stdout.lower(), done.stdout + done.stderr


def test_devices_of_the_process_state():
    state = PartialState()
    assert state.device.type == "musa" and state.distributed_type.value in ("NO", "MULTI_MUSA")
    assert accelerate.utils.is_musa_available() and accelerate.utils.is_bf16_available()


@pytest.mark.parametrize("activities", [None, ["cpu", "musa"]], ids=["default", "named"])
def test_kernels_in_a_profile(activities):
    """Without activities, torch chooses them."""
    accelerator = Accelerator(kwargs_handlers=[accelerate.ProfileKwargs(activities=activities)])
    x = torch.randn(16, 16, device=accelerator.device)
    with accelerator.profile() as profiler:
        (x @ x).sum().item()
    assert any(event.device_type == torch.autograd.DeviceType.PrivateUse1 for event in profiler.events())


def launcher(*options: str):
    def arguments(device: str) -> list[str]:
        if device == "cpu":  # accelerate launch starts several processes on the CPU with MPI only
            return ["-m", "torch.distributed.run", "--nproc-per-node=2", f"--master-port={free_port()}"]
        ranks = ["--num_processes=2", "--num_machines=1", f"--main_process_port={free_port()}"]
        return ["-m", "accelerate.commands.launch", *ranks, *options]

    return arguments


PROGRAMS = {
    "ddp": ([], 1e-4, ""),
    "collectives": ([], 1e-4, ""),
    "ddp bf16": (["--mixed_precision=bf16"], 2e-2, ""),
    "fsdp1": ([], 1e-4, ""),
    "fsdp1 offload": ([], 1e-4, "parameters are on the CPU between the steps"),
    "fsdp2": ([], 1e-4, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", PROGRAMS)
def test_launch(way, both, tmp_path):
    """accelerate launch on two processes: mccl on musa, gloo on the CPU, where FSDP is compared with DDP."""
    options, within, reason = PROGRAMS[way]
    both.launched(
        "accelerate_program.py",
        way,
        launcher=launcher(*options),
        folder=tmp_path,
        within=within,
        cpu_parameters=reason,
        cpu_arguments=["collectives"] if way == "collectives" else ["ddp"],
    )
