# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Shares of providers are counted correctly, and wrong results are refused. No test asserts a time."""

import pytest
import torch
from rich.console import Console

from benchmarks import mudnn_share, providers, training
from benchmarks.mudnn_share import Share, Workload
from tests.harness import records
from tests.harness.device import DEVICE

pytestmark = pytest.mark.once
needs_musa = pytest.mark.skipif(
    DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without musa's allocator and packages"
)
CPU = torch.device("cpu")
MUSA = torch.device("musa")
SMALL = tuple(Workload(f"small CNN, {trains}", training.JOBS[0], trains) for trains in (True, False))


def share(**changes):
    values = {
        "name": "network",
        "calls": {"mudnn": 30, "host": 10},
        "kernel_ms": {"mudnn": 9.0, "runtime": 1.0},
        "left": {"aten::cos": (10, 0.5), "aten::copy_": (0, 1.0)},
        "errors": {"outputs": 1e-6},
        "float32_errors": {"outputs": 2e-6},
        "musa_ms": 3.0,
        "cpu_ms": 2.0,
        "ratio": 1.5,
        "spread": (1.4, 1.6),
    }
    return Share(**{**values, **changes})


def test_the_table_shows_shares_errors_and_times():
    console = Console(width=140, record=True)
    trained = share(name="trained", calls={"mudnn": 5}, errors={"losses": 3e-3}, float32_errors={"losses": 0})
    console.print(mudnn_share.table([share(), trained]))
    text = console.export_text()
    for expected in ("30   75.0%", "10   25.0%", "5  100.0%", "0    0.0%"):
        assert expected in text
    for expected in (
        "9.00 ms   90.0%",
        "1.00 ms   10.0%",
        "1.0e-06 (2.0e-06)",
        "3.0e-03 (0.0e+00)",
        "1.50x (1.40 to 1.60)",
    ):
        assert expected in text


@pytest.mark.parametrize(
    ("kernel", "provider"),
    [
        ("musa::dnn::Unary::Run", "mudnn"),
        ("native::mm", "host"),
        ("native::copy_", "runtime"),
        ("Memcpy DtoD (Device -> Device)", "runtime"),
        ("Memset (Device)", "runtime"),
        ("a_kernel_of_somebody", "other"),
    ],
)
def test_a_row_of_the_trace_belongs_to_its_provider(kernel, provider):
    assert mudnn_share.provider_of(kernel, {"aten::mm"}) == provider


def test_errors_are_relative_and_the_largest_counts():
    expected = {
        "outputs": [torch.tensor([1.0, -4.0])],
        "gradients": [torch.ones(4), torch.tensor([3.0, 4.0])],
    }
    values = {"outputs": [torch.tensor([1.2, -4.0])], "gradients": [torch.ones(4), torch.tensor([3.0, 4.5])]}
    assert mudnn_share.errors(values, expected) == pytest.approx({"outputs": 0.05, "gradients": 0.1})


@pytest.mark.parametrize("error", [1.0, float("nan"), float("inf")])
@pytest.mark.parametrize("kind", mudnn_share.TOLERANCES)
def test_a_workload_with_other_results_is_not_timed(kind, error):
    mudnn_share.check_agreement("network", {kind: 1e-6})
    with pytest.raises(AssertionError, match=f"network: {kind} on musa differ"):
        mudnn_share.check_agreement("network", {"outputs": 0.0, kind: error})


@pytest.mark.parametrize("workload", SMALL, ids=lambda workload: workload.name)
def test_float32_is_compared_with_float64(workload):
    torch.manual_seed(0)
    model, data = workload.job.model(), workload.job.data()
    found = mudnn_share.results(workload, model, data, CPU)
    exact = mudnn_share.results(workload, model, data, CPU, torch.float64)
    assert exact["outputs"][0].dtype == torch.float64
    rounding = mudnn_share.errors(found, exact)
    assert set(rounding) == (set(mudnn_share.TOLERANCES) if workload.trains else {"outputs"})
    mudnn_share.check_agreement(workload.name, rounding)
    assert all(error > 0 for error in rounding.values())


def test_resnet50_is_the_network_of_that_name():
    model = training.resnet50()
    # The number of torchvision's model.
    assert sum(parameter.numel() for parameter in model.parameters()) == 25_557_032
    assert sum(isinstance(module, torch.nn.Conv2d) for module in model.modules()) == 53
    with torch.inference_mode():
        assert model.eval()(torch.randn(1, 3, 64, 64)).shape == (1, 1000)


def test_the_order_of_providers_is_reported():
    told = {"TORCH_MUSA_OPS": None, "first": {"composite": 900, "host": 20, "mudnn": 3}}
    assert providers.policy_text(told).endswith(
        "default order of providers; first for so many of them: host 20, mudnn 3"
    )
    assert "TORCH_MUSA_OPS=host;" in providers.policy_text({**told, "TORCH_MUSA_OPS": "host"})


@needs_musa
@pytest.mark.filterwarnings("ignore:aten..sinh is served by the provider 'host-copy'")
def test_calls_are_counted_by_their_provider():
    x = torch.randn(64, device="musa")

    def run():
        return x.cos().view(8, 8).sinh()

    with torch.musa.ops.prefer("aten::cos", "host"), torch.musa.ops.prefer("aten::sinh", "host-copy"):
        calls = providers.calls_of(run)
        assert calls == {("aten::cos", "host"): 1, ("aten::sinh", "host-copy"): 1}
        assert providers.served_by(run, MUSA) == "host 50%, host-copy 50%"
    assert providers.served_by(lambda: x.view(8, 8), MUSA) == "runtime"
    assert providers.served_by(run, CPU) == ""


@needs_musa
def test_a_quick_run_of_small_networks_reports_their_providers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    assert mudnn_share.main(["--quick"], SMALL) == 0
    content = records.read("mudnn_share_quick")
    first = torch.musa.ops.explain("aten::addmm")["provider"]
    assert [row["name"] for row in content["workloads"]] == [workload.name for workload in SMALL]
    for row in content["workloads"]:
        assert row["calls"][first] > 0 and row["kernel_ms"][first] > 0
        left = sum(count for count, _ in row["left"].values())
        assert left == sum(row["calls"].values()) - row["calls"].get("mudnn", 0)
        assert all(0 <= error < 1e-2 for error in row["errors"].values())
        assert row["musa_ms"] > 0 and row["cpu_ms"] > 0
    assert content["operators"]["first"] == providers.policy()["first"]
    printed = capsys.readouterr().out
    assert f"calls, {first}" in printed and "operators by" in printed


@needs_musa
def test_without_mudnn_it_has_no_share():
    with torch.musa.ops.prefer("*", "host"):
        found = mudnn_share.measure(SMALL[0], mudnn_share.timed(SMALL[0], mudnn_share.Effort(1, 1e-4)))
    assert "mudnn" not in {*found.calls, *found.kernel_ms} and found.call_share("host") > 0.5
