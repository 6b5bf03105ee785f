# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`python -m benchmarks.gpu`: its cases, its table, its refusal without a GPU."""

from __future__ import annotations

import pytest
import torch

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu import cases, program_timing, training
from benchmarks.gpu.programs import PROGRAMS, Program

pytestmark = pytest.mark.once


def test_each_case_has_a_name_of_its_own() -> None:
    names = [case.name for case in (*cases.HOST, *cases.DEVICE, *cases.MATHEMATICS, *cases.BACKWARD)]
    assert len(names) == len(set(names)) > 70


@pytest.mark.parametrize(("musa", "marked"), [(1.19, False), (1.21, True)])
def test_a_row_above_its_bar_is_marked(musa: float, marked: bool) -> None:
    case = cases.Case("one", "device", lambda device: list, bytes=4000, bar=1.2)
    # The rounds of one device are beside those of the other: both were slow in the second.
    row = gpu.row(case, [1.0, 2.0, 1.0, 1.0], [musa, 2 * musa, 0.5, 9.0])
    assert row["ratio"] == musa
    assert ("above the bar" in gpu.table([row])) == marked


def test_a_case_gives_a_call_that_computes() -> None:
    assert cases.of(torch.add, (2,), (2,))("cpu")().shape == (2,)
    into = cases.of(torch.add, (2,), (2,), (2,), out=True)("cpu")
    assert into() is into()  # the same tensor each time
    layer_norm = next(case for case in cases.BACKWARD if case.name.startswith("layer_norm"))
    layer_norm.make("cpu")()


def test_matrices_of_cases_can_be_decomposed() -> None:
    assert cases.solve(4, 2, 3)("cpu")().shape == (3, 4, 2)
    factor = cases.matrices(torch.linalg.cholesky, 2, 5, 5, positive=True)("cpu")()
    assert factor.shape == (2, 5, 5)
    matrix = cases.sparse(torch.sparse_csr, rows=50, each=3)("cpu")
    assert matrix.layout is torch.sparse_csr and 100 < matrix.values().numel() <= 150


def test_a_case_that_raises_is_listed_apart() -> None:
    measured, failed = (cases.Case(name, "device", lambda device: list) for name in ("one", "other"))
    found = {
        "one": {"cuda": [1.0, 1.0], "musa": [1.0, 1.0], "served_by": "ported"},
        "other": {"error": "no"},
    }
    rows, refused = gpu.rows_of([measured, failed], found)
    assert [row["name"] for row in rows] == ["one"] and refused == [{"name": "other", "error": "no"}]
    assert gpu.within(rows) == "1 of 1 medians within their bars"


def test_without_both_devices_the_message_names_the_missing_one(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("torch.cuda is available: python3 tools/dev.py gpu runs the comparison")
    assert gpu.main([]) == 1
    assert "torch.cuda.is_available() is False" in capsys.readouterr().err


def test_a_peak_is_the_sum_of_both_allocators_at_one_time() -> None:
    tensors = [(0.0, 100.0), (5.0, 50.0), (9.0, -50.0)]
    early, late = [(1.0, 40.0), (2.0, -40.0)], [(6.0, 40.0), (7.0, -40.0)]
    assert training.peak_of_events(tensors + early) == 150
    assert training.peak_of_events(tensors + late) == 190
    assert training.peak_of_events([*tensors, (9.0, 60.0)]) == 160  # the free at the same time comes first


def test_the_peak_of_a_call_counts_what_it_frees() -> None:
    kept = torch.empty(1 << 20, device="musa", dtype=torch.uint8)

    def call() -> torch.Tensor:
        torch.empty(3 << 20, device="musa", dtype=torch.uint8)
        return torch.empty(1 << 20, device="musa", dtype=torch.uint8)

    before = torch.musa.memory_allocated() / 2**20
    result, peak = training.peak_of(call, "musa")
    assert result.numel() == kept.numel() and peak == pytest.approx(before + 3, abs=0.01)


def test_rounds_of_processes_are_joined_and_an_error_in_one_counts() -> None:
    first = {"a": {"cuda": [1], "musa": [2], "served_by": "ported"}, "b": {"error": "refused"}}
    second = {"a": {"cuda": [3], "musa": [4], "served_by": "ported"}, "b": {"cuda": [1], "musa": [1]}}
    assert gpu.joined([first, second]) == {
        "a": {"cuda": [1, 3], "musa": [2, 4], "served_by": "ported"},
        "b": {"error": "refused"},
    }
    assert gpu.joined([second, first])["b"] == {"error": "refused"}
    assert first["a"]["cuda"] == [1]


PLAIN = (
    "lstm-train",
    "mamba-train",
    "recommendation-train",
    "policy-train",
    "fourier-train",
    "jagged-attention",
)


@pytest.mark.parametrize("name", PLAIN)
def test_a_program_has_equal_results_on_both_devices(name: str) -> None:
    """The smallest sizes of programs that need no package; the CPU is in torch.cuda's place."""
    results = []
    for device in ("cpu", "musa"):
        torch.manual_seed(0)
        step = PROGRAMS[name].make(device, True)
        results.append([float(step().double().mean()) for _ in range(3)])
    assert results[1] == pytest.approx(results[0], rel=1e-3, abs=1e-4)


def test_a_program_without_its_package_is_listed_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PROGRAMS, "lstm-train", Program(PROGRAMS["lstm-train"].make, ("no_such_package",)))
    (row,) = program_timing.run(["lstm-train"])
    assert "no_such_package is not installed" in program_timing.line(row)


@pytest.mark.parametrize(
    ("changed", "mark"),
    [
        ({}, None),
        ({"result": 1.1}, "results differ"),
        ({"result": float("nan")}, "results differ"),
        ({"ms": 11.5}, "above the bar"),
        ({"allocated": 200.0}, "more memory"),
        ({"host_copies": {"aten::one": 1}}, "computed on the host: aten::one"),
    ],
)
def test_what_is_wrong_with_a_program_is_marked(changed: dict, mark: str | None) -> None:
    good = {"ms": 10.0, "result": 1.0, "allocated": 100.0}
    row = {
        "name": "lstm-train",
        "results": [1.0],
        "cuda": good,
        "musa": {**good, "host_copies": {}, **changed},
    }
    assert program_timing.marks(row) == ([mark] if mark else [])


def test_a_result_or_an_error_of_a_slower_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def processes(*of_musa: dict) -> dict:
        ends = {"cuda": iter([{"ms": 1.0, "result": 1.0}] * 2), "musa": iter(of_musa)}

        def alone(device: str, *arguments: str, limit: float) -> dict:
            one = next(ends[device])
            if "error" in one:
                raise RuntimeError(one["error"])
            return one

        monkeypatch.setattr(program_timing, "alone", alone)
        (row,) = program_timing.run(["lstm-train"])
        return row

    assert program_timing.agrees(processes({"ms": 1.0, "result": 1.0}, {"ms": 2.0, "result": 1.0}))
    assert not program_timing.agrees(processes({"ms": 1.0, "result": 1.0}, {"ms": 2.0, "result": 3.0}))
    assert processes({"ms": 1.0, "result": 1.0}, {"error": "lost"})["musa"] == {"error": "lost"}


def test_the_activity_of_a_step_is_measured() -> None:
    step = PROGRAMS["lstm-train"].make("musa", True)
    step()
    found = program_timing.activity(step, "musa")
    assert found["busy_ms"] > 0 and found["launches"] > 10 and found["sdk_ms"] > 0
    assert found["kernels"] and found["operators"]
