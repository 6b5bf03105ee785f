# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""With the switch off, torch is as without the wheel; on, only the table's names differ; off again, none."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import pytest
import torch

import musa_as_cuda
from musa_as_cuda import replacements
from musa_as_cuda.mode import is_active
from tests.harness.subprocesses import run_code, run_forked, run_module, run_python
from tests.torch_musa.test_no_monkeypatch import changes, refused

pytestmark = pytest.mark.once

OFF = "import torch_musa; from importlib import metadata; metadata.version('musa-as-cuda')"
ON_AND_OFF = """
import torch_musa, torch, musa_as_cuda
with musa_as_cuda.enabled():
    torch.nn.Linear(2, 2).cuda()(torch.ones(1, 2, device="cuda")).sum().backward()
"""


def test_with_the_wheel_installed_and_the_switch_off_torch_is_as_it_was():
    assert refused(changes(OFF)) == {"replaced": [], "added": []}


def test_after_the_block_torch_is_as_it_was():
    assert refused(changes(ON_AND_OFF)) == {"replaced": [], "added": []}


CLASSES = (
    torch.Tensor,
    torch._C.TensorBase,
    torch.nn.Module,
    torch.amp.autocast_mode.autocast,
    torch.autograd.graph.saved_tensors_hooks,
    torch.storage._StorageBase,
    torch.profiler.profiler._KinetoProfile,
    torch.autograd.profiler.profile,
)


def attributes() -> dict[str, object]:
    """The attributes of all modules of torch except torch.musa, and of the classes that programs use most."""
    modules = {
        name: module
        for name, module in sys.modules.items()
        if name.partition(".")[0] == "torch" and name.split(".")[1:2] != ["musa"]
    }
    modules["torch.backends.cudnn"] = torch.backends.cudnn.m  # behind an object that forwards to it
    classes = {f"{kind.__module__}.{kind.__name__}": kind for kind in CLASSES}
    return {
        f"{owner}.{name}": value
        for owner, holder in {**modules, **classes}.items()
        for name, value in list(vars(holder).items())
    }


def differing(before: dict[str, object]) -> set[str]:
    after = attributes()
    return {path for path in before.keys() | after.keys() if before.get(path) is not after.get(path)}


def test_with_the_switch_on_the_table_is_replaced_and_nothing_else():
    torch.ones(1, device="musa")  # modules are imported at the first use of the device
    before = attributes()
    with musa_as_cuda.enabled():
        changed = differing(before)
    expected = set()
    for owner, name, _ in replacements.planned():
        prefix = f"{owner.__module__}." if isinstance(owner, type) else ""
        expected.add(f"{prefix}{owner.__name__}.{name}")
    assert changed == expected and differing(before) == set()
    assert {"torch.cuda.is_available", "torch.cuda.memory.memory_allocated", "torch.Generator"} <= changed


def test_a_replacement_outside_of_the_table_is_noticed(monkeypatch):
    before = attributes()
    monkeypatch.setattr(torch.nn.Module, "cuda", print)
    assert differing(before) == {"torch.nn.modules.module.Module.cuda"}


def test_every_name_of_the_table_exists_in_this_torch():
    importlib.import_module(replacements.LATE_MODULE)
    missing = []
    for group in replacements.TABLE:
        owner = replacements._resolve(group.owner)
        missing += [f"{group.owner}.{name}" for name in group.names if not hasattr(owner, name)]
    assert missing == []


def test_off_means_that_nothing_but_the_hook_is_imported():
    code = "import sys, torch\nprint(sorted(name for name in sys.modules if name.startswith('musa_as_cuda')))"
    done = run_python("-c", code)
    assert done.stdout == "['musa_as_cuda', 'musa_as_cuda.startup']\n", done.stderr


def test_without_the_switch_cuda_is_refused_as_before():
    assert not musa_as_cuda.is_enabled() and not torch.cuda.is_available()
    with pytest.raises((AssertionError, RuntimeError)):
        torch.ones(1, device="cuda")


def test_blocks_may_be_nested():
    with musa_as_cuda.enabled():
        with musa_as_cuda.enabled():
            assert torch.ones(1, device="cuda").is_cuda
        assert torch.ones(1, device="cuda").is_cuda and musa_as_cuda.is_enabled()
    assert not musa_as_cuda.is_enabled() and not torch.cuda.is_available()
    with pytest.raises(musa_as_cuda.AsCudaError, match="the switch is off"):
        musa_as_cuda.disable()


class _Subclass(threading.Thread):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def run(self):
        self.function()


def _joined(thread):
    thread.start()
    thread.join()


def _in_an_executor(function):
    with ThreadPoolExecutor(1) as executor:
        executor.submit(function).result()


def _in_a_pool(function):
    with ThreadPool(1) as pool:
        pool.apply(function)


# Ways in which programs start a thread that calls a function.
THREADS = {
    "Thread": lambda function: _joined(threading.Thread(target=function)),
    "subclass": lambda function: _joined(_Subclass(function)),
    "Timer": lambda function: _joined(threading.Timer(0, function)),
    "executor": _in_an_executor,
    "pool": _in_a_pool,
    "thread of a thread": lambda function: _joined(
        threading.Thread(target=lambda: _joined(threading.Thread(target=function)))
    ),
}


