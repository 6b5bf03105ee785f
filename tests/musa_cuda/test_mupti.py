# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""libmupti over CUPTI without a GPU: conversions with a fake CUPTI, callback ids, errors."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.harness import skips
from tests.musa_cuda.conftest import PACKAGE, ROOT
from tests.musa_cuda.test_libraries import run

pytestmark = pytest.mark.once

HEADERS = ROOT / "packages" / "musa-emulator" / "csrc" / "include"
PROGRAM = Path(__file__).parent / "cpp" / "mupti_test.cpp"
CASES = ["kernels", "copies", "waits", "calls", "others", "buffers", "clock", "kinds", "errors", "callbacks"]
PREAMBLE = """
    mupti = ctypes.CDLL(os.environ["LIBRARY"].replace("libmusart", "libmupti"))
    def name(code):
        text = ctypes.c_char_p()
        assert mupti.muptiGetResultString(code, ctypes.byref(text)) == 0
        return text.value.decode()
"""


@pytest.fixture(scope="module")
def cupti(cuda: Path) -> Path:
    """The folder of CUPTI's headers."""
    from codegen import toolkit

    found = toolkit.cupti(cuda)
    if found is None:
        skips.skip_permanently("cuda-toolkit", f"{cuda} has no CUPTI")
    return found[0]


