# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DeepSpeed on musa: the accelerator, ZeRO on two ranks against a plain run, fused Adam, checkpoints."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
import torch

pytest.importorskip("deepspeed", reason="needs the package deepspeed, which tests/ecosystem installs")

import torch_musa.integrations.deepspeed as integration
from tests.harness.subprocesses import _environment, run_python

_PROGRAM = """
import json, os, sys
import torch
settings = json.loads(sys.argv[1])
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])

def batches():
    torch.manual_seed(5)
    for _ in range(settings["steps"]):
        x = torch.randn(16, 8)
        yield x, x.sum(1, keepdim=True)

torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(),
                            torch.nn.Linear(32, 1))
losses, notes = [], {}
if settings["stage"] is None:
    device = torch.device("musa", rank)
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    for x, y in batches():
        loss = torch.nn.functional.mse_loss(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
else:
    import torch_musa.integrations.deepspeed
    import deepspeed
    config = {
        "train_micro_batch_size_per_gpu": 16 // ranks,
        "gradient_clipping": 0.0,  # DeepSpeed's default is 1.0, which the plain run has not
        "zero_optimization": {"stage": settings["stage"]},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-2, "weight_decay": 0.01}},
        **settings.get("config", {}),
    }
    deepspeed.init_distributed()
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    dtype = next(engine.module.parameters()).dtype
    computed = set()
    engine.module[0].register_forward_hook(lambda module, inputs, output: computed.add(str(output.dtype)))

    def train(rows):
        for x, y in rows:
            x, y = (t[rank::ranks].to(engine.device) for t in (x, y))
            loss = torch.nn.functional.mse_loss(engine(x.to(dtype)).float(), y)
            engine.backward(loss)
            engine.step()
            whole = loss.detach().clone()
            torch.distributed.all_reduce(whole)
            yield whole.item() / ranks

    rows = list(batches())
    losses += train(rows[:4])
    if settings.get("resume"):
        engine.save_checkpoint(settings["folder"])
    losses += train(rows[4:])
    if settings.get("resume"):
        engine.load_checkpoint(settings["folder"])
        notes["again"] = list(train(rows[4:]))
    base = engine.optimizer
    while hasattr(base, "optimizer"):
        base = base.optimizer
    states = [t for state in base.state.values() for t in state.values() if torch.is_tensor(t) and t.dim()]
    notes |= {
        "device": str(engine.device), "backend": torch.distributed.get_backend(),
        "computed": sorted(computed), "optimizer": type(base).__name__,
        "states": sorted({t.device.type for t in states}),
    }
    torch.distributed.destroy_process_group()
with open(f"{settings['folder']}/rank{rank}.json", "w") as out:
    json.dump({"losses": losses, **notes}, out)
"""


