# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each code block of the vendor's public documents has a program of ours with the same calls, or a reason."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import yaml

from tests.harness.subprocesses import run_forked, run_python

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("vendor_documents")
PROGRAMS = sorted(path.stem for path in (FOLDER / "programs").glob("*.py"))
ENVIRONMENT = {"fully_sharded": {"TORCH_MUSA_FSDP2_COMM_TYPE": "1", "TORCH_MUSA_FSDP2_OVERLAP_LEVEL": "2"}}


def blocks() -> list[dict]:
    pages = yaml.safe_load((FOLDER / "blocks.yaml").read_text())
    return [{"count": 1, "document": page["document"], **block} for page in pages for block in page["blocks"]]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs(name, tmp_path, monkeypatch):
    path = FOLDER / "programs" / f"{name}.py"
    monkeypatch.chdir(tmp_path)
    if name == "distributed":  # starts processes that import the main module
        done = run_python("-W", "ignore", str(path))
    else:
        code = (
            f"import os, runpy, sys, warnings\nwarnings.simplefilter('ignore')\nos.chdir({str(tmp_path)!r})\n"
            f"sys.path.insert(1, {str(ROOT)!r})\nsys.argv = [{str(path)!r}]\n"
            f"runpy.run_path({str(path)!r}, run_name='__main__')\n"
        )
        done = run_forked(code, **ENVIRONMENT.get(name, {}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done"


def test_each_block_has_a_program_a_test_or_a_reason(capsys):
    found = blocks()
    counts = {
        kind: sum(block["count"] for block in found if kind in block)
        for kind in ("program", "test", "refused", "none")
    }
    with capsys.disabled():
        print(f"\ncode blocks: {sum(block['count'] for block in found)}, of these {counts}")
    for block in found:
        assert len({"program", "test", "none"} & set(block)) == 1, block
        assert "program" not in block or block["program"] in PROGRAMS, block
        assert "test" not in block or (ROOT / block["test"]).exists(), block
        assert "none" not in block or ("refused" not in block and len(block["none"].split()) > 3), block
    assert {block["program"] for block in found if "program" in block} == set(PROGRAMS)


@pytest.mark.parametrize("value", ["1", "on", "true", "ON"])
def test_double_cast_is_refused_with_a_warning(value, monkeypatch):
    from musa_compat import plugin

    monkeypatch.setenv("TORCH_USE_MUSA_DOUBLE_CAST", value)
    with pytest.warns(
        UserWarning, match=r"has no effect: float64 tensors are computed in float64.*Fix: unset"
    ):
        plugin.musa_register(None)
    monkeypatch.setenv("TORCH_USE_MUSA_DOUBLE_CAST", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plugin.musa_register(None)


def test_double_cast_keeps_double_precision():
    code = "import torch\nx = torch.ones(1, dtype=torch.double, device='musa') + 1e-12\nprint(x.item() > 1)"
    done = run_forked(code, TORCH_USE_MUSA_DOUBLE_CAST="1")
    assert done.stdout == "True\n" and "TORCH_USE_MUSA_DOUBLE_CAST has no effect" in done.stderr