@pytest.fixture(scope="module")
def program(sdk: Path, cuda: Path, cupti: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of PROGRAM, linked with the libmupti that the package's CMake project built."""
    from codegen import toolkit

    generated = sdk.parent / "build" / "generated"
    includes = [generated, PACKAGE / "mcc" / "include", cuda / "include", cupti, generated / "device"]
    target = tmp_path_factory.mktemp("mupti") / "mupti_test"
    command = [
        *("g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-rdynamic"),
        *("-DCUstream_st=MUstream_st", "-DCUevent_st=MUevent_st", *(f"-I{folder}" for folder in includes)),
        *(PROGRAM, "-o", target, f"-L{sdk / 'lib'}", "-lmupti", "-lmusa", f"-Wl,-rpath,{sdk / 'lib'}"),
        f"-Wl,-rpath-link,{toolkit.cupti(cuda)[1].parent}",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.parametrize("case", CASES)
def test_records_and_callbacks_of_cupti_are_those_of_the_sdk(program: Path, case: str) -> None:
    done = subprocess.run([program, case], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # An error code that the SDK does not have is named once.
    assert done.stderr.count("MUPTI has no error code for") == (case == "errors")


def test_each_case_of_the_program_is_run() -> None:
    text = PROGRAM.read_text()
    listed = text[text.index("cases{") : text.index("};", text.index("cases{"))]
    assert [line.split('"')[1] for line in listed.split("{") if '"' in line] == CASES


def test_every_callback_id_of_the_sdk_has_numbers_of_cupti(cupti: Path) -> None:
    from codegen import callbacks

    rows = callbacks.table(HEADERS, cupti)
    calls = {row.number: row.call for row in rows}
    for domain in ("RUNTIME", "DRIVER"):
        ours = callbacks.numbered(HEADERS / f"mupti_{domain.lower()}_cbid.h", "MUPTI", domain)
        assert set(ours) == {row.call for row in rows if row.domain == domain and row.call is not None}
    assert calls["cudaLaunchKernel_v7000"] == calls["cudaLaunchKernel_ptsz_v7000"] == "musaLaunchKernel"
    assert calls["cudaStreamGetCaptureInfo_v2_v11030"] == "musaStreamGetCaptureInfo_v2"
    assert calls["cudaStreamGetCaptureInfo_v10010"] == "musaStreamGetCaptureInfo"
    assert calls["cuMemcpyHtoD_v2_ptds"] == calls["cuMemcpyHtoD"] == "muMemcpyHtoD"
    assert calls["cuGraphLaunch"] is None and "cudaGetLastError_v3020" not in calls


@pytest.mark.parametrize(
    ("added", "reasons", "message"),
    [
        ("MUPTI_RUNTIME_TRACE_CBID_musaFoldSpace = 9999,", {}, "musaFoldSpace: CUPTI has no number"),
        ("", {"musaMalloc": "none"}, "musaMalloc: has a reason for no number, and has one"),
        ("MUPTI_RUNTIME_TRACE_CBID_musaFoldSpace = 9999,", {"musaFoldSpace": "it is new"}, None),
    ],
    ids=["a new call", "a reason too many", "a call with a reason"],
)
def test_a_call_without_a_number_is_refused(
    cupti: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    added: str,
    reasons: dict[str, str],
    message: str | None,
) -> None:
    from codegen import callbacks

    monkeypatch.setattr(callbacks, "NO_NUMBER", reasons)
    for path in HEADERS.glob("mupti_*_cbid.h"):
        (tmp_path / path.name).write_text(
            path.read_text().replace("typedef enum {", f"typedef enum {{ {added}")
        )
    if message is None:
        report = callbacks.report(callbacks.table(tmp_path, cupti))
        assert report["no equal"] == reasons and "musaMalloc" in report["mapped"]
        return
    with pytest.raises(ValueError, match=rf"{message}[\s\S]*Fix: "):
        callbacks.table(tmp_path, cupti)


@pytest.mark.usefixtures("cupti")
def test_without_a_driver_profiling_cannot_start(sdk: Path) -> None:
    code = (
        PREAMBLE
        + """
    device = ctypes.c_uint32()
    keep = ctypes.CFUNCTYPE(None)(lambda: None)
    print(name(mupti.muptiActivityRegisterCallbacks(keep, keep)), name(mupti.muptiActivityEnable(10)),
          name(mupti.muptiGetDeviceId(None, ctypes.byref(device))), name(mupti.muptiActivityFlushAll(0)),
          name(mupti.muptiActivityEnable(0)), name(mupti.muptiFinalize()))
    """
    )
    not_initialized = "MUPTI_ERROR_NOT_INITIALIZED"
    if run(sdk, "print(count())") != "musaErrorInsufficientDriver":
        skips.skip_permanently("cuda-toolkit", "this machine has a driver")
    assert run(sdk, code).split() == [
        *(not_initialized, not_initialized, not_initialized),
        *("MUPTI_ERROR_INVALID_OPERATION", "MUPTI_ERROR_INVALID_KIND", "MUPTI_SUCCESS"),
    ]


@pytest.mark.usefixtures("cupti")
def test_calls_count_and_fail_on_request(sdk: Path) -> None:
    code = (
        PREAMBLE
        + """
    assert rt.musaEmulatorFailNext(b"muptiActivityDisable", 8) == 0
    before = rt.musaEmulatorCallCount()
    print(name(mupti.muptiActivityDisable(0)), name(mupti.muptiActivityDisable(0)),
          rt.musaEmulatorApiCallCount(b"muptiActivityDisable"), rt.musaEmulatorCallCount() - before)
    """
    )
    assert run(sdk, code).split() == ["MUPTI_ERROR_OUT_OF_MEMORY", "MUPTI_ERROR_INVALID_KIND", "2", "2"]


def test_cupti_is_searched_in_the_toolkit_and_among_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from codegen import toolkit

    wheel, tools = tmp_path / "wheel", tmp_path / "cuda" / "extras" / "CUPTI"
    wheels: dict[str, list[Path]] = {}
    monkeypatch.setattr(toolkit, "package_folders", lambda name: wheels.get(name, []))
    assert toolkit.cupti(tmp_path / "cuda") is None
    for folder, name in ((wheel, "libcupti.so.13"), (tools / "include", "cupti.h")):
        folder.mkdir(parents=True)
        (folder / name).touch()
    assert toolkit.cupti(tmp_path / "cuda") is None, "headers without a library"
    wheels["nvidia.cu13.lib"] = [wheel]
    assert toolkit.cupti(tmp_path / "cuda") == (tools / "include", wheel / "libcupti.so.13")


def test_without_cupti_the_library_is_left_out(cuda: Path, cupti: Path) -> None:
    from codegen.__main__ import described

    folders = [HEADERS, ROOT / "packages" / "musa-emulator-mccl" / "csrc" / "include"]
    assert [library.name for library in described(folders, cuda, None)] == ["musa", "musart"]
    assert [library.name for library in described(folders, cuda, None, cupti)] == ["musa", "musart", "mupti"]


@pytest.mark.usefixtures("cupti")
def test_headers_of_the_sdk_are_installed_with_the_library(sdk: Path) -> None:
    assert (sdk / "lib" / "libmupti.so").is_file()
    for path in HEADERS.glob("mupti*.h"):
        assert (sdk / "include" / path.name).read_text() == path.read_text()
