# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The public headers are plain C and C++, self-contained, and agree with the exports of the libraries."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.musa_emulator import sdk

pytestmark = pytest.mark.once

INCLUDE = sdk.HOME / "include"
FOR_KERNELS = ("murand_distributions.h", "murand_kernel.h", "murand_xorwow.h", "cooperative_groups.h")
HEADERS = sorted(path.name for path in INCLUDE.glob("*.h") if path.name not in FOR_KERNELS)
CXX = os.environ.get("CXX", "g++").split()
WARNINGS = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
C99 = [*CXX, "-x", "c", "-std=c99", *WARNINGS]
DIALECTS = {"c99": C99, "c++17": [*CXX, "-std=c++17", *WARNINGS], "c++20": [*CXX, "-std=c++20", *WARNINGS]}

# SDK 4.x exports these without declaring them, and callers define functions of the same names in their own
# namespaces. In C++ they are templates, so overload resolution prefers the callers' functions.
UNPUBLISHED = (
    "musaThreadExchangeStreamCaptureMode",
    "musaStreamGetCaptureInfo",
    "musaMemPoolTrimTo",
    "musaMallocAsync",
    "musaFreeAsync",
    "musaDeviceGetDefaultMemPool",
    "musaMemPoolGetAttribute",
    "musaMemPoolSetAttribute",
)


