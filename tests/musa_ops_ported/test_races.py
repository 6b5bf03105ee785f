# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack's kernels under the thread sanitizer, which sees each device thread as a separate thread.

With --full only: the pack is built for it in build/racecheck, and conformance takes three times as long.
The operators and reports of each run are recorded.
"""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.harness import records
from tests.musa_emulator.mcc import mcc
from tests.musa_emulator.sdk import tool
from workspace import ROOT
from workspace.packages import Options

pytestmark = [pytest.mark.once, pytest.mark.full, pytest.mark.timeout(2 * 3600)]

BUILD = ROOT / "build" / "racecheck"
THREAD = Options(sanitizer="thread")
WARNING = "WARNING: ThreadSanitizer"
SETTINGS = [
    {"MUSA_EMULATOR_ARCH": "mp_22", "MUSA_EMULATOR_SCHEDULE": "reverse"},
    {"MUSA_EMULATOR_ARCH": "mp_31", "MUSA_EMULATOR_SCHEDULE": "random:1"},
]
TESTS = [
    *("tests/conformance", "tests/musa_ops_ported/test_operators.py", "-m", "not once"),
    # A wrong index triggers a device assertion, after which the process cannot use the device.
    *("-k", "not refused_arguments"),
    # This build rounds differently: a known failure passes here, and LBFGS amplifies the differences.
    *("--deselect", "tests/conformance/test_ops.py::test_gradient_equals_cpu[float32-kron]"),
    *("--deselect", "tests/conformance/test_optimizer_db.py::test_steps_equal_cpu[plain-LBFGS]"),
]


@pytest.fixture(scope="module")
def library() -> Path:
    """The pack's library, built for the sanitizer with line numbers for the kernels."""
    flags = THREAD.sanitizer_flags.replace("-g", "-g1")
    configure = [tool("cmake"), "-S", ROOT / "packages" / "musa-ops-ported", "-B", BUILD, "-G", "Ninja"]
    configure += [
        f"-DCMAKE_MAKE_PROGRAM={tool('ninja')}",
        f"-DCMAKE_PREFIX_PATH={sysconfig.get_path('purelib')}",
    ]
    configure += ["-DCMAKE_BUILD_TYPE=Release", f"-DPython_EXECUTABLE={sys.executable}"]
    configure += [f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_SHARED_LINKER_FLAGS={flags}"]
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    subprocess.run(configure, check=True, env=environment)
    subprocess.run([tool("cmake"), "--build", BUILD], check=True, env=environment)
    return BUILD / "libmusa_ops_ported.so"


def reports(folder: Path) -> list[str]:
    """Returns the sanitizer's reports of all processes of a run."""
    texts = [path.read_text(errors="replace") for path in sorted(folder.glob("report.*"))]
    return [part for text in texts for part in text.split("==================") if WARNING in part]


def watched(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess:
    """Runs the interpreter under the sanitizer, which ignores torch because it is not instrumented."""
    options = f"log_path={folder}/report exitcode=0 report_signal_unsafe=0 ignore_noninstrumented_modules=1"
    options += f" suppressions={Path(__file__).with_name('races.supp')}"
    settings = {**THREAD.run_environment(), "TSAN_OPTIONS": options, **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True
    )


PLANTED = """
#include <musa_runtime.h>
__global__ void planted(int* out, bool waits) {
  __shared__ int cell;
  if (threadIdx.x == 0) { cell = 7; }
  if (waits) { __syncthreads(); }
  if (threadIdx.x == 40) { out[0] = cell; }
}
extern "C" void launch(int* out, bool waits) { planted<<<1, 64>>>(out, waits); }
"""
LAUNCH = """
import ctypes, sys, torch
out = torch.zeros(1, dtype=torch.int32, device="musa")
ctypes.CDLL(sys.argv[1]).launch(ctypes.c_void_p(out.data_ptr()), ctypes.c_bool(sys.argv[2] == "waits"))
torch.musa.synchronize()
"""


@pytest.mark.parametrize("waits", [True, False])
def test_a_planted_race_is_reported_at_its_line(tmp_path, waits):
    (tmp_path / "planted.mu").write_text(PLANTED)
    built = tmp_path / "libplanted.so"
    done = mcc("-O1", "-g", "-shared", "-fPIC", "-fsanitize=thread", tmp_path / "planted.mu", "-o", built)
    assert done.returncode == 0, done.stderr
    done = watched(tmp_path, "-c", LAUNCH, str(built), "waits" if waits else "runs on")
    assert done.returncode == 0, done.stderr
    found = reports(tmp_path)
    assert len(found) == (0 if waits else 1), found
    assert waits or "planted.mu:7" in found[0]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["MUSA_EMULATOR_ARCH"])
def test_no_kernel_has_a_race(library, tmp_path, settings):
    served = tmp_path / "served.json"
    done = watched(
        tmp_path,
        *("-m", "pytest", "-q", "-p", "tests.musa_ops_ported.instrumented", *TESTS),
        **settings,
        TORCH_MUSA_OPS="ported,host-copy",
        MUSA_TEST_LIBRARY=str(library),
        MUSA_TEST_SERVED=str(served),
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    found = reports(tmp_path)
    calls = json.loads(served.read_text())
    counts = done.stdout.splitlines()[-1].split(" in ")[0]
    records.write(
        f"races_{settings['MUSA_EMULATOR_ARCH']}",
        "pytest --full tests/musa_ops_ported/test_races.py",
        f"{len(calls)} operators, {len(found)} reports; {counts}; {' '.join(settings.values())}",
        without_a_call=sorted(op for op, count in calls.items() if count == 0),
    )
    assert not found, "\n".join(found[:5])


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings["MUSA_EMULATOR_ARCH"])
def test_no_kernel_that_the_databases_do_not_call_has_a_race(library, tmp_path, settings):
    environment = {**settings, "TORCH_MUSA_OPS": "ported,host-copy", "MUSA_TEST_LIBRARY": str(library)}
    done = watched(tmp_path, "-m", "tests.musa_ops_ported.rarely_called", **environment)
    assert done.returncode == 0 and "called" in done.stdout, done.stderr[-5000:]
    assert not reports(tmp_path)
