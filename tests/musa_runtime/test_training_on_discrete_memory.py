# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Training steps with memory that the host cannot address, as on a GPU: no operator is computed on copies in
host memory, which TORCH_MUSA_FALLBACK=error would refuse, no step waits for the device, and the losses equal
the CPU's."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.harness.skips import needs_devices
from tests.harness.subprocesses import run_code, run_forked, run_python

ROOT = Path(__file__).resolve().parents[2]
# Every interpreter of these tests sets its own memory mode.
pytestmark = [
    pytest.mark.once,
    pytest.mark.emulator,
    pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported", "musa-distributed"),
]

_DISCRETE = {
    "MUSA_EMULATOR_MEMORY": "strict",
    "TORCH_MUSA_FALLBACK": "error",
    "TORCH_MUSA_OPS": None,
    "TORCH_MUSA_DISABLE_PACKS": None,
}
_PROFILES = {
    "discrete": _DISCRETE,
    "soc": {**_DISCRETE, "MUSA_EMULATOR_MEMORY": "soc"},
    "no-fp64": {**_DISCRETE, "MUSA_EMULATOR_FLOAT64": "0"},
}
_MODELS = {
    "digits CNN": ("DigitsNet()", "(torch.randn(16, 1, 8, 8), torch.randint(10, (16,)))"),
    "ResNet": ("training.small_resnet()", "training.images()"),
    "GPT block": ("training.SmallGPT()", "training.text()"),
    "LSTM": ("training.lstm()", "training.sequences()"),
}
_TRAIN = """
import copy, torch
from benchmarks import training
from examples.train_digits import DigitsNet
from tests.harness.emulator import Emulator, loaded_sdk

torch.musa.init()
emulator = Emulator(loaded_sdk())
WAITS = ("musaStreamSynchronize", "musaDeviceSynchronize", "musaEventSynchronize", "musaMemcpy")
waits = 0
torch.manual_seed(0)
model, (inputs, targets) = {model}, {data}

def losses(device, make, dropout):
    net = copy.deepcopy(model).to(device)
    for module in net.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    optimizer = make(net.parameters())
    x, y = inputs.to(device), targets.to(device)
    kept = []
    before = sum(map(emulator.calls, WAITS))
    for _ in range(3):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        kept.append(loss.detach())
    global waits
    waits += sum(map(emulator.calls, WAITS)) - before
    return torch.stack(kept).cpu()

for make in (training.adamw, training.sgd):
    on_musa = losses("musa", make, 0.0)
    torch.testing.assert_close(on_musa, losses("cpu", make, 0.0), rtol=1e-3, atol=1e-4)
    assert on_musa[0] != on_musa[-1], "no step changed the weights"
    assert losses("musa", make, 0.3).isfinite().all()  # other masks than the CPU's
print("waits:", waits)
print("host copies:", sum(row["count"] for row in torch.musa.ops.fallback_report()))
print("first on the host:", sum(row["provider"] == "host" for row in torch.musa.ops.table()))
"""


@pytest.mark.parametrize("profile", _PROFILES)
@pytest.mark.parametrize("model", _MODELS)
def test_a_training_step_computes_nothing_on_the_host_and_waits_for_nothing(musa, model, profile):
    make, data = _MODELS[model]
    code = _TRAIN.format(model=make, data=data)
    found = run_code(code, MUSA_EMULATOR_MODE="async", **_PROFILES[profile]).splitlines()
    assert found[-3:] == ["waits: 0", "host copies: 0", "first on the host: 0"]


def test_a_copy_to_the_host_is_an_error_there(musa):
    code = 'import torch; x = torch.rand(4, 4, device="musa"); torch.linalg.eig(x)'
    done = run_forked(code, **_DISCRETE)
    assert done.returncode != 0 and "TORCH_MUSA_FALLBACK" in done.stderr, done.stderr


@pytest.mark.parametrize("profile", _PROFILES)
def test_a_step_of_two_ranks_copies_no_tensor_to_the_host(musa, tmp_path, profile):
    needs_devices(2)
    code = f"""
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F
    from torch.nn.parallel import DistributedDataParallel
    from benchmarks import training

    def main(rank):
        torch.musa.set_device(rank)
        dist.init_process_group("mccl", init_method="file://{tmp_path}/meeting", rank=rank, world_size=2)
        torch.manual_seed(0)
        layers = torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten()
        net = torch.nn.Sequential(*layers, torch.nn.Linear(8 * 36, 4)).to("musa")
        net = DistributedDataParallel(net, device_ids=[rank])
        parameters = list(net.parameters())
        optimizers = [training.adamw(parameters), training.sgd(parameters)]
        start = parameters[0].detach().clone()
        for step in range(4):
            optimizer = optimizers[step % 2]
            torch.manual_seed(10 * step + rank)
            x, y = torch.randn(4, 3, 8, 8).to("musa"), torch.randint(4, (4,)).to("musa")
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
        weights = torch.cat([each.detach().flatten() for each in parameters])
        gathered = [torch.empty_like(weights) for _ in range(2)]
        dist.all_gather(gathered, weights)
        assert torch.equal(*gathered) and not torch.equal(start, parameters[0])
        copies = sum(row["count"] for row in torch.musa.ops.fallback_report())
        assert copies == 0, torch.musa.ops.fallback_report()
        dist.destroy_process_group()

    if __name__ == "__main__":
        torch.multiprocessing.spawn(main, nprocs=2)
    """
    program = tmp_path / "ranks.py"
    program.write_text(textwrap.dedent(code), encoding="utf-8")
    done = run_python(str(program), MUSA_EMULATOR_DEVICES="2", PYTHONPATH=str(ROOT), **_PROFILES[profile])
    assert done.returncode == 0, done.stderr


def test_a_captured_step_of_capturable_adamw_equals_eager_steps(musa):
    run_code(
        """
        import copy, torch
        from benchmarks import training

        torch.manual_seed(0)
        model, (x, y) = training.small_cnn().to("musa"), training.images()
        x, y = x.to("musa"), y.to("musa")

        def train(captured):
            net = copy.deepcopy(model)
            optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, capturable=True, foreach=True)

            def step():
                optimizer.zero_grad(set_to_none=False)
                torch.nn.functional.cross_entropy(net(x), y).backward()
                optimizer.step()

            for _ in range(3):
                step()
            run = step
            if captured:
                graph = torch.musa.MUSAGraph()
                with torch.musa.graph(graph):
                    step()
                run = graph.replay
            for _ in range(2):
                run()
            torch.musa.synchronize()
            return [each.detach().cpu() for each in net.parameters()]

        for eager, replayed in zip(train(False), train(True)):
            assert torch.equal(eager, replayed)
        """,
        **_DISCRETE,
    )