def compile_text(command: list[str], text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    source = folder / "use.c"
    source.write_text(text)
    return subprocess.run([*command, f"-I{INCLUDE}", str(source)], capture_output=True, text=True)


def declared_functions(header: str) -> list[str]:
    text = (INCLUDE / header).read_text()
    return re.findall(r"MUSA_PUBLIC\s+(?:const\s+)?\w+\*?\s+(\w+)\(", text)


@pytest.mark.parametrize(
    ("header", "dialect"),
    # muDNN's API exists only in C++, as classes in musa::dnn.
    [(header, d) for header in HEADERS for d in DIALECTS if d != "c99" or not header.startswith("mudnn")],
)
def test_each_header_compiles_alone(header: str, dialect: str, tmp_path: Path) -> None:
    done = compile_text(DIALECTS[dialect], f"#include <{header}>\nint main(void) {{ return 0; }}\n", tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", FOR_KERNELS)
def test_a_header_for_kernels_names_its_compiler(header: str, tmp_path: Path) -> None:
    text = f"#include <{header}>\nint main() {{ return 0; }}\n"
    plain = compile_text(DIALECTS["c++17"], text, tmp_path)
    assert plain.returncode != 0 and "compile this file with mcc" in plain.stderr
    mcc = [str(sdk.HOME / "bin" / "mcc"), "-x", "musa", "-std=c++17", "-c", "-o", str(tmp_path / "use.o")]
    done = compile_text(mcc, text, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("header", ["complex", "pair", "tuple"])
def test_headers_of_thrust_defer_to_muthrust(header: str, tmp_path: Path) -> None:
    text = f"#include <thrust/{header}.h>\n#ifdef MUTHRUST\n#error of muThrust\n#endif\n"
    alone = compile_text(DIALECTS["c++17"], text, tmp_path)
    assert alone.returncode == 0, alone.stderr
    (tmp_path / "thrust").mkdir()
    (tmp_path / "thrust" / f"{header}.h").write_text("#define MUTHRUST\n")
    behind = compile_text([*DIALECTS["c++17"], f"-idirafter{tmp_path}"], text, tmp_path)
    assert behind.returncode != 0 and "of muThrust" in behind.stderr
    assert behind.stderr.count("error:") == 1, behind.stderr


def test_a_header_that_is_not_c_would_be_noticed(tmp_path: Path) -> None:
    done = compile_text(C99, "#include <musa_runtime.h>\nmusaError_t f(int& x);\n", tmp_path)
    assert done.returncode != 0


def test_types_can_be_used_as_callers_do(tmp_path: Path) -> None:
    program = """
        #include <musa.h>
        #include <musa_runtime.h>
        namespace caller {
        // Same name as an SDK function of later versions, found by argument-dependent lookup too.
        int musaThreadExchangeStreamCaptureMode(enum musaStreamCaptureMode*) { return 0; }
        int call() {
          enum musaStreamCaptureMode mode = musaStreamCaptureModeRelaxed;
          return musaThreadExchangeStreamCaptureMode(&mode);
        }
        }
        enum musaError status = musaErrorInvalidValue;
        enum musaMemcpyKind kind = musaMemcpyDefault;
        enum musaDeviceAttr attribute = musaDevAttrWarpSize;
        enum musaMemPoolAttr pool = musaMemPoolAttrReleaseThreshold;
        musaMemPool_t handle = nullptr;
        MUstream driver_stream = static_cast<musaStream_t>(nullptr);
        MUevent driver_event = static_cast<musaEvent_t>(nullptr);
        size_t musaDeviceProp::*member = &musaDeviceProp::totalGlobalMem;
        musaDeviceProp properties{};
        MUdeviceptr address = MUdeviceptr{1} + 1;
        __host__ __device__ int f() { return 0; }
        musaError_t g(musaGraphExec_t* exec, musaGraph_t graph, musaEvent_t event, float** p) {
          musaGraphInstantiate(exec, graph, nullptr, nullptr, 0);
          musaGraphInstantiate(exec, graph, 0ULL);
          musaGraphInstantiate(exec, graph);
          musaEventRecord(event);
          musaStreamWaitEvent(nullptr, event);
          musaMallocManaged(p, 4);
          musaMallocHost(p, 4);
          musaMemsetAsync(*p, 0, 4);
          return musaMalloc(p, 4);
        }
    """
    done = compile_text(DIALECTS["c++17"], program, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("header", "library_name"),
    [
        ("musa_runtime_api.h", "libmusart.so"),
        ("musa_emulator.h", "libmusart.so"),
        ("musa_profiler_api.h", "libmusart.so"),
        ("musa.h", "libmusa.so"),
        ("mupti_activity.h", "libmupti.so"),
        ("mupti_callbacks.h", "libmupti.so"),
        ("mupti_result.h", "libmupti.so"),
        ("mupti_version.h", "libmupti.so"),
    ],
)
def test_every_declared_function_is_exported(header: str, library_name: str) -> None:
    functions = declared_functions(header)
    assert functions, f"no declaration was recognised in {header}"
    library = ctypes.CDLL(str(sdk.HOME / "lib" / library_name))
    missing = [name for name in functions if not hasattr(library, name)]
    assert missing == []


def test_every_entry_point_has_a_callback_id() -> None:
    script = sdk.ROOT / "packages/musa-emulator/csrc/mupti/number_callbacks.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_callback_ids_are_unique_and_ascend() -> None:
    for what in ("runtime", "driver"):
        text = (INCLUDE / f"mupti_{what}_cbid.h").read_text()
        ids = [int(number) for number in re.findall(r"_CBID_mu\w+ = (\d+)", text)]
        assert len(ids) > 40
        assert ids == sorted(set(ids))
        assert ids[0] >= 1


def test_declarations_are_recognised() -> None:
    functions = declared_functions("musa_runtime_api.h")
    assert {"musaMalloc", "musaGetErrorString", "musaStreamGetCaptureInfo_v2"} <= set(functions)
    assert len(functions) > 120


def test_functions_that_callers_define_themselves_are_not_ambiguous(tmp_path: Path) -> None:
    library = ctypes.CDLL(str(sdk.HOME / "lib" / "libmusart.so"))
    parameters = {
        "musaThreadExchangeStreamCaptureMode": "musaStreamCaptureMode* a",
        "musaStreamGetCaptureInfo": "musaStream_t a, musaStreamCaptureStatus* b, unsigned long long* c",
        "musaMemPoolTrimTo": "musaMemPool_t a, size_t b",
        "musaMallocAsync": "void** a, size_t b, musaStream_t c",
        "musaFreeAsync": "void* a, musaStream_t b",
        "musaDeviceGetDefaultMemPool": "musaMemPool_t* a, int b",
        "musaMemPoolGetAttribute": "musaMemPool_t a, musaMemPoolAttr b, void* c",
        "musaMemPoolSetAttribute": "musaMemPool_t a, musaMemPoolAttr b, void* c",
    }
    assert set(parameters) == set(UNPUBLISHED)
    text = "#include <musa_runtime.h>\nstruct Own {};\nnamespace caller {\n"
    for name, declared in parameters.items():
        assert hasattr(library, name), name
        arguments = ", ".join(part.split()[-1] for part in declared.split(","))
        text += f"Own {name}({declared});\nOwn call_{name}({declared}) {{ return {name}({arguments}); }}\n"
        text += f"musaError_t sdks_{name}({declared}) {{ return ::{name}({arguments}); }}\n"
    done = compile_text(DIALECTS["c++17"], text + "}\n", tmp_path)
    assert done.returncode == 0, done.stderr
    # With a plain function in the header, calls of the caller's own would be ambiguous; hence the templates.
    clash = "musaError_t musaFreeAsync(void* a, musaStream_t b);\n"
    assert (
        compile_text(
            DIALECTS["c++17"], text.replace("struct Own", clash + "struct Own") + "}\n", tmp_path
        ).returncode
        != 0
    )


def test_versions_agree() -> None:
    macro = re.search(r"#define MUSA_VERSION (\d+)", (INCLUDE / "musa.h").read_text())
    runtime = re.search(r"#define MUSART_VERSION (\d+)", (INCLUDE / "musa_runtime_api.h").read_text())
    assert macro and runtime and macro.group(1) == runtime.group(1) == "40301"
