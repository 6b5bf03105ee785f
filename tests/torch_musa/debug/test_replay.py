# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Calls as files: a script, `replay` and the command line repeat the calls that `compare` and `dump`
saved."""

import runpy
import shutil

import pytest
import torch

from tests.harness.subprocesses import run_module, run_python
from tests.torch_musa.debug.planted import planted, varying, wrong
from tests.torch_musa.debug.programs import GPT, Training
from torch_musa import debug

pytestmark = pytest.mark.usefixtures("musa")


def status_of(script):
    """The exit status of a script that runs in this process, with its planted operators."""
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(script), run_name="__main__")
    return end.value.code


def test_the_script_of_a_difference_repeats_it(tmp_path, capsys):
    step = Training(GPT())
    with planted("gelu", wrong("gelu")):
        with debug.compare(tmp_path / "found") as comparison:
            step()
        folder = comparison.first.folder
        # The folder works by itself, without the other files, so that it can be sent to others.
        moved = shutil.copytree(folder, tmp_path / "moved")
        assert status_of(moved / "reproduce.py") == 1
    assert f"of {4 * 16 * 128} elements differ" in capsys.readouterr().out
    assert f"python {folder}/reproduce.py" in str(comparison.first)
    # The operator is right in a process without the defect.
    done = run_python(str(moved / "reproduce.py"))
    assert (done.returncode, done.stdout) == (0, f"result: 0 of {4 * 16 * 128} elements differ\n"), (
        done.stderr
    )
    assert "torch_musa" not in (moved / "reproduce.py").read_text(), "the script needs this package"


PROGRAMS = {
    "in place": ("add_.Tensor", lambda x: x[1:].add_(x[:-1].clone(), alpha=2)),
    "shared memory": ("add.out", lambda x: torch.add(x[:2], x[2:], out=x[2:])),
    "a list": ("cat", lambda x: torch.cat([x, x * 2, x[1:]])),
    "several results": ("native_layer_norm", lambda x: torch.layer_norm(x, (6,), x[0])),
    "a factory": ("arange.start_out", lambda x: torch.arange(5, device="musa", dtype=torch.float32)),
    "infinities": ("masked_fill.Scalar", lambda x: x.masked_fill(x > 3, float("-inf"))),
    "a number": ("_local_scalar_dense", lambda x: x.sum().item()),
    "channels last": (
        "relu",
        lambda x: torch.relu(x.view(1, 2, 2, 6).contiguous(memory_format=torch.channels_last)),
    ),
}


@pytest.mark.parametrize("case", PROGRAMS)
def test_calls_of_all_kinds_are_repeated(case, tmp_path):
    operator, program = PROGRAMS[case]

    def bad(*args, **kwargs):
        if operator == "_local_scalar_dense":
            return 123.0
        if operator == "arange.start_out":
            return kwargs["out"].resize_(5).fill_(7.0)
        written = kwargs.get("out", args[0] if operator.startswith("add_") else None)
        if written is not None:
            return written.fill_(7.0)
        return wrong(operator, 1.5)(*args, **kwargs)

    x = torch.arange(24.0, device="musa").view(4, 6)
    with planted(operator, bad):
        with debug.compare(tmp_path) as comparison:
            program(x.clone())
        first = comparison.first
        assert first is not None
        assert status_of(f"{first.folder}/reproduce.py") == 1
        assert debug.replay(f"{first.folder}/call.pt").status == 1
    assert status_of(f"{first.folder}/reproduce.py") == 0
    outcome = debug.replay(f"{first.folder}/call.pt", times=2)
    assert outcome.status == 0 and "the same as on the CPU" in str(outcome), str(outcome)


def test_a_random_operator_is_repeated_by_replay(tmp_path):
    with planted("uniform_", lambda self, *limits, generator=None: self.fill_(9.0)):
        with debug.compare(tmp_path) as comparison:
            torch.empty(5, device="musa").uniform_()
        assert status_of(f"{comparison.first.folder}/reproduce.py") == 1
    assert status_of(f"{comparison.first.folder}/reproduce.py") == 0


def test_only_the_first_differences_are_saved(tmp_path):
    x = torch.ones(3, device="musa")
    with (
        planted("relu", wrong("relu")),
        planted("neg", wrong("neg")),
        debug.compare(tmp_path, save=1) as comparison,
    ):
        torch.relu(x), torch.relu(x), torch.neg(x)
    assert [bool(difference.folder) for difference in comparison.differences] == [True, False, False]
    assert len(list(tmp_path.iterdir())) == 1
    with planted("relu", wrong("relu")), debug.compare(None) as comparison:
        torch.relu(x)
    assert comparison.first.folder == ""


def test_dump_saves_the_calls_that_are_named(tmp_path):
    step = Training(GPT())
    with debug.dump("aten::native_layer_norm", tmp_path, skip=1, most=2) as saved:
        step()
    assert [path.name[7:] for path in saved.files] == ["aten.native_layer_norm.pt"] * 2
    outcome = debug.replay(saved.files[0])
    assert outcome.status == 0 and outcome.module == "GPT.layers.0.ln2"
    assert outcome.arguments[0] == "input: float32[4, 16, 32]" and len(outcome.results) == 3
    with debug.dump("gelu*", tmp_path / "by_module", modules="GPT.layers.1", most=9) as saved:
        step()
    assert [path.name[7:] for path in saved.files] == ["aten.gelu.pt", "aten.gelu_backward.pt"]


def test_replay_finds_results_that_vary_and_errors(tmp_path):
    x = torch.rand(3, device="musa")
    with debug.dump("aten::relu", tmp_path) as saved:
        torch.relu(x)
    with planted("relu", varying("relu")):
        outcome = debug.replay(saved.files[0], times=3, tolerances={torch.float32: (1, 1)})
    assert outcome.varying == 2 and outcome.status == 1 and "2 of 3 runs" in str(outcome)

    def refuses(self):
        raise RuntimeError("no such kernel")

    with planted("relu", refuses):
        outcome = debug.replay(saved.files[0])
    assert outcome.status == 1 and "it raised RuntimeError: no such kernel" in str(outcome)


def test_the_command_line_replays(tmp_path):
    with debug.dump("aten::mm", tmp_path) as saved:
        torch.ones(2, 3, device="musa") @ torch.ones(3, 2, device="musa")
    done = run_module("torch_musa", "replay", "--times", "2", str(saved.files[0]))
    assert done.returncode == 0 and "the same as on the CPU" in done.stdout, done.stderr
    (tmp_path / "other.pt").write_bytes(b"no call")
    for name in ("other.pt", "missing.pt"):
        done = run_module("torch_musa", "replay", str(tmp_path / name))
        assert done.returncode == 1 and "Fix: name a file" in done.stderr and "Traceback" not in done.stderr


def test_a_file_of_an_unknown_operator_and_another_format_are_refused(tmp_path):
    with debug.dump("aten::relu", tmp_path) as saved:
        torch.relu(torch.ones(2, device="musa"))
    content = torch.load(saved.files[0], weights_only=True)
    torch.save({**content, "operator": "elsewhere::relu"}, tmp_path / "unknown.pt")
    with pytest.raises(debug.CallFileError, match="--import PACKAGE"):
        debug.replay(tmp_path / "unknown.pt")
    torch.save({**content, "format": 99}, tmp_path / "newer.pt")
    with pytest.raises(debug.CallFileError, match="format 1"):
        debug.replay(tmp_path / "newer.pt")
