# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lightning and Fabric on musa: devices, dtypes of computation, DDP and FSDP, checkpoints, refusals."""

from __future__ import annotations

import importlib
import pickle
import textwrap

import pytest
import torch

pytest.importorskip("lightning", reason="needs the package lightning, which tests/ecosystem installs")

import torch_musa.integrations.lightning as integration
from tests.ecosystem.programs import run_starting_ranks
from tests.harness.subprocesses import run_python

PACKAGES = {"lightning": ("lightning.pytorch", "lightning.fabric")}
if importlib.util.find_spec("pytorch_lightning"):
    PACKAGES["pytorch_lightning"] = ("pytorch_lightning", "lightning_fabric")

QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


@pytest.fixture(params=PACKAGES)
def pl(request):
    return importlib.import_module(PACKAGES[request.param][0])


@pytest.fixture(params=PACKAGES)
def fabric_class(request):
    return importlib.import_module(PACKAGES[request.param][1]).Fabric


@pytest.fixture
def model_class(pl):
    """A regression on 64 random rows that records dtypes, devices, and the loss of each step."""

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
            self.losses, self.computed, self.devices = [], set(), set()

        def training_step(self, batch, index):
            x, y = batch
            hidden = self.layers[0](x)
            self.computed.add(hidden.dtype)
            self.devices.add(hidden.device)
            loss = torch.nn.functional.mse_loss(self.layers[1:](hidden).float(), y)
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch, index):
            self.log("val", torch.nn.functional.mse_loss(self.layers(batch[0]).float(), batch[1]))

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-2)

        def train_dataloader(self):
            torch.manual_seed(5)
            x = torch.randn(64, 8)
            return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), 16)

        val_dataloader = train_dataloader

    return Model


def fit(pl, model, folder, **options):
    trainer = pl.Trainer(**{"max_epochs": 3, "default_root_dir": folder, **QUIET, **options})
    trainer.fit(model)
    return trainer


