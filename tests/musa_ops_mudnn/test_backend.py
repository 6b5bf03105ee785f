# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""torch.backends.mudnn exists after `import torch`, has torch.backends.cudnn's names and takes effect."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.harness.subprocesses import run_code


@pytest.fixture
def mudnn(musa):
    module = torch.backends.mudnn
    before = module.set_flags()
    yield module
    module.set_flags(*before)


@pytest.fixture(autouse=True)
def _settings_may_be_made() -> Iterator[None]:
    # torch's operator databases, once imported, allow settings only within flags().
    with torch.backends.__allow_nonbracketed_mutation():
        yield


@pytest.mark.once
def test_it_exists_before_the_device_is_used_and_loads_nothing():
    code = """
    import sys, torch
    import torch.backends.mudnn
    from torch.backends import mudnn
    assert mudnn is torch.backends.mudnn and mudnn.is_available() is True
    assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (True, False, False)
    maps = open("/proc/self/maps").read()
    print("libmusa_ops_mudnn" in maps, "libmudnn" in maps)
    print(torch.musa.is_initialized(), "pluggy" in sys.modules)
    """
    assert run_code(code).split() == ["False"] * 4


@pytest.mark.once
def test_a_setting_made_before_the_first_use_holds_from_then_on():
    code = """
    import torch
    torch.backends.mudnn.enabled = False
    torch.backends.mudnn.allow_tf32 = True
    x = torch.ones(2, device="musa").cos()
    mudnn = torch.backends.mudnn
    print(mudnn.enabled, mudnn.allow_tf32, mudnn.deterministic)
    told = torch.musa.ops.explain("aten::cos")
    print({row["provider"]: row["calls"] for row in told["candidates"]}["mudnn"])
    """
    assert run_code(code) == "False True False\n0\n"


@pytest.mark.once
@pytest.mark.parametrize(
    "variables", [{"MUSA_HOME": "/nonexistent/musa"}, {"TORCH_MUSA_DISABLE_PACKS": "mudnn"}]
)
def test_without_mudnn_it_is_unavailable_and_its_settings_still_work(variables):
    code = """
    import torch
    if torch.musa.is_available():
        torch.ones(2, device="musa")
    assert torch.backends.mudnn.version() is None
    torch.backends.mudnn.allow_tf32 = True
    with torch.backends.mudnn.flags(enabled=True):
        pass
    print(torch.backends.mudnn.is_available(), torch.backends.mudnn.allow_tf32)
    """
    assert run_code(code, **variables) == "False True\n"


@pytest.mark.once
def test_without_autoload_it_comes_with_the_device():
    code = """
    import torch
    assert not hasattr(torch.backends, "mudnn")
    import torch_musa
    torch.musa.init()
    print(torch.backends.mudnn.enabled)
    """
    assert run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "True\n"