def train(folder, ranks=2, **settings):
    """Runs the program on `ranks` ranks and returns the report of each."""
    folder.mkdir()
    (folder / "program.py").write_text(_PROGRAM)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    settings = {"steps": 8, "folder": str(folder), "stage": None, **settings}
    shared = {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "OMP_NUM_THREADS": "1",
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(folder / "program.py"), json.dumps(settings)],
            env=_environment(
                {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "MUSA_EMULATOR_DEVICES": "2"}
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(ranks)
    ]
    outputs = [process.communicate(timeout=500)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * ranks, "\n".join(outputs)
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(ranks)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Losses of the same program without DeepSpeed, on one device, with the whole batch."""
    (result,) = train(tmp_path_factory.mktemp("plain") / "run", ranks=1)
    assert result["losses"][-1] < result["losses"][0]
    return result["losses"]


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_zero_on_two_ranks_gives_the_losses_of_a_plain_run(tmp_path, plain, stage):
    for rank, result in enumerate(train(tmp_path / "run", stage=stage)):
        # Gradients of two halves are added, so sums are rounded in another order.
        torch.testing.assert_close(result["losses"], plain, rtol=1e-5, atol=1e-6)
        assert result["device"] == f"musa:{rank}" and result["backend"] == "mccl"
        assert result["optimizer"] == "FusedAdam" and result["states"] == ["musa"]


@pytest.mark.parametrize(
    "stage, config, dtype",
    [
        (2, {"fp16": {"enabled": True, "initial_scale_power": 8}}, "torch.float16"),
        (3, {"bf16": {"enabled": True}}, "torch.bfloat16"),
    ],
)
def test_half_precision_is_computed_and_a_checkpoint_is_resumed(tmp_path, plain, stage, config, dtype):
    for result in train(tmp_path / "run", stage=stage, config=config, resume=True):
        assert result["computed"] == [dtype]
        # Products have 8 or 11 bits: after eight steps, errors are a few units in the last place.
        torch.testing.assert_close(result["losses"], plain, rtol=5e-2, atol=0)
        assert result["again"] == result["losses"][4:]


def test_the_accelerator_is_deepspeeds_and_answers_for_the_device():
    from deepspeed.accelerator import get_accelerator

    musa = get_accelerator()
    assert isinstance(musa, integration.MUSAAccelerator) and musa.communication_backend_name() == "mccl"
    assert musa.device_count() == 2 and musa.device_name(1) == "musa:1" == str(
        torch.device(musa.device_name(1))
    )
    for name, dtype in (("Half", torch.float16), ("BFloat16", torch.bfloat16), ("Byte", torch.uint8)):
        tensor = getattr(musa, f"{name}Tensor")([1, 2])
        assert tensor.dtype == dtype and musa.on_accelerator(tensor) and not musa.on_accelerator(tensor.cpu())
    before = musa.memory_allocated()
    block = torch.empty(1 << 20, dtype=torch.uint8, device="musa")
    assert musa.memory_allocated() - before == 1 << 20 and musa.memory_cached() >= 1 << 20
    del block
    assert 0 < musa.available_memory() <= musa.total_memory()
    with musa.stream(musa.Stream()):
        assert musa.current_stream() != musa.default_stream()
    state = musa.get_rng_state()
    first = torch.rand(4, device="musa")
    musa.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="musa"))
    assert musa.export_envs()[0] == "MCCL"
    variables = {}
    musa.set_visible_devices_envs(variables, [1, 0])
    assert variables == {"MUSA_VISIBLE_DEVICES": "1,0"}
    with pytest.raises(ValueError, match="is not a backend of torch"):
        musa.set_compile_backend("none")


def test_without_a_backend_for_the_ranks_the_error_names_the_cure():
    code = "import torch_musa.integrations.deepspeed as d; d.MUSAAccelerator().communication_backend_name()"
    done = run_python("-c", code, TORCH_MUSA_DISABLE_PACKS="distributed")
    assert "no backend for musa" in done.stderr and "Fix: python -m torch_musa packs" in done.stderr, (
        done.stderr
    )


def test_a_graph_is_captured_and_replayed_through_the_accelerator():
    musa = integration.MUSAAccelerator()
    x, graph = torch.ones(3, device="musa"), musa.create_graph()
    with musa.capture_to_graph(graph):
        assert musa.is_current_stream_capturing()
        x.add_(1)
    musa.replay_graph(graph)
    musa.synchronize()
    assert x.tolist() == [2, 2, 2]


def test_operators_without_a_kernel_for_musa_are_refused():
    musa = integration.MUSAAccelerator()
    assert musa.create_op_builder("ShareMemCommBuilder") is None
    assert musa.create_op_builder("CPUAdamBuilder").NAME == "cpu_adam"
    with pytest.raises(ValueError, match="not been implemented"):
        musa.create_op_builder("FusedLambBuilder").load()


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("bias_correction", [True, False])
def test_the_fused_adam_steps_as_torch_does(decoupled, bias_correction):
    from deepspeed.ops.adam import FusedAdam

    torch.manual_seed(1)
    ours = [
        torch.randn(7, 5, device="musa", requires_grad=True),
        torch.randn(3, device="musa", requires_grad=True),
    ]
    theirs = [p.detach().cpu().double().requires_grad_() for p in ours]
    options = {"lr": 1e-2, "weight_decay": 0.1, "betas": (0.8, 0.9)}
    fused = FusedAdam(ours, adam_w_mode=decoupled, bias_correction=bias_correction, **options)
    plain = (torch.optim.AdamW if decoupled else torch.optim.Adam)(theirs, **options)
    means, squares = ([torch.zeros_like(p) for p in theirs] for _ in range(2))
    for _ in range(4):
        for p, q in zip(ours, theirs):
            p.grad = torch.randn_like(p)
            q.grad = p.grad.cpu().double()
        fused.step()
        if bias_correction:
            plain.step()
            continue
        for q, m, v in zip(theirs, means, squares):  # the formula without the two divisions
            grad = q.grad if decoupled else q.grad + 0.1 * q.detach()
            m.copy_(0.8 * m + 0.2 * grad)
            v.copy_(0.9 * v + 0.1 * grad**2)
            q.data.mul_(1 - 1e-3 if decoupled else 1).sub_(1e-2 * m / (v.sqrt() + 1e-8))
    for p, q in zip(ours, theirs):
        torch.testing.assert_close(p.detach().cpu().double(), q.detach(), rtol=1e-5, atol=1e-6)
