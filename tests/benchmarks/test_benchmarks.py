# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Measurements compare the named pairs, refuse wrong results and report all rows. No test asserts a time."""

import functools
import json
import math
import os

import pytest
import torch
from rich.console import Console

from benchmarks import __main__ as cli
from benchmarks import (
    allocator,
    amp,
    debugging,
    dispatch_record,
    host_copies,
    measure,
    operators,
    programs,
    report,
    startup,
    training,
)
from benchmarks.measure import Effort, Row
from tests.harness import records
from tests.harness.device import DEVICE

pytestmark = pytest.mark.once
CPU = torch.device("cpu")
QUICK = Effort(2, 1e-4)


@pytest.fixture(autouse=True)
def _threads_of_the_emulator(monkeypatch):
    """Restores the variable that the command sets for its own process."""
    monkeypatch.setenv("MUSA_EMULATOR_THREADS", str(torch.get_num_threads()))


class Clock:
    """A clock that only measured functions advance."""

    def __init__(self):
        self.now = 0.0
        self.calls = []

    def __call__(self):
        return self.now

    def task(self, name, seconds):
        def run():
            self.now += seconds
            self.calls.append(name)

        return run


@pytest.fixture
def clock(monkeypatch):
    result = Clock()
    monkeypatch.setattr(measure.time, "perf_counter", result)
    return result


def test_the_two_sides_are_sampled_in_turn_and_their_medians_compared(clock):
    slow, fast = clock.task("slow", 3e-3), clock.task("fast", 1e-3)
    pair = measure.interleaved(slow, CPU, fast, CPU, Effort(rounds=4, seconds=1e-3))
    assert pair.value == pytest.approx(3e-3) and pair.baseline == pytest.approx(1e-3)
    assert pair.spread == pytest.approx((3.0, 3.0))
    assert clock.calls[-8:] == ["slow", "fast", "fast", "slow"] * 2


def test_one_slow_sample_does_not_move_the_result(clock):
    durations = iter([1e-3] * 8 + [1.0] + [1e-3] * 100)

    def uneven():
        clock.now += next(durations)

    pair = measure.interleaved(uneven, CPU, clock.task("steady", 1e-3), CPU, Effort(5, 1e-3))
    assert pair.value == pytest.approx(1e-3)


