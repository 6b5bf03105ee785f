# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The runner of public programs judges correctly: it detects each kind of wrong program."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness import records
from tests.musa_emulator import sdk
from tests.sdk_programs import fetch, programs, report
from tests.sdk_programs.__main__ import main
from tests.sdk_programs.judge import COMPILED, ENDLESS, NOT_BUILT, RIGHT, WRONG, Judge, Outcome
from tests.sdk_programs.programs import Program, Source

pytestmark = pytest.mark.once

OURS = Source("ours", "somebody/programs", "0" * 40)
SUM = """
#include <musa_runtime.h>
#include <cstdio>
#include <cstring>
__global__ void add(int* sum, const int* x) { atomicAdd(sum, x[threadIdx.x]); }
int main(int, char** arguments) {
  int *sum, *x, result = -1;
  musaMalloc((void**)&sum, 4);
  musaMalloc((void**)&x, 128);
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = i;
  musaMemset(sum, 0, 4);
  musaMemcpy(x, values, 128, musaMemcpyHostToDevice);
  add<<<1, 32>>>(sum, x);
  musaMemcpy(&result, sum, 4, musaMemcpyDeviceToHost);
  std::setbuf(stdout, nullptr);
  const bool zero = std::strcmp(arguments[1], "zero") == 0;
  std::printf("sum = %d\\n%s cases passed\\n", result, zero ? "0/0" : "3/4");
  for (volatile int i = 0; std::strcmp(arguments[1], "endless") == 0; ++i) {}
  if (std::strcmp(arguments[1], "fault") == 0) *(volatile int*)8 = 1;
  return std::strcmp(arguments[1], "status") == 0 ? 3 : 0;
}
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    root = tmp_path_factory.mktemp("programs")
    folder = OURS.folder(root)
    folder.mkdir()
    (folder / "sum.mu").write_text(SUM)
    (folder / "broken.mu").write_text("int main() { return undeclared; }\n")
    return Judge(root, tmp_path_factory.mktemp("work"), sdk.HOME)


def program(name: str, *arguments: str, file: str = "sum.mu", **fields: object) -> Program:
    build = (("{mcc}", "-O1", "{folder}/" + file, "-o", "main", "-lmusart"),)
    # One build serves all runs of sum.mu.
    plain = Program(name, "ours", OURS, build=build, run=("./main", *arguments), shared_build=file)
    return replace(plain, **fields)


def test_a_right_program_is_right(judge: Judge) -> None:
    outcome = judge.judge(program("right", "x", output=("^sum = 496$",)))
    assert (outcome.verdict, outcome.good) == (RIGHT, True)


def test_a_program_without_a_run_is_compiled_only(judge: Judge) -> None:
    assert judge.judge(program("compiled", run=())).verdict == COMPILED


WRONGS = {
    "does-not-compile": (program("a", "x", file="broken.mu"), NOT_BUILT, "undeclared"),
    "other-output": (program("b", "x", output=("^sum = 497$",)), WRONG, "no output matches"),
    "refused-output": (program("c", "x", refuse=("sum = 4..",)), WRONG, "the output says 'sum = 496'"),
    "status": (program("d", "status"), WRONG, "exit status 3, 0 is right"),
    "fault": (program("e", "fault"), WRONG, "ended by SIGSEGV"),
    "endless": (program("f", "endless", timeout=3), ENDLESS, "stopped after 3 s"),
    "cases": (program("g", "x", cases=r"(\d+)/(\d+) cases"), WRONG, "1 of 4 cases failed"),
    "no-cases": (program("h", "x", cases=r"(\d+) of (\d+) cases"), WRONG, "no output matches"),
    "zero-cases": (program("k", "zero", cases=r"(\d+)/(\d+) cases"), WRONG, "no case was run"),
    "endless-build": (
        program("i", build=(("sleep", "60"),), shared_build="i", build_timeout=1), NOT_BUILT, "did not end",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONGS)
def test_a_wrong_program_is_detected(judge: Judge, name: str) -> None:
    wrong, verdict, why = WRONGS[name]
    outcome = judge.judge(wrong)
    assert not outcome.good
    assert outcome.verdict == verdict
    assert why in outcome.why


def test_counted_cases_of_a_program_that_does_not_end_are_reported(judge: Judge) -> None:
    stopped = program("j", "endless", timeout=3, cases="no such line", passed="passed", failed="= 4")
    outcome = judge.judge(stopped)
    assert (outcome.verdict, outcome.passed, outcome.cases) == (ENDLESS, 1, 2)


# ---- the table


def test_the_table_of_programs_can_be_read() -> None:
    sources, listed = programs.load()
    assert {"ggml", "cuda_samples", "tutorial_on_musa"} <= set(sources)
    assert all(len(source.commit) == 40 for source in sources.values())
    assert any(one.name.startswith("tutorial/") for one in listed)


TABLE = """
[source]
a = {repository = "x/a", commit = "1"}
[[program]]
name = "one"
source = "a"
build = [["true"]]
"""


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('outpt = ["x"]\n', "unknown keys: outpt"),
        ('[[program]]\nname = "one"\nsource = "a"\n', "names that occur twice: one"),
        ('[[program]]\nname = "two"\nsource = "b"\n', "no source is named b"),
        ('variants = ["x"]\nnot_yet_variants = {y = "no"}\n', "not_yet_variants of no variant"),
    ],
)
def test_a_mistake_in_the_table_is_an_error(tmp_path: Path, more: str, why: str) -> None:
    table = tmp_path / "programs.toml"
    table.write_text(TABLE)
    assert [one.name for one in programs.load(table=table)[1]] == ["one"]
    table.write_text(TABLE + more)
    with pytest.raises(ValueError, match=why):
        programs.load(table=table)


def test_settings_of_a_sample_that_is_absent_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "x+a" / "s" / "real").mkdir(parents=True)
    (tmp_path / "x+a" / "s" / "real" / "CMakeLists.txt").write_text(
        "add_executable(real real.cu b.cpp) # c\n"
    )
    table = tmp_path / "programs.toml"
    samples = TABLE + '[[samples]]\nname = "s"\nsource = "a"\nfolders = ["s"]\n'
    table.write_text(samples + "[samples.sample.real]\ntimeout = 7\n")
    listed = programs.load(tmp_path, table)[1]
    assert [(one.name, one.timeout, one.folder) for one in listed][1:] == [("s/real", 7, "s/real")]
    assert programs.sample_sources(tmp_path / "x+a" / "s" / "real") == ["real.cu", "b.cpp"]
    table.write_text(samples + "[samples.sample.other]\ntimeout = 7\n")
    with pytest.raises(ValueError, match=r"absent.*other"):
        programs.load(tmp_path, table)


# ---- the record and the commands


def test_the_record_counts_and_keeps_programs_that_were_not_run_again() -> None:
    good, bad = program("good", "x"), program("bad", "x")
    first = report.record(
        {good: Outcome(RIGHT, passed=3, cases=3), bad: Outcome(NOT_BUILT, "why")}, {}, "sdk", {}
    )
    assert first["groups"]["ours"] == {
        "tried": 2, "compiled": 1, "to run": 2, "ran right": 1, "cases": 3, "cases passed": 3,
    }  # fmt: skip
    second = report.record({bad: Outcome(WRONG, "else")}, {}, "sdk", first)
    assert second["programs"]["good"] == first["programs"]["good"]
    assert second["groups"]["ours"]["compiled"] == 2
    assert "| ours | 2 | 2 | 2 | 1 | 3 of 3 |" in report.table(second)


def test_sources_are_fetched_at_their_commits(tmp_path: Path) -> None:
    origin = tmp_path / "host" / "x" / "a"
    origin.mkdir(parents=True)

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=origin, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    (origin / "file").write_text("first")
    git("add", "file")
    git("commit", "--quiet", "-m", "first")
    commit = git("rev-parse", "HEAD")
    (origin / "file").write_text("second")
    git("commit", "--quiet", "-am", "second")
    here = Source("a", "x/a", commit)
    absent = Source("b", "x/b", commit)
    failures = fetch.fetch([here, absent], tmp_path / "into", str(tmp_path / "host"))
    assert (here.folder(tmp_path / "into") / "file").read_text() == "first"
    assert len(failures) == 1 and failures[0].startswith("b: git fetch")
    assert not absent.folder(tmp_path / "into").exists()


def test_the_command_runs_the_programs_that_it_finds_and_records_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "FOLDER", tmp_path / "records")
    assert main(["table"]) == main(["run", str(tmp_path)]) == 2
    assert "Fix: python -m tests.sdk_programs fetch" in capsys.readouterr().err
    folder = tmp_path / "MooreThreads+tutorial_on_musa" / "setup_musa" / "check"
    folder.mkdir(parents=True)
    program = '#include <cstdio>\nint main() { std::puts("MUSA check successfully!"); return STATUS; }\n'
    (folder / "test_musa.mu").write_text(program.replace("STATUS", "0"))
    arguments = ["run", str(tmp_path), "^tutorial/test_musa$", "--work", str(tmp_path / "work")]
    arguments += ["--home", str(sdk.HOME)]
    assert main(arguments) == 0
    content = report.last()
    assert content["summary"].endswith(": 1 tried, 1 compiled, 1 to run, 1 ran right")
    assert content["programs"]["tutorial/test_musa"]["verdict"] == RIGHT
    assert "SDK 4." in content["sdk"] or "SDK 5." in content["sdk"]
    (folder / "test_musa.mu").write_text(program.replace("STATUS", "1"))
    assert main(arguments) == 1
    assert "! tutorial/test_musa: ran wrong" in capsys.readouterr().out
