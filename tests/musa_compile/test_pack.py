# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack by itself: it costs nothing until a program compiles, the doctor checks its requirements, and
memory that the host cannot address is an error with a cure. Kernels wait for pending work, run on their own
device and appear in profiles.
"""

from __future__ import annotations

import ctypes
import json

import pytest
import torch

from tests.harness.device import host_can_address_device_memory
from tests.harness.subprocesses import run_code, run_module
from tests.musa_compile.comparison import ONE_THREAD, assert_same, scaled

pytestmark = pytest.mark.once

IMPORTED = """
import sys
import torch
torch.ones(2, device="musa")
compiler = ("torch._dynamo", "torch._inductor", "musa_compile")
print(sorted(name for name in sys.modules if name.startswith(compiler)))
"""
REGISTERED = """
import torch
import torch._dynamo.device_interface
from torch._dynamo.device_interface import get_interface_for_device
print(get_interface_for_device("musa").__module__, get_interface_for_device("musa:1").__module__)
import sys
print("musa_compile.generators" in sys.modules)
import torch._inductor.compile_fx
from torch._inductor.codegen.common import get_scheduling_for_device
print(get_scheduling_for_device("musa").__module__)
"""


def test_importing_torch_imports_no_compiler():
    before = set(eval(run_code(IMPORTED, TORCH_MUSA_DISABLE_PACKS="compile")))
    added = set(eval(run_code(IMPORTED))) - before
    assert added <= {"musa_compile", "musa_compile.registration", "musa_compile.plugin"}
    assert "musa_compile.registration" in added | before


FORKED = """
import os
import torch
import torch._dynamo
import torch._inductor.compile_fx
import torch.distributed.fsdp
import torch.export.pt2_archive._package
print(torch.musa.is_initialized(), flush=True)
if os.fork() == 0:
    print((torch.ones(2, device="musa") + 1).tolist(), flush=True)
    os._exit(0)
os.wait()
"""


def test_a_program_may_fork_after_it_has_imported_the_compiler():
    """Launchers of ranks fork like this. If the import initialised the device, the ranks could not use it."""
    assert run_code(FORKED).splitlines() == ["False", "[2.0, 2.0]"]


def test_the_compiler_finds_the_device_when_it_is_imported():
    assert run_code(REGISTERED).splitlines() == [
        "musa_compile.device_interface musa_compile.device_interface",
        "False",
        "musa_compile.host_kernels",
    ]


def checks(**environment) -> list[dict]:
    """The doctor's reports on the compiler, on Triton and on the cache."""
    done = run_module("torch_musa", "doctor", "--json", **environment)
    return [row for row in json.loads(done.stdout) if row["title"].startswith("compile: ")]


def test_the_doctor_names_the_compiler_and_the_cache(cache_folder):
    from musa_compile import choice, plugin

    checks = dict(plugin.musa_doctor_checks())
    compiler, cache = (checks[f"{of} of torch.compile"]() for of in ("compiler", "cache"))
    assert "g++" in compiler or "clang" in compiler
    generator = "C++" if host_can_address_device_memory() else choice.generator()
    assert compiler.endswith(f"kernels by {generator}")
    assert cache == cache_folder


def test_the_doctor_names_no_generator_without_a_device(cache_folder):
    compiler, triton, _ = checks(MUSA_EMULATOR_DEVICES="0")
    for row in (compiler, triton):
        assert row["status"] == "ok" and "none is visible" in row["detail"], row
        assert "kernels" not in row["detail"], row


def test_the_doctor_reports_a_missing_compiler(cache_folder):
    compiler, _, cache = checks(CXX="/nowhere/g++")
    assert (compiler["status"], cache["status"]) == ("warn", "ok")
    assert "CXX" in compiler["causes"] and "g++" in compiler["command"], compiler


def test_the_doctor_reports_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    folder = f"{tmp_path}/file/cache"  # not even root can make a folder in a file
    compiler, _, cache = checks(TORCHINDUCTOR_CACHE_DIR=folder)
    for row in (compiler, cache):
        assert row["status"] == "warn" and folder in row["detail"] + row["causes"], row
        assert "TORCHINDUCTOR_CACHE_DIR=" in row["command"], row


STRICT = """
def f(x):
    return (x * 2 + 1).relu().sum(-1)
x = torch.randn(4, 4, device="musa", requires_grad=True)
try:
    torch.compile(f)(x)
except Exception as error:
    print(error)
torch._dynamo.reset()
y = torch.compile(f, backend="aot_eager", fullgraph=True)(x)
y.sum().backward()
print(torch.equal(y.cpu(), f(x.detach()).cpu()), torch.equal(x.grad.cpu(), 2.0 * (x.detach() > -0.5).cpu()))
"""