def test_a_machine_that_slows_down_moves_both_sides_of_a_pair(clock):
    speed = iter(range(1, 1000))

    def drifting(factor):
        def run():
            clock.now += factor * 1e-3 * (1 + next(speed) // 20)

        return run

    pair = measure.interleaved(drifting(2.0), CPU, drifting(1.0), CPU, Effort(rounds=21, seconds=1e-3))
    assert pair.ratio == pytest.approx(2.0)
    row = Row("group", "name", pair.value, pair.baseline, "ms", bar=1.5, ratio=pair.ratio)
    assert row.judged == pair.ratio and not row.met


def test_short_functions_are_called_often_enough(clock):
    tasks = [(clock.task("short", 1e-7), CPU), (clock.task("long", 1e-5), CPU)]
    count = measure.calibrate(tasks, seconds=1e-3)
    assert count * 1e-7 >= 1e-3


@pytest.mark.parametrize(
    ("by", "value", "baseline", "judged", "met"),
    [
        ("ratio", 3.0, 2.0, 1.5, True),
        ("ratio", 3.1, 2.0, 1.55, False),
        ("difference", 130.0, 128.5, 1.5, True),
        ("difference", 131.0, 128.5, 2.5, False),
        ("value", 1.5, 0.1, 1.5, True),
        ("value", 1.6, 100.0, 1.6, False),
    ],
)
def test_a_row_meets_its_bar_or_not(by, value, baseline, judged, met):
    row = Row("group", "name", value, baseline, "ms", bar=1.5, by=by)
    assert row.judged == pytest.approx(judged) and row.met is met


def test_an_operator_with_a_wrong_result_is_not_timed():
    calls = iter([torch.zeros(3), torch.ones(3)])
    wrong = operators.Operator("wrong", ((3,),), lambda x: next(calls))
    with pytest.raises(AssertionError, match="wrong: the two devices disagree"):
        operators.measure(wrong, CPU, CPU, QUICK)


def test_training_with_other_losses_is_not_timed():
    rates = iter([0.1, 0.2])
    job = training.Job(
        "uneven", training.small_cnn, training.images, lambda p: torch.optim.SGD(p, lr=next(rates))
    )
    with pytest.raises(AssertionError, match="uneven: loss"):
        training.measure(job, CPU, CPU, QUICK)


def test_a_program_with_a_wrong_result_is_not_timed():
    results = iter([torch.zeros(3), torch.ones(3)])
    wrong = programs.Program("wrong", lambda device: lambda: next(results))
    with pytest.raises(AssertionError, match="wrong: the two devices disagree"):
        programs.measure(wrong, CPU, CPU, QUICK)


def test_decoding_with_a_cache_gives_the_tokens_of_the_whole_model():
    torch.manual_seed(0)
    model, prompt = training.SmallGPT(), torch.arange(3)[None]
    tokens = programs.generate(model, prompt, 5)
    logits = model(tokens[:, :-1]).view(1, 7, -1)
    assert tokens.shape == (1, 8) and torch.equal(tokens[:, :3], prompt)
    assert torch.equal(tokens[:, 3:], logits[:, 2:].argmax(-1))


def test_a_training_job_is_measured_in_a_process_of_its_own():
    alone = training.measure_alone(training.JOBS[0], CPU, CPU, QUICK)
    assert (alone.name, alone.group) == ("small CNN, SGD", "training step")
    assert alone.value > 0 and alone.baseline > 0
    unknown = training.Job("odd", training.small_cnn, training.images, os.getpid)
    with pytest.raises(TypeError, match="getpid"):  # the exception of the process reaches the caller
        training.measure_alone(unknown, CPU, CPU, QUICK)


def test_the_time_of_loading_backends_is_measured_beside_torch_alone():
    torch_alone, backends = startup.import_seconds()
    assert torch_alone > 0.05 and 0.001 < backends < torch_alone


@pytest.mark.parametrize("job", training.JOBS, ids=lambda job: job.name)
def test_every_training_job_learns(job):
    torch.manual_seed(0)
    step = training.stepper(job.model(), job, job.data(), torch.device(DEVICE))
    losses = [step().item() for _ in range(8)]
    assert losses[-1] < losses[0]
    assert len(job.data()[0]) >= 16


def test_malloc_is_measured_and_allocator_rows_are_held_to_an_absolute_bar(tmp_path):
    malloc = allocator.compile_malloc(tmp_path)
    assert malloc(512, 1000) > 0
    rows = list(allocator.measure(lambda nbytes, iterations: 100.0 + (nbytes > 4096) * 100, malloc, QUICK))
    assert [row.met for row in rows] == [True, False, False, False]
    assert all(row.baseline > 0 for row in rows)


def rows():
    return [
        Row("small operator", "add", 1.2, 1.0, "µs", 1.5, spread=(1.1, 1.3)),
        Row("small operator", "mm", 9.0, 3.0, "µs", 1.5, spread=(2.9, 3.1)),
        Row("allocator hit", "512 B", 80.0, 20.0, "ns", 150.0, by="value"),
        Row("start", "import torch", 1010.0, 1000.0, "ms", 30.0, by="difference"),
    ]


def test_the_table_shows_each_figure_with_its_bar():
    console = Console(width=120, record=True)
    console.print(report.table(rows(), "musa", "cpu"))
    text = console.export_text()
    assert "operators by" not in text
    for expected in ("1.20x", "≤ 1.5x", "3.00x", "80 ns", "≤ 150 ns", "+10 ms", "≤ +30 ms"):
        assert expected in text
    assert text.count(" yes ") == 3 and text.count(" no ") == 1


def test_the_table_names_the_providers_of_the_operators_where_they_are_recorded():
    console = Console(width=120, record=True)
    served = Row("small operator", "cos", 1.2, 1.0, "µs", 1.5, served="mudnn 75%, host 25%")
    console.print(report.table([*rows(), served], "musa", "cpu"))
    text = console.export_text()
    assert "operators by" in text and "mudnn 75%, host 25%" in text


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf])
def test_an_impossible_time_is_refused(tmp_path, bad):
    with pytest.raises(ValueError, match="no usable time: odd"):
        report.write([Row("group", "odd", bad, 1.0, "ms", 1.0)], {}, "musa", "cpu", tmp_path)
    with pytest.raises(ValueError, match="no usable time: odd"):
        report.write([Row("group", "odd", bad - 1, 0.0, "calls", 0, by="count")], {}, "musa", "cpu", tmp_path)
    with pytest.raises(ValueError, match="nothing was measured"):
        report.write([], {"allocator": "why"}, "musa", "cpu", tmp_path)
    assert list(tmp_path.iterdir()) == []