@pytest.mark.parametrize("start", THREADS)
def test_threads_translate_only_if_they_start_while_the_switch_is_on(start):
    def translates():
        def call():
            try:
                made = torch.ones(1, device="cuda")
            except (AssertionError, RuntimeError):  # torch has no CUDA
                seen.append((is_active(), False))
            else:
                seen.append((is_active(), made.is_musa))

        seen = []
        THREADS[start](call)
        [(active, on_musa)] = seen
        assert active == on_musa
        return on_musa

    assert not translates()
    for _ in range(2):  # turned on again, after it was off
        with musa_as_cuda.enabled():
            assert translates()
            with musa_as_cuda.enabled():
                assert translates()
            assert translates()
        assert not translates()


@pytest.mark.parametrize("own", [None, lambda *event: None], ids=["no profiler", "a profiler"])
def test_new_threads_have_the_profiler_of_the_program_again(own):
    before = threading.getprofile()
    threading.setprofile(own)
    try:
        with musa_as_cuda.enabled():
            assert threading.getprofile() is not own
        assert threading.getprofile() is own
        with pytest.raises(ValueError, match="of the program"), musa_as_cuda.enabled():
            raise ValueError("of the program")
        assert threading.getprofile() is own
    finally:
        threading.setprofile(before)


def test_an_exception_leaves_the_block_and_the_switch():
    with pytest.raises(ValueError, match="of the program"), musa_as_cuda.enabled():
        raise ValueError("of the program")
    assert not torch.cuda.is_available()


def test_turning_it_off_inside_of_another_mode_is_refused():
    musa_as_cuda.enable()
    with torch.device("cpu"), pytest.raises(musa_as_cuda.AsCudaError, match="Fix: call disable"):
        musa_as_cuda.disable()
    musa_as_cuda.disable()
    assert not torch.cuda.is_available()


def test_a_failure_while_replacing_puts_back_what_was_replaced(monkeypatch):
    def fails(name, original):
        raise RuntimeError("not made")

    bad = replacements.Group("torch.cuda.nvtx", ("mark",), fails, "a test")
    monkeypatch.setattr(replacements, "TABLE", (*replacements.TABLE[:2], bad))
    with pytest.raises(RuntimeError, match="not made"):
        musa_as_cuda.enable()
    assert not torch.cuda.is_available() and not musa_as_cuda.is_enabled()


SEES = "import torch; print(torch.ones(2, device='cuda'), torch.cuda.is_available())"
SEEN = "tensor([1., 1.], device='cuda:0') True\n"


def test_the_variable_turns_it_on():
    done = run_python("-c", SEES, TORCH_MUSA_AS_CUDA="1")
    assert done.stdout == SEEN, done.stderr


def test_the_import_turns_it_on():
    assert run_code(f"import torch_musa.as_cuda\n{SEES}") == SEEN


def test_another_value_of_the_variable_is_warned_of_and_the_pack_fails():
    done = run_python("-c", "import torch; print(torch.cuda.is_available())", TORCH_MUSA_AS_CUDA="yes")
    assert done.returncode == 0 and done.stdout == "False\n"
    assert "TORCH_MUSA_AS_CUDA='yes' is invalid; expected 0 or 1" in done.stderr and "Fix: " in done.stderr
    rows = json.loads(run_module("torch_musa", "packs", "--json", TORCH_MUSA_AS_CUDA="yes").stdout)
    assert [row["status"] for row in rows if row["name"] == "as_cuda"] == ["failed"]


PROGRAM = """
import sys, torch
from torch import multiprocessing


def child(rank):
    print("child", torch.ones(1, device="cuda").is_cuda, flush=True)


if __name__ == "__main__":
    print(sys.argv[1:], torch.ones(1, device="cuda").device, flush=True)
    multiprocessing.spawn(child, nprocs=1)
    sys.exit(3)
"""


def test_a_program_runs_with_its_child_processes(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_python("-m", "torch_musa", "run", "--as-cuda", str(tmp_path / "program.py"), "--x", "1")
    assert done.returncode == 3, done.stderr
    assert done.stdout == "['--x', '1'] cuda:0\nchild True\n"


def test_the_environment_report_says_whether_it_is_on():
    def rows(done):
        return [value for key, value in json.loads(done.stdout).items() if "device cuda is musa" in key]

    assert rows(run_module("torch_musa", "env", "--json")) == ["no"]
    assert rows(run_python("-m", "torch_musa", "env", "--json", TORCH_MUSA_AS_CUDA="1")) == ["yes"]


BESIDE = """
import torch
torch.version.cuda, torch.cuda.is_available, torch.cuda.device_count = "13.0", lambda: True, lambda: 2
import musa_as_cuda
try:
    import torch_musa.as_cuda
except musa_as_cuda.AsCudaError as error:
    print(error)
print(musa_as_cuda.is_enabled())
with musa_as_cuda.enabled(over_cuda=True):
    print(torch.ones(1, device="cuda").is_musa)
"""


def test_with_available_cuda_devices_it_is_refused():
    printed = run_code(BESIDE)
    assert "this torch is built for CUDA or ROCm (13.0) and sees 2 device(s)" in printed
    assert "Fix: unset TORCH_MUSA_AS_CUDA" in printed
    assert printed.splitlines()[-2:] == ["False", "True"]


def test_a_disabled_pack_has_no_switch():
    done = run_forked(SEES, TORCH_MUSA_AS_CUDA="1", TORCH_MUSA_DISABLE_PACKS="as_cuda")
    # A CUDA build of torch says that there is no driver.
    assert done.returncode != 0 and ("CUDA" in done.stderr or "NVIDIA" in done.stderr), done.stderr