def test_a_fit_is_on_the_device_and_gives_the_losses_of_the_cpu(pl, model_class, tmp_path):
    with pytest.warns(UserWarning, match="accelerator='musa'"):
        fit(pl, expected := model_class(), tmp_path, accelerator="auto")
    trainer = fit(pl, model := model_class(), tmp_path, accelerator="musa", devices=1)
    assert model.devices == {torch.device("musa:0")} == {trainer.strategy.root_device}
    assert expected.devices == {torch.device("cpu")}
    assert len(model.losses) == 12 and model.losses[-1] < model.losses[0]
    torch.testing.assert_close(model.losses, expected.losses, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(
        trainer.validate(model, verbose=False)[0]["val"], trainer.callback_metrics["val"].item()
    )


@pytest.mark.parametrize("strategy", ["auto", "single_musa"])
def test_the_chosen_device_is_used(pl, model_class, tmp_path, strategy):
    fit(pl, model := model_class(), tmp_path, accelerator="musa", devices=[1], strategy=strategy)
    assert model.devices == {torch.device("musa:1")}


@pytest.mark.parametrize("strategy", ["auto", "single_musa"])
@pytest.mark.parametrize(
    "precision, dtype",
    [
        ("32-true", torch.float32),
        ("bf16-mixed", torch.bfloat16),
        ("16-mixed", torch.float16),
        ("bf16-true", torch.bfloat16),
    ],
)
def test_a_fit_computes_in_the_dtype_of_its_precision(pl, model_class, tmp_path, strategy, precision, dtype):
    options = {"accelerator": "musa", "devices": 1, "strategy": strategy}
    trainer = fit(pl, model := model_class(), tmp_path, precision=precision, **options)
    assert model.computed == {dtype}
    scaler = trainer.scaler
    assert (scaler is not None) == (precision == "16-mixed")
    if scaler is not None:
        assert scaler.is_enabled() and scaler._scale.device.type == "musa"
        saved = torch.load(trainer.checkpoint_callback.best_model_path, weights_only=False)
        assert saved["MixedPrecision"]["scale"] == scaler.get_scale()
    if "mixed" in precision:
        assert model.losses[-1] < model.losses[0] and {p.dtype for p in model.parameters()} == {torch.float32}


def test_without_the_integration_mixed_precision_is_float32(pl):
    """Without the correction, products are float32, so the test above shows its effect."""
    plugin = importlib.import_module(f"{pl.__name__}.plugins").MixedPrecision("bf16-mixed", "cuda")
    with pytest.warns(UserWarning, match="Disabling autocast"), plugin.forward_context():
        x = torch.ones(2, 2, device="musa")
        assert (x @ x).dtype == torch.float32


def test_a_checkpoint_is_resumed_on_the_device(pl, model_class, tmp_path):
    options = {"accelerator": "musa", "devices": 1, "precision": "16-mixed"}
    fit(pl, whole := model_class(), tmp_path / "a", max_epochs=4, **options)
    first = fit(pl, begun := model_class(), tmp_path / "b", max_epochs=2, **options)
    path = first.checkpoint_callback.best_model_path
    trainer = pl.Trainer(max_epochs=4, default_root_dir=tmp_path / "c", **QUIET, **options)
    trainer.fit(resumed := model_class(), ckpt_path=path)
    assert begun.losses + resumed.losses == whole.losses
    state = trainer.optimizers[0].state[next(resumed.parameters())]
    assert trainer.global_step == 16 and state["exp_avg"].dtype == torch.float32
    expected = torch.load(path, map_location="cpu", weights_only=False)
    assert expected["global_step"] == 8 and expected["MixedPrecision"]["scale"] > 0


def test_callbacks_read_the_memory_of_the_device(pl, model_class, tmp_path):
    stats = pl.Trainer(accelerator="musa", devices=1, logger=False).accelerator.get_device_stats("musa:0")
    assert "allocated_bytes.all.current" in stats


_PROGRAM = """
import importlib, json, sys
import torch
name, strategy, precision, out = sys.argv[1:]
pl = importlib.import_module(name)
import torch_musa.integrations.lightning

class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self.losses, self.computed, self.devices = [], set(), set()

    def training_step(self, batch, index):
        hidden = self.layers[0](batch[0])
        self.computed.add(str(hidden.dtype))
        self.devices.add(str(hidden.device))
        loss = torch.nn.functional.mse_loss(self.layers[1:](hidden).float(), batch[1].float())
        self.losses.append(self.all_gather(loss.detach()).mean().item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.trainer.model.parameters(), lr=1e-2)

    def train_dataloader(self):
        torch.manual_seed(5)
        x = torch.randn(64, 8)
        rows = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
        # Rank 0 has the even rows and rank 1 the odd ones, so that a step has the same rows on one device.
        sampler = torch.utils.data.DistributedSampler(rows, ranks, self.global_rank, shuffle=False)
        return torch.utils.data.DataLoader(rows, 16 // ranks, sampler=sampler)

ranks = 1 if strategy == "one" else 2
model = Model()
trainer = pl.Trainer(
    accelerator="musa", devices=ranks, strategy="auto" if strategy in ("one", "auto") else strategy,
    precision=precision, max_epochs=3, logger=False, enable_progress_bar=False, enable_model_summary=False,
    default_root_dir=out, use_distributed_sampler=False,
)
trainer.fit(model)
backend = torch.distributed.get_backend() if ranks > 1 else None
result = {"losses": model.losses, "computed": sorted(model.computed), "devices": sorted(model.devices),
          "backend": backend, "strategy": type(trainer.strategy).__name__}
open(f"{out}/rank{trainer.global_rank}.json", "w").write(json.dumps(result))
"""


def run_program(tmp_path, package, strategy, precision):
    ranks = 1 if strategy == "one" else 2
    arguments = (PACKAGES[package][0], strategy, precision)
    return run_starting_ranks(tmp_path / f"{strategy}-{precision}", _PROGRAM, *arguments, ranks=ranks)


@pytest.mark.parametrize("package", PACKAGES)
def test_ddp_on_two_devices_gives_the_losses_of_one_with_the_whole_batch(tmp_path, package):
    (one,) = run_program(tmp_path, package, "one", "32-true")
    for rank, result in enumerate(ranks := run_program(tmp_path, package, "auto", "32-true")):
        assert result["devices"] == [f"musa:{rank}"] and result["backend"] == "mccl"
        assert result["strategy"] == "DDPStrategy"
    torch.testing.assert_close(ranks[0]["losses"], one["losses"], rtol=1e-5, atol=1e-6)
    assert one["losses"][-1] < one["losses"][0]


@pytest.mark.parametrize(
    "strategy, precision, dtype",
    [
        ("ddp", "bf16-mixed", "torch.bfloat16"),
        ("ddp_find_unused_parameters_true", "16-mixed", "torch.float16"),
        ("fsdp_musa", "32-true", "torch.float32"),
        ("fsdp_musa", "bf16-mixed", "torch.bfloat16"),
        ("fsdp_musa", "16-mixed", "torch.float16"),
    ],
)
def test_strategies_on_two_devices_compute_in_the_dtype_of_their_precision(
    tmp_path, strategy, precision, dtype
):
    ranks = run_program(tmp_path, "lightning", strategy, precision)
    for rank, result in enumerate(ranks):
        assert result["computed"] == [dtype] and result["devices"] == [f"musa:{rank}"]
        assert result["backend"] == "mccl" and sum(result["losses"][-4:]) < sum(result["losses"][:4])
    if strategy == "fsdp_musa" and precision == "32-true":
        (one,) = run_program(tmp_path, "lightning", "one", precision)
        torch.testing.assert_close(ranks[0]["losses"], one["losses"], rtol=1e-5, atol=1e-6)


def fabric_steps(fabric, steps=6):
    torch.manual_seed(3)
    first = torch.nn.Linear(8, 16)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=1e-2))
    computed, losses = set(), []
    first.register_forward_hook(lambda module, inputs, output: computed.add((output.dtype, output.device)))
    torch.manual_seed(5)
    x = fabric.to_device(torch.randn(16, 8))
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        fabric.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return computed, losses