def check_outputs(folder, groups):
    content = json.loads((folder / "benchmarks.json").read_text())
    assert {row["group"] for row in content["rows"]} == groups
    assert len({row["name"] for row in content["rows"]}) == len(content["rows"])
    for row in content["rows"]:
        assert row["value"] > 0 and row["baseline"] > 0 and row["bar"] > 0
        assert row["met"] == (row["judged"] <= row["bar"])
    assert content["machine"]["versions"]["torch"] == torch.__version__
    assert content["machine"]["threads"] == torch.get_num_threads()
    assert (folder / "benchmarks.png").read_bytes().startswith(b"\x89PNG")
    return content


def test_a_quick_run_of_the_cpu_against_itself_reports_every_group(tmp_path, capsys):
    threads = torch.get_num_threads()
    try:
        # One thread: two that wait for each other on a busy machine would take most of a minute.
        assert cli.main(["--quick", "--device", "cpu", "--threads", "1", "--out", str(tmp_path)]) == 0
        groups = {"small operator", "large tensor", "training step", "program", "autocast over none"}
        content = check_outputs(tmp_path, groups)
        assert os.environ["MUSA_EMULATOR_THREADS"] == "1", "the device would have more threads than torch"
    finally:
        torch.set_num_threads(threads)
    assert set(content["not_measured"]) == {
        "allocator",
        "compiled",
        "debugging",
        "distributed",
        "fragmentation",
        "graphs",
        "host copies",
        "import",
        "math libraries",
        "ported",
        "serving",
        "stable packs",
        "vision",
    }
    assert content["operators"] is None and not any(row["served"] for row in content["rows"])
    printed = capsys.readouterr().out
    assert "allocator: not measured" in printed
    bars = len(operators.SMALL) + 1 + len(training.JOBS) + len(programs.PROGRAMS) + len(amp.JOBS)
    assert f"of {bars} bars met" in printed


@pytest.mark.skipif(
    DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without musa's allocator and packages"
)
def test_a_quick_run_of_musa_measures_its_own_groups_too(tmp_path):
    arguments = ["--quick", "--only", "small", "--only", "allocator", "--only", "graphs", "--only", "import"]
    arguments += ["--only", "math libraries"]
    assert cli.main([*arguments, "--out", str(tmp_path)]) == 0
    groups = {"small operator", "allocator hit", "graph replay / eager", "math libraries", "start"}
    content = check_outputs(tmp_path, groups)
    assert content["operators"]["first"]["host"] > 0
    served = {row["name"]: row["served"] for row in content["rows"] if row["group"] == "small operator"}
    assert served["mm 64x64"] == torch.musa.ops.explain("aten::mm")["provider"]
    assert served["view 32x32"] == "runtime"


