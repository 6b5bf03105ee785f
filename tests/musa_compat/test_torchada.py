# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`import torchada`, and the checks by which serving programs that import it find that they run on musa."""

from __future__ import annotations

import ast
import importlib.metadata
import subprocess
from pathlib import Path

import pytest

from musa_compat import musa_extension
from tests.harness.subprocesses import run_python

pytestmark = [pytest.mark.once, pytest.mark.slow]

# Run in one process, because torchada changes torch for the whole process. Each function makes the calls of
# the program that it is named after.
CHECKS = """
import os
import torchada
import torch


def sglang():
    try:
        import torchada
    except ImportError:
        return False
    return hasattr(torch.version, "musa") and torch.version.musa is not None


def vllm_musa():
    if torchada.is_musa_platform():
        return True
    try:
        import torch_musa
    except ImportError:
        return False
    return True


def vllm_omni():
    return torchada.is_musa_platform()


def xinference():
    try:
        import torch_musa
        import torchada
    except ImportError:
        return False
    module = torch.get_device_module(torch.device(torch.musa.current_device()))
    return torch.musa.is_available() and module.device_count() == torch.musa.device_count()


def lightx2v():
    try:
        import torchada
    except ImportError:
        return False
    return hasattr(torch, "musa") and torch.musa.is_available()


def ms_swift():
    # A program for CUDA alone: it takes "cuda" if torch.cuda is available, which torchada reports on request.
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    return torch.empty(1, device=device).is_musa


answers = {}
for check in (sglang, vllm_musa, vllm_omni, xinference, lightx2v, ms_swift):
    answers[check.__name__] = "musa" if check() else "other"
x = torch.arange(6.0).reshape(2, 3).cuda()
answers["product"] = (x @ x.T).cpu().tolist()
answers["device"] = str(x.device)
answers["accelerator"] = torch.accelerator.memory_allocated() == torch.musa.memory_allocated() > 0
# torch's compiler calls functions of torch.cuda, which is torch.musa here.
if os.environ["COMPILES"] == "1":
    compiled = torch.compile(lambda x: torch.empty(2, device=x.device).fill_(1.0) + x, backend="eager")
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    # Inductor reads properties of torch.cuda's device for the key of its cache.
    assert torch.compile(lambda x: x.sin() + 1)(torch.zeros(2, device="cuda")).tolist() == [1.0, 1.0]
# isfinite, torchada's or torch's, does not wait for the work before it.
torch.isfinite(x.sin())
answers["queued"] = not torch.cuda.current_stream().query()
# Workarounds for older releases of the vendor's package are off: docs/design/compat.md.
answers["log_"] = torchada._patch._original_tensor_log_ is None
answers["mm"] = torchada._patch._original_torch_mm is None
print(answers)
"""
PROGRAMS = ("sglang", "vllm_musa", "vllm_omni", "xinference", "lightx2v", "ms_swift")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = run_python("-c", code, timeout=580, **environment)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"TORCH_MUSA_AS_CUDA": "1"},
        {"TORCH_MUSA_DISABLE_PACKS": "compat"},
    ],
    ids=["compat", "as-cuda", "without-compat"],
)
def test_the_platform_checks_of_serving_programs_answer_musa(settings: dict[str, str]) -> None:
    # Without a compiler torchada does not build its operators, which takes minutes; it says so, and
    # continues.
    # torchada's torch.cuda reads torch.musa.core, of musa-compat, while torch compiles.
    compiles = str(int("TORCH_MUSA_DISABLE_PACKS" not in settings))
    common = {"PYTORCH_MCC": "/nonexistent", "TORCHADA_FORCE_CUDA_AVAILABLE": "1", "COMPILES": compiles}
    # Nothing runs before something waits, and operators have the order of a GPU: host kernels wait.
    common |= {"MUSA_EMULATOR_MODE": "lazy", "TORCH_MUSA_OPS": "mudnn,ported,host"}
    done = run(CHECKS, **common, **settings)
    answers = ast.literal_eval(done.stdout)
    assert {name: answers[name] for name in PROGRAMS} == dict.fromkeys(PROGRAMS, "musa")
    assert answers["product"] == [[5.0, 14.0], [14.0, 50.0]]
    assert answers["device"] in ("musa:0", "cuda:0")
    assert answers["accelerator"] and answers["log_"] and answers["mm"] and answers["queued"]
    assert "is deprecated" not in done.stderr