def test_memory_that_the_host_cannot_address_is_refused_with_a_cure(cache_folder):
    output = run_code(ONE_THREAD + STRICT, MUSA_EMULATOR_MEMORY="strict")
    assert 'backend "inductor" cannot generate code for this musa device' in output
    assert 'Fix: torch.compile(..., backend="aot_eager")' in output and "install Triton for MUSA" in output
    assert output.splitlines()[-1] == "True True"


# Work is pending when a compiled kernel starts, and when its results are read.
PENDING = """
from tests.musa_compile.comparison import scaled
compiled = torch.compile(scaled, fullgraph=True)
x = torch.ones(8, device="musa")
for _ in range(3):
    y = x
    for _ in range(20):
        y = y + 1
    result = compiled(y) + 1
    print(result.tolist() == [44.0] * 8)
side = torch.musa.Stream()
with torch.musa.stream(side):
    y = torch.full((8,), 5.0, device="musa")
    result = compiled(y)
side.synchronize()
print(result.tolist() == [11.0] * 8)
"""


# A kernel that does not wait always fails in lazy mode, and sometimes in async mode.
@pytest.mark.parametrize("mode", ["lazy", pytest.param("async", marks=pytest.mark.full)])
def test_kernels_wait_for_pending_work(cache_folder, mode):
    assert run_code(ONE_THREAD + PENDING, MUSA_EMULATOR_MODE=mode).split() == ["True"] * 4


# Reads a number of a tensor in memory, as a generated kernel does, in both ways in which generated code calls
# one. In lazy mode, work runs only if a thread waits for it, or some of it if a thread polls.
CALLS = """
import ctypes
import itertools
import torch
from musa_compile import _C, installed

library = installed.load_library()

def number(x):
    return ctypes.c_float.from_address(x.data_ptr()).value

def from_python(x):
    return _C.Kernel(number, None, "number", x.device.index)(x)

def from_a_wrapper(x):
    start = ctypes.c_int64()
    arguments = ctypes.c_int32(x.device.index), ctypes.byref(start)
    assert library.aoti_torch_musa_begin_host_kernel(*arguments) == 0
    return number(x)

for index, other_stream, call in itertools.product((0, 1), (False, True), (from_python, from_a_wrapper)):
    device = torch.device("musa", index)
    with torch.musa.stream(torch.musa.Stream(device) if other_stream else None):
        x = torch.zeros(8, device=device)
        torch.musa.synchronize(device)
        for _ in range(20):
            x += 1
        print(number(x), call(x), call(x))
"""


def test_a_kernel_reads_numbers_that_pending_work_writes():
    lines = run_code(CALLS, MUSA_EMULATOR_MODE="lazy", MUSA_EMULATOR_MEMORY="shared").splitlines()
    assert lines == ["0.0 20.0 20.0"] * 8


host_addressable = pytest.mark.host_addressable("Inductor's C++ kernels run on the host")


@pytest.mark.inductor
def test_a_graph_on_another_device_allocates_there(two_devices, compiler):
    x = torch.randn(8, device="musa:1")
    before = two_devices.memory_allocated(0), two_devices.memory_allocated(1)
    result = torch.compile(scaled, fullgraph=True)(x)
    assert result.device == x.device
    assert two_devices.memory_allocated(0) == before[0]
    assert two_devices.memory_allocated(1) > before[1]
    assert_same(result, scaled(x.cpu()))


@host_addressable
def test_kernels_have_names_in_profiles(musa, compiler):
    compiled = torch.compile(scaled, fullgraph=True)
    x = torch.randn(8, device="musa")
    compiled(x)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.PrivateUse1]
    with torch.profiler.profile(activities=activities) as profile:
        compiled(x)
        musa.synchronize()
    names = [event.name for event in profile.events() if event.device_type.name != "CPU"]
    assert len([name for name in names if "::cpp_fused_" in name]) == 1, names


@host_addressable
def test_a_kernel_of_a_device_has_its_name_and_device(musa, compiler):
    from musa_compile import _C

    def function(*arguments):
        return arguments

    kernel = _C.Kernel(function, None, "cpp_fused_example", 0)
    assert (kernel.name, kernel.device) == ("cpp_fused_example", 0)
    assert kernel(1, 2) == (1, 2)


@pytest.mark.parametrize(
    "arguments", [(), ((2,), (1,), torch.float32), ([2], (1,), torch.float32, 0), ((2,), (1,), 6, 0)]
)
def test_wrong_arguments_of_an_allocation_are_a_type_error(musa, arguments):
    from musa_compile.kernels import empty_strided_musa

    with pytest.raises(TypeError, match="empty_strided: expected"):
        empty_strided_musa(*arguments)