@pytest.mark.parametrize(
    "precision, dtype",
    [("32-true", torch.float32), ("bf16-mixed", torch.bfloat16), ("16-mixed", torch.float16)],
)
def test_fabric_computes_on_the_device_in_the_dtype_of_its_precision(fabric_class, precision, dtype):
    fabric = fabric_class(accelerator="musa", strategy="single_musa", devices=[1], precision=precision)
    computed, losses = fabric_steps(fabric)
    assert computed == {(dtype, torch.device("musa:1"))} and losses[-1] < losses[0]
    if precision == "32-true":
        _, expected = fabric_steps(fabric_class(accelerator="cpu", devices=1))
        torch.testing.assert_close(losses, expected, rtol=1e-5, atol=1e-6)
    with fabric.autocast():
        x = torch.ones(2, 2, device=fabric.device)
        assert (x @ x).dtype == dtype


_FABRIC_PROGRAM = """
import importlib, json, sys
import torch
package, strategy, precision, out = sys.argv[1:]
Fabric = importlib.import_module(package).Fabric
import torch_musa.integrations.lightning

ranks = 1 if strategy == "single_musa" else 2
fabric = Fabric(accelerator="musa", devices=ranks, strategy=strategy, precision=precision)
fabric.launch()
torch.manual_seed(3)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
model = fabric.setup_module(model)
optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), lr=1e-2))
torch.manual_seed(5)
x = torch.randn(16, 8)
y = x.sum(1, keepdim=True)
# Rank 0 has the even rows and rank 1 the odd ones, so that a step has the same rows on one device.
x, y = fabric.to_device((x[fabric.global_rank :: ranks], y[fabric.global_rank :: ranks]))
losses, computed = [], set()
for _ in range(6):
    optimizer.zero_grad()
    output = model(x)
    with fabric.autocast():
        computed.add(str((x @ x.T).dtype))
    loss = torch.nn.functional.mse_loss(output.float(), y)
    fabric.backward(loss)
    optimizer.step()
    losses.append(fabric.all_reduce(loss.detach()).item())
backend = torch.distributed.get_backend() if ranks > 1 else None
result = {"losses": losses, "computed": sorted(computed), "device": str(fabric.device), "backend": backend}
open(f"{out}/rank{fabric.global_rank}.json", "w").write(json.dumps(result))
"""


def run_fabric(tmp_path, package, strategy, precision):
    ranks = 1 if strategy == "single_musa" else 2
    arguments = (PACKAGES[package][1], strategy, precision)
    return run_starting_ranks(tmp_path / f"{strategy}-{precision}", _FABRIC_PROGRAM, *arguments, ranks=ranks)


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize("strategy", ["ddp", "fsdp_musa"])
def test_fabric_on_two_devices_gives_the_losses_of_one_with_the_whole_batch(tmp_path, package, strategy):
    (one,) = run_fabric(tmp_path, package, "single_musa", "32-true")
    for rank, result in enumerate(run_fabric(tmp_path, package, strategy, "32-true")):
        assert result["device"] == f"musa:{rank}" and result["backend"] == "mccl"
        torch.testing.assert_close(result["losses"], one["losses"], rtol=1e-5, atol=1e-6)
    assert one["losses"][-1] < one["losses"][0]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp_musa"])
@pytest.mark.parametrize(
    "precision, dtype", [("bf16-mixed", "torch.bfloat16"), ("16-mixed", "torch.float16")]
)
def test_fabric_on_two_devices_computes_in_the_dtype_of_its_precision(tmp_path, strategy, precision, dtype):
    for result in run_fabric(tmp_path, "lightning", strategy, precision):
        assert result["computed"] == [dtype] and result["losses"][-1] < result["losses"][0]


def test_fabric_without_a_strategy_is_refused_before_it_computes_on_the_cpu(fabric_class):
    fabric = fabric_class(accelerator="musa", devices=1)
    with pytest.raises(ValueError, match=r"Fix: Fabric.accelerator='musa', strategy='single_musa'"):
        fabric_steps(fabric)