def test_the_version_is_the_one_of_the_design_page() -> None:
    page = Path(__file__).parents[2] / "docs" / "design" / "compat.md"
    assert f"torchada {importlib.metadata.version('torchada')}" in page.read_text()


PORTED = """
import os, pathlib, torchada
from torch.utils.cpp_extension import BuildExtension, CUDA_HOME
from setuptools.dist import Distribution
import torchada.utils.cpp_extension as extension
built = extension.CUDAExtension("one", ["kernels/one.cu"], extra_compile_args={"nvcc": ["-O2"]})
command = BuildExtension(Distribution({"ext_modules": [built]}))
command.ensure_finalized()
command._port_directory("kernels")
print(pathlib.Path("kernels/one.cu").read_text(), pathlib.Path("kernels/build.py").read_text())
print(built.extra_compile_args, [type(path) for path in extension.include_paths("cuda")[:1]])
"""


def test_the_builder_ports_sources_in_place_through_torchada(tmp_path: Path) -> None:
    """torchada replaces methods and rules of SimplePorting, and ports in place."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "one.cu").write_text("#include <cuda_runtime.h>\ncudaStream_t stream;\n")
    (tmp_path / "kernels" / "build.py").write_text("cuda = 1\n")
    done = run(f"import os; os.chdir({str(tmp_path)!r})\n{PORTED}", PYTORCH_MCC="/nonexistent")
    assert "#include <musa_runtime.h>\nmusaStream_t stream;\n" in done.stdout
    assert "cuda = 1\n" in done.stdout and "'mcc': ['-O2']" in done.stdout


OPERATORS = """
import torchada, torch
from torchada import _cpp_ops
module = _cpp_ops.get_module()
pool = (7, 0)
module._cuda_beginAllocateCurrentThreadToPool(0, pool)
inside = torch.empty(1000, device="musa")
module._cuda_endAllocateToPool(0, pool)
module._cuda_releasePool(0, pool)
query, key = torch.randn(2, 4, 2, 8, device="musa").unbind()
cache = torch.randn(16, 8, device="musa")
before = query.clone()
torchada.apply_rope_inplace(query, key, cache, torch.arange(4, device="musa"), is_neox=True)
torch.musa.synchronize()
print(_cpp_ops.is_loaded(), not torch.equal(before, query))
"""


@pytest.mark.full  # three files with all of torch's headers take two minutes to compile
def test_operators_of_torchada_build_and_run(tmp_path: Path) -> None:
    done = run(OPERATORS, TORCH_EXTENSIONS_DIR=str(tmp_path), MTGPU_TARGET="mp_31")
    assert done.stdout == "True True\n" and "Failed to load" not in done.stderr


def test_the_lock_of_a_killed_build_does_not_stop_the_import(tmp_path: Path) -> None:
    lock = tmp_path / "torchada_cpp_ops" / "lock"
    lock.parent.mkdir()
    lock.touch()
    done = run("import torchada", TORCH_EXTENSIONS_DIR=str(tmp_path), PYTORCH_MCC="/nonexistent")
    assert "removed stale JIT build lock" in done.stderr and not lock.exists()


def test_names_of_the_builder_exist_that_torchada_replaces() -> None:
    from torch_musa.utils import simple_porting

    assert musa_extension._is_musa_file("a.mu") and not musa_extension._is_musa_file("a.cu")
    simple_porting.LOGGER.setLevel(simple_porting.LOGGER.level)
    assert callable(simple_porting.SimplePorting.load_replaced_mapping)
    assert callable(simple_porting.SimplePorting.modify_file)