@pytest.mark.skipif(DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without an operator registry")
def test_calls_over_the_stable_abi_are_compared_with_those_of_the_same_kernels_in_cxx(tmp_path):
    assert cli.main(["--quick", "--only", "stable packs", "--out", str(tmp_path)]) == 0
    rows = check_outputs(tmp_path, {"stable ABI"})["rows"]
    assert len(rows) == 3 and all(row["by"] == "difference" and row["bar"] == 1000 for row in rows)
    for op, provider in (("aten::ceil", "bench_cxx"), ("aten::floor", "bench_stable")):
        calls = {row["provider"]: row["calls"] for row in torch.musa.ops.explain(op)["candidates"]}
        assert calls[provider] > 0


@pytest.mark.skipif(DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without the tools")
def test_steps_under_the_debugging_tools_are_compared_with_steps_without_them(tmp_path, monkeypatch):
    from torch_musa import debug

    used = []

    def recorded(make, *arguments):
        used.append(make(*arguments))
        return used[-1]

    for name in ("compare", "track_nonfinite", "log_operators"):
        monkeypatch.setattr(debug, name, functools.partial(recorded, getattr(debug, name)))
    monkeypatch.setattr(debugging, "NAMES", ("small CNN, AdamW",))  # a step of the others takes seconds
    assert cli.main(["--quick", "--only", "debugging", "--out", str(tmp_path)]) == 0
    assert len(check_outputs(tmp_path, {"debugging tool / none"})["rows"]) == 3
    assert len(used) >= 3 and all(tool.timeline.rows for tool in used), "a tool saw no operator"


@pytest.mark.skipif(DEVICE != "musa", reason="MUSA_TEST_DEVICE names a device without an operator registry")
def test_host_copies_of_steps_are_counted_and_there_are_none(monkeypatch):
    assert set(host_copies.SETTINGS) == {"MUSA_EMULATOR_MEMORY", "TORCH_MUSA_FALLBACK"}
    monkeypatch.setattr(host_copies, "JOBS", training.JOBS[:1])
    (row,) = host_copies.measure_all()
    assert row.value == 0 and row.met
    monkeypatch.setenv("TORCH_MUSA_DISABLE_PACKS", "all")
    (row,) = host_copies.measure_all()
    assert row.value > 0 and not row.met


def test_the_requested_clock_is_read(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(measure.time, "process_time", clock)
    effort = Effort(2, 1e-3, "process_time")
    pair = measure.interleaved(clock.task("slow", 2e-3), CPU, clock.task("fast", 1e-3), CPU, effort)
    assert pair.ratio == pytest.approx(2.0)


def test_cpu_time_is_refused_for_groups_that_wait(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--cpu-time", "--only", "distributed"])
    assert "Fix: --only small" in capsys.readouterr().err


def _run(folder, ratio, names=("add", "mm"), clock="process_time"):
    rows = [
        {"name": name, "judged": ratio, "spread": [ratio - 0.1, ratio + 0.1], "bar": 1.2} for name in names
    ]
    folder.mkdir()
    machine = {"threads": 1, "load_at_start": 0.5}
    content = {"clock": clock, "machine": machine, "rows": rows}
    (folder / "benchmarks.json").write_text(json.dumps(content))
    return str(folder)


def test_a_record_of_dispatch_holds_medians_and_keeps_other_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    records.write("dispatch", "x", "x", after={"GRU": {"ratio": 0.8}})
    before = [_run(tmp_path / f"b{i}", ratio) for i, ratio in enumerate((1.2, 1.3, 1.9))]
    after = [_run(tmp_path / f"a{i}", ratio) for i, ratio in enumerate((1.1, 1.0, 1.2))]
    dispatch_record.main(["--before", *before, "--after", *after])
    written = records.read("dispatch")
    assert written["before"]["add"] == {"ratio": 1.3, "quartiles": [1.2, 1.4], "bar": 1.2}
    assert written["after"]["mm"] == {"ratio": 1.1, "quartiles": [1.0, 1.2], "bar": 1.2}
    assert written["after"]["GRU"] == {"ratio": 0.8}
    assert written["last_measured"]["rows"] == ["add", "mm"]


@pytest.mark.parametrize("other", [{"names": ("add",)}, {"clock": "perf_counter"}], ids=["rows", "clock"])
def test_a_record_of_dispatch_refuses_runs_that_do_not_match(tmp_path, monkeypatch, other):
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    runs = ["--before", _run(tmp_path / "b", 1.2), "--after", _run(tmp_path / "a", 1.1)]
    with pytest.raises(ValueError):
        dispatch_record.main([*runs, _run(tmp_path / "other", 1.1, **other)])
    assert records.read("dispatch") == {}