@pytest.mark.once
def test_an_existing_module_of_that_name_is_kept():
    code = """
    import torch, types
    torch.backends.mudnn = mine = types.ModuleType("mine")
    import torch_musa
    torch.musa.init()
    print(torch.backends.mudnn is mine)
    """
    assert run_code(code, TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "True\n"


def test_the_version_is_that_of_the_library(mudnn):
    from musa_ops_mudnn import _library

    assert mudnn.version() == _library.library().musa_ops_mudnn_version() >= 3000


def test_disabled_muDNN_serves_nothing(mudnn, served_by_mudnn):
    x = torch.randn(8)
    device = x.to("musa")
    for enabled in (True, False, True):
        mudnn.enabled = enabled
        result, served = served_by_mudnn("aten::cos", lambda: torch.cos(device))
        assert served is enabled
        torch.testing.assert_close(result.cpu(), torch.cos(x))


def test_flags_hold_within_the_block_and_are_restored_after_an_error(mudnn):
    mudnn.allow_tf32 = True
    with pytest.raises(ZeroDivisionError), mudnn.flags(enabled=False, deterministic=True, allow_tf32=False):
        assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (False, True, False)
        with mudnn.flags(enabled=True):
            # Settings that are not passed keep their values, unlike those of torch.backends.cudnn.flags.
            assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (True, True, False)
        assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (False, True, False)
        _ = 1 / 0
    assert (mudnn.enabled, mudnn.deterministic, mudnn.allow_tf32) == (True, False, True)


def test_the_names_are_those_of_cudnn():
    import inspect

    mudnn, cudnn = torch.backends.mudnn, torch.backends.cudnn
    for name in ("version", "is_available", "set_flags", "flags", "enabled", "deterministic", "allow_tf32"):
        assert hasattr(mudnn, name) and hasattr(cudnn, name) and name in dir(mudnn)
    for name in ("flags", "set_flags"):
        ours, theirs = (inspect.signature(getattr(module, name)).parameters for module in (mudnn, cudnn))
        assert set(ours) <= set(theirs)
        assert {value.default for value in ours.values()} == {None}


def test_set_flags_returns_the_previous_settings(mudnn):
    before = mudnn.set_flags(_allow_tf32=False, _enabled=True, _benchmark=False, _deterministic=False)
    assert mudnn.set_flags(_deterministic=True) == (False, True, False, False)
    assert mudnn.set_flags(_enabled=False, _allow_tf32=True) == (False, True, False, True)
    assert mudnn.set_flags(*before) == (True, False, False, True)
    assert mudnn.set_flags() == before


def test_the_first_positional_argument_is_the_vendors(mudnn):
    mudnn.set_flags(True)
    assert mudnn.allow_tf32 and mudnn.enabled
    with mudnn.flags(False):
        assert not mudnn.allow_tf32 and mudnn.enabled
    mudnn.set_flags(False)
    assert not mudnn.allow_tf32 and mudnn.enabled


def test_flags_that_allow_tf32_keep_muDNN_enabled(mudnn, served_by_mudnn):
    x = torch.ones(4, device="musa")
    with mudnn.flags(allow_tf32=True):
        assert served_by_mudnn("aten::cos", lambda: torch.cos(x))[1]


def test_benchmark_can_be_read_and_set(mudnn):
    assert mudnn.benchmark is False
    mudnn.benchmark = True
    with mudnn.flags(enabled=True, benchmark=False):
        assert mudnn.benchmark is False
    assert mudnn.benchmark is True
    with pytest.raises(TypeError, match=r"mudnn\.benchmark must be a bool"):
        mudnn.benchmark = 1


def test_a_setting_that_is_not_a_bool_is_refused(mudnn):
    with pytest.raises(TypeError, match=r"torch\.backends\.mudnn\.enabled must be a bool, but got int"):
        mudnn.enabled = 1
    assert mudnn.enabled is True


def test_tf32_rounds_only_where_it_is_allowed(mudnn):
    a, b = torch.randn(64, 64), torch.randn(64, 64)
    exact = a.double() @ b.double()
    x, y = a.to("musa"), b.to("musa")
    mudnn.allow_tf32 = False
    torch.testing.assert_close((x @ y).cpu().double(), exact, rtol=1e-5, atol=1e-4)
    mudnn.allow_tf32 = True
    # TF32 has 10 bits of mantissa: each of the 64 summed products has a relative error of up to 2^-10.
    torch.testing.assert_close((x @ y).cpu().double(), exact, rtol=0, atol=0.2)


# A library that prints the argument of each call of Handle::SetAllowTF32, and calls muDNN's function.
WATCHED = """
#include <cstdio>
#include <dlfcn.h>
extern "C" int watched(void* handle, bool allow) __asm__("_ZN4musa3dnn6Handle12SetAllowTF32Eb");
extern "C" int watched(void* handle, bool allow) {
  static void* const found = dlsym(RTLD_NEXT, "_ZN4musa3dnn6Handle12SetAllowTF32Eb");
  static const auto next = reinterpret_cast<int (*)(void*, bool)>(found);
  std::printf("handle %d\\n", allow);
  std::fflush(stdout);
  return next ? next(handle, allow) : 0;
}
"""


@pytest.fixture(scope="module")
def watched_handle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A preloaded library that prints each call of Handle::SetAllowTF32."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "watched.cpp").write_text(WATCHED)
    command = ["c++", "-shared", "-fPIC", "watched.cpp", "-o", "libwatched.so", "-ldl"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "libwatched.so"


@pytest.mark.once
@pytest.mark.parametrize(
    "setting",
    [
        "torch.backends.musa.matmul.allow_tf32 = {}",
        pytest.param(
            "torch.set_float32_matmul_precision('high' if {} else 'highest')", marks=pytest.mark.full
        ),
        pytest.param(
            "torch.backends.cuda.matmul.fp32_precision = 'tf32' if {} else 'ieee'", marks=pytest.mark.full
        ),
    ],
)
def test_products_follow_torchs_setting_and_convolutions_do_not(setting, watched_handle):
    code = f"""
    import torch
    x = torch.ones(8, 8, device="musa")
    image, weight = torch.ones(1, 1, 8, 8, device="musa"), torch.ones(1, 1, 3, 3, device="musa")
    for product in (lambda: x @ x, lambda: torch.dot(x[0], x[0]), lambda: torch.bmm(x[None], x[None])):
        {setting.format(True)}
        product()
        torch.nn.functional.conv2d(image, weight)
        product()
        {setting.format(False)}
        product()
    """
    printed = run_code(code, fresh=True, LD_PRELOAD=str(watched_handle))
    # One line for the first call, which fills x, and one for each change.
    assert printed.splitlines() == [f"handle {allowed}" for allowed in (0, *[1, 0, 1, 0] * 3)]


@pytest.mark.once
@pytest.mark.parametrize(
    "setting",
    [
        "torch.backends.fp32_precision",
        pytest.param("torch.backends.cudnn.fp32_precision", marks=pytest.mark.full),
    ],
)
def test_convolutions_follow_the_precision_of_all_operations(setting, watched_handle):
    code = f"""
    import torch
    image = torch.ones(1, 1, 8, 8, device="musa", requires_grad=True)
    weight = torch.ones(1, 1, 3, 3, device="musa", requires_grad=True)
    for precision in ("tf32", "ieee", "tf32", "none"):
        {setting} = precision
        torch.nn.functional.conv2d(image, weight).sum().backward()
    {setting} = "ieee"
    with torch.backends.mudnn.flags(allow_tf32=True):
        torch.nn.functional.conv2d(image, weight)
    """
    printed = run_code(code, fresh=True, LD_PRELOAD=str(watched_handle)).splitlines()
    # Other operators, such as the sum, reset the handle.
    assert printed[0] == "handle 0" and printed[-1] == "handle 1"
    assert printed.count("handle 1") > 2
    silent = run_code(code.replace('"tf32"', '"ieee"'), fresh=True, LD_PRELOAD=str(watched_handle))
    assert silent.splitlines() == ["handle 0", "handle 1"]


@pytest.mark.once
def test_frozen_settings_are_refused_outside_of_flags(musa):
    code = """
    import torch
    torch.backends.disable_global_flags()
    with torch.backends.mudnn.flags(enabled=False):
        assert torch.backends.mudnn.enabled is False
    try:
        torch.backends.mudnn.enabled = False
    except RuntimeError as error:
        print("flags() context manager" in str(error), torch.backends.mudnn.enabled)
    """
    assert run_code(code) == "True True\n"
