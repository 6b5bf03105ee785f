# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""musa-converter: names of CUDA in Python programs become those of MUSA, and nothing else changes."""

from pathlib import Path

import pytest

from musa_compat import converter

pytestmark = pytest.mark.once

PAIRS = [
    ('x = torch.ones(2, device="cuda")', 'x = torch.ones(2, device="musa")'),
    ("x.to('cuda:0').cuda(non_blocking=True)", "x.to('musa:0').musa(non_blocking=True)"),
    ('device = f"cuda:{rank}"', 'device = f"musa:{rank}"'),
    ("torch.cuda.synchronize()  # torch.cuda", "torch.musa.synchronize()  # torch.cuda"),
    ("if x.is_cuda and torch.version.cuda:", "if x.is_musa and torch.version.musa:"),
    ("from torch.cuda.amp import autocast", "from torch.musa.amp import autocast"),
    ("from torch import cuda, nn", "from torch import musa, nn"),
    ("torch.backends.cudnn.benchmark = True", "torch.backends.mudnn.benchmark = True"),
    ("torch.backends.cuda.matmul.allow_tf32 = True", "torch.backends.musa.matmul.allow_tf32 = True"),
    ('dist.init_process_group("nccl")', 'dist.init_process_group("mccl")'),
    ("dist.is_nccl_available()", "dist.is_mccl_available()"),
    ("ProfilerActivity.CUDA", "ProfilerActivity.MUSA"),
    ("g = torch.cuda.CUDAGraph()", "g = torch.musa.MUSAGraph()"),
    ('os.environ["CUDA_VISIBLE_DEVICES"] = "0"', 'os.environ["MUSA_VISIBLE_DEVICES"] = "0"'),
    ("torch.cuda.nvtx.range_push('x')", "torch.musa.mttx.range_push('x')"),
    (
        "from torch.utils.cpp_extension import BuildExtension, CUDAExtension",
        "from torch_musa.utils.musa_extension import BuildExtension, MUSAExtension",
    ),
    (
        "from torch.utils.cpp_extension import (\n    CUDA_HOME,\n)",
        "from torch_musa.utils.musa_extension import (\n    MUSA_HOME,\n)",
    ),
]
UNCHANGED = [
    "cuda = args.cuda_device",
    '"""Needs cuda and nccl."""',
    'print("no cuda device")',
    "from torch.utils.cpp_extension import CppExtension",
    "def nccl(): pass",
    "# x.cuda()",
]


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_names(before, after):
    before, after = (f"{text}\n    pass\n" if text.endswith(":") else f"{text}\n" for text in (before, after))
    assert converter.convert(before) == after
    assert converter.convert(after) == after


@pytest.mark.parametrize("text", UNCHANGED)
def test_other_text_stays(text):
    assert converter.convert(text) == text


def test_several_names_of_one_line_and_a_string_of_several_lines():
    before = 'a = x.cuda(), y.cuda("cuda"), """a\nb""", z.cuda()\n'
    assert converter.convert(before) == 'a = x.musa(), y.musa("musa"), """a\nb""", z.musa()\n'


def test_the_import_comes_before_others_and_once():
    text = '"""Doc."""\nfrom __future__ import annotations\nimport os\n'
    after = converter.with_import(text)
    assert after == '"""Doc."""\nfrom __future__ import annotations\nimport torch_musa\nimport os\n'
    assert converter.with_import(after) == after


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    (project / "inner").mkdir(parents=True)
    (project / "train.py").write_text("import torch\ntorch.cuda.init()\n")
    (project / "inner" / "data.json").write_text('{"device": "cuda"}')
    return project


def test_a_folder_becomes_another_one(project, capsys):
    assert converter.main(["-r", str(project), "-l", "train.py"]) == 0
    target = project.with_name("project_musa")
    assert (target / "train.py").read_text() == "import torch_musa\nimport torch\ntorch.musa.init()\n"
    assert (target / "inner" / "data.json").read_text() == '{"device": "cuda"}'
    assert (project / "train.py").read_text() == "import torch\ntorch.cuda.init()\n"
    assert "1 files changed" in capsys.readouterr().err


def test_the_options_of_the_vendor_s_manual(project, monkeypatch):
    """Names of files are relative to the current folder; files that are left out are copied unchanged."""
    (project / "inner" / "old.py").write_text("torch.cuda.init()\n")
    monkeypatch.chdir(project.parent)
    options = ["--root_path", "./project", "--launch_path", "./project/train.py"]
    assert converter.main([*options, "--excluted_path", "project/inner,"]) == 0
    target = project.with_name("project_musa")
    assert (target / "train.py").read_text().startswith("import torch_musa\n")
    assert (target / "inner" / "old.py").read_text() == "torch.cuda.init()\n"


def test_a_file_becomes_another_one(project, monkeypatch):
    monkeypatch.chdir(project)
    assert converter.main(["-r", "train.py", "-l", "train.py"]) == 0
    assert (project / "train_musa.py").read_text() == "import torch_musa\nimport torch\ntorch.musa.init()\n"


def test_a_dry_run_prints_a_diff_and_writes_nothing(project, capsys):
    assert converter.main(["-r", str(project), "--dry-run"]) == 0
    assert "+torch.musa.init()" in capsys.readouterr().out
    assert not project.with_name("project_musa").exists()


def test_a_file_that_is_no_python_is_copied_and_reported(project, capsys):
    (project / "broken.py").write_text("x = (cuda\n")
    assert converter.main(["-r", str(project)]) == 1
    assert "broken.py was copied unchanged" in capsys.readouterr().err
    assert (project.with_name("project_musa") / "broken.py").read_text() == "x = (cuda\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["-r", "nothing"], "there is no folder"),
        (["-r", "project", "-o", "project/out"], "is inside of"),
        (["-r", "project", "-o", "."], "exists. Fix:"),
        (["-r", "project", "-l", "other.py"], "-l other.py: there is no such file"),
        (["-r", "project", "-e", "other"], "-e other: there is no such file"),
    ],
)
def test_wrong_requests_are_refused(project, monkeypatch, capsys, arguments, text):
    monkeypatch.chdir(project.parent)
    assert converter.main(arguments) == 2
    assert text in capsys.readouterr().err