def allocation(index):
    from musa_compile.kernels import empty_strided_musa

    return empty_strided_musa((2,), (1,), torch.float32, index)


def kernel_of(index):
    from musa_compile import _C

    return _C.Kernel(print, None, "name", index)


@pytest.mark.parametrize("index", [256, -257, 1 << 30])
@pytest.mark.parametrize("call", [allocation, kernel_of])
def test_an_index_that_would_be_narrowed_to_another_device_is_refused(musa, call, index):
    with pytest.raises(RuntimeError, match=f"Invalid device musa:{index}"):
        call(index)


@pytest.mark.parametrize("index", [256, -257, 1 << 30])
def test_a_compiled_model_cannot_choose_a_narrowed_device(musa, index):
    from musa_compile import installed

    library = installed.load_library()
    chosen, pointer = musa.current_device(), ctypes.c_void_p()
    assert library.aoti_torch_musa_set_device(ctypes.c_int32(index)) != 0
    memory = (ctypes.byref(pointer), ctypes.c_size_t(64), ctypes.c_int32(index))
    assert library.aoti_torch_musa_malloc(*memory) != 0
    assert (pointer.value, musa.current_device()) == (None, chosen)


def test_an_allocation_has_the_requested_size_and_strides(two_devices):
    from musa_compile.kernels import empty_strided_musa

    tensor = empty_strided_musa((2, 3), (1, 2), torch.float16, 1)
    assert (tensor.size(), tensor.stride()) == ((2, 3), (1, 2))
    assert (tensor.dtype, tensor.device) == (torch.float16, torch.device("musa", 1))


def test_products_are_called_below_autograd(musa):
    from musa_compile.kernels import addmm_musa, bmm_musa, mm_musa

    left = torch.randn(2, 3, 4, device="musa", requires_grad=True)
    right = torch.randn(2, 4, 5, device="musa")
    added = torch.randn(5, device="musa")
    out, batched = torch.empty(3, 5, device="musa"), torch.empty(2, 3, 5, device="musa")
    mm_musa(left[0], right[0], out)
    assert_same(out, left[0] @ right[0])
    addmm_musa(added, left[0], right[0], out)
    assert_same(out, added + left[0] @ right[0])
    bmm_musa(left, right, batched)
    assert_same(batched, left @ right)
    assert not out.requires_grad and not batched.requires_grad
    with pytest.raises(RuntimeError, match=r"shape|size"):
        mm_musa(left[0], right[0].t(), out)


@pytest.mark.parametrize("arguments", [(), (1, 2, 3), (None,) * 4])
def test_wrong_arguments_of_a_product_are_a_type_error(musa, arguments):
    from musa_compile.kernels import mm_musa

    with pytest.raises(TypeError, match="expected"):
        mm_musa(*arguments)


@pytest.mark.inductor
def test_generated_code_calls_products_directly(musa, compiler):
    from torch._inductor.utils import run_and_get_code

    def product(x, y, z):
        return (x @ y).relu() + torch.addmm(z, x, y), torch.addmm(z, x, y, alpha=2)

    operands = [torch.randn(size, device="musa") for size in ((3, 4), (4, 5), (5,))]
    results, [code] = run_and_get_code(torch.compile(product, fullgraph=True), *operands)
    for result, expected in zip(results, product(*operands), strict=True):
        assert_same(result, expected)
    assert " mm_musa(" in code and " addmm_musa(" in code
    assert code.count("extern_kernels.addmm(") == 1  # with a factor


# C++ kernels are generated for a number of threads.
THREADS = """
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code
torch.set_num_threads(%d)
x = torch.randn(300, 400, device="musa")
f = torch.compile(lambda x: (x * 11 + 1).exp().sum(-1))
result, [code] = run_and_get_code(f, x)
print(torch.allclose(result, (x * 11 + 1).exp().sum(-1)), counters["inductor"]["fxgraph_cache_hit"])
print(code.count("#pragma omp parallel"))
"""


@pytest.mark.host_addressable("the key is that of C++ kernels")
def test_cached_kernels_are_those_of_the_number_of_threads(cache_folder):
    def hit_and_regions(threads: int) -> tuple[str, str]:
        right, hit, regions = run_code(ONE_THREAD + THREADS % threads).split()
        assert right == "True"
        return hit, regions

    assert hit_and_regions(2) == ("0", "1")
    assert hit_and_regions(1) == ("0", "0")
    assert hit_and_regions(2) == ("1", "1")