def test_a_stock_ddp_strategy_is_refused_with_the_line_that_helps(pl, model_class, tmp_path, monkeypatch):
    strategies = importlib.import_module(f"{pl.__name__}.strategies")
    trainer = pl.Trainer(accelerator="musa", devices=2, strategy=strategies.DDPStrategy(), **QUIET)
    with pytest.raises(TypeError, match=r"Fix: from torch_musa.integrations.lightning import on_musa"):
        trainer.accelerator.setup(trainer)
    trainer = pl.Trainer(
        accelerator="musa",
        devices=2,
        strategy=integration.on_musa(strategies.DDPStrategy)(static_graph=True),
        **QUIET,
    )
    trainer.accelerator.setup(trainer)
    assert trainer.strategy.determine_ddp_device_ids() is None


def test_a_strategy_for_another_device_is_refused(pl):
    strategies = importlib.import_module(f"{pl.__name__}.strategies")
    trainer = pl.Trainer(accelerator="cpu", devices=1, **QUIET)
    musa = importlib.import_module(f"{pl.__name__}.accelerators").AcceleratorRegistry.get("musa")
    trainer.strategy._root_device = torch.device("meta")
    with pytest.raises(ValueError, match="would compute on 'meta'"):
        musa.setup(trainer)
    with pytest.raises(TypeError, match="an instance was passed"):
        integration.on_musa(strategies.DDPStrategy())
    with pytest.raises(ValueError, match="single_musa"):
        pl.Trainer(accelerator="musa", devices=2, strategy="single_musa", **QUIET)


def test_derived_strategies_behave_as_their_base_on_other_devices(pl):
    strategies = importlib.import_module(f"{pl.__name__}.strategies")
    trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", precision="bf16-mixed", **QUIET)
    assert isinstance(trainer.strategy, strategies.DDPStrategy) and trainer.strategy.root_device.type == "cpu"
    assert trainer.precision_plugin.device == "cpu"
    derived = integration.on_musa(strategies.DDPStrategy)
    cuda = derived(parallel_devices=[torch.device("cuda", 1)])
    cuda.cluster_environment = trainer.strategy.cluster_environment
    assert cuda.determine_ddp_device_ids() == [1]
    assert integration.on_musa(derived) is derived


def test_derived_objects_are_pickled_for_strategies_that_spawn(pl):
    trainer = pl.Trainer(accelerator="musa", devices=1, precision="16-mixed", **QUIET)
    accelerator = pickle.loads(pickle.dumps(trainer.accelerator))
    assert type(accelerator) is type(trainer.accelerator)
    strategies = importlib.import_module(f"{pl.__name__}.strategies")
    strategy = strategies.StrategyRegistry.get("ddp_spawn")
    again = pickle.loads(pickle.dumps(strategy))
    assert type(again) is type(strategy) and again._start_method == "spawn"


@pytest.mark.parametrize(
    "devices, expected",
    [
        (1, [0]),
        (2, [0, 1]),
        (-1, [0, 1]),
        ("2", [0, 1]),
        ("1,", [1]),
        ("0, 1", [0, 1]),
        ([1], [1]),
        ("-1", [0, 1]),
    ],
)
def test_devices_are_parsed_as_lightning_does(pl, devices, expected):
    musa = importlib.import_module(f"{pl.__name__}.accelerators").AcceleratorRegistry["musa"]["accelerator"]
    assert musa.parse_devices(devices) == expected


@pytest.mark.parametrize("devices", [3, [0, 0], [2], [-1], "a", "", None, [], -2, 1.5])
def test_devices_that_are_not_there_are_refused(pl, devices):
    musa = importlib.import_module(f"{pl.__name__}.accelerators").AcceleratorRegistry["musa"]["accelerator"]
    with pytest.raises(ValueError, match="this process has 2"):
        musa.parse_devices(devices)


def test_an_uncorrected_precision_plugin_of_cuda_is_an_error():
    code = """
        import torch, torch_musa.integrations.lightning
        from lightning.fabric import Fabric
        from lightning.fabric.strategies import SingleDeviceStrategy
        fabric = Fabric(accelerator="musa", strategy=SingleDeviceStrategy("musa:0"), precision="bf16-mixed")
        model = fabric.setup(torch.nn.Linear(2, 2))
        try:
            model(torch.ones(2, 2, device="musa"))
        except UserWarning as warning:
            print("refused:", warning)
    """
    done = run_python("-c", textwrap.dedent(code))
    assert "refused: CUDA is not available" in done.stdout, done.stdout + done.stderr
