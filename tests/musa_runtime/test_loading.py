# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Loading the libraries: each failure is recorded with its cause, and nothing raises."""

import os
import subprocess
import sys

import pytest

import musa_runtime
from tests.harness.stub_runtime import RUNTIME, SDK, StubRuntime

pytestmark = pytest.mark.once


OTHER_MINOR = "2.10.1"


@pytest.fixture
def stub(tmp_path):
    return StubRuntime(tmp_path)


def steps(report):
    return {step.rpartition("/")[2]: outcome for step, outcome in report["attempts"]}


def test_everything_in_place_loads(stub):
    report = stub.load()
    assert report["status"] == "loaded", report
    assert report["reason"] is None
    assert report["extension"]
    assert set(steps(report).values()) == {"ok"}
    assert report["told"] == ""


def link_runtime(stub, tmp_path, built_with, here):
    """Links the runtime with a libmusart of one name, and gives the SDK's another."""
    compiler = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-"]
    at_build = tmp_path / built_with
    for path, name in ((at_build, built_with), (stub.home / "lib" / here, here)):
        command = [*compiler, "-o", str(path), f"-Wl,-soname,{name}"]
        subprocess.run(command, input=SDK, text=True, check=True)
    (stub.home / "lib" / "libmusart.so").unlink()
    (stub.home / "lib" / "libmusart.so").symlink_to(here)
    source = (
        RUNTIME % musa_runtime.ABI
        + "int musaGetDeviceCount(int*); int use(int* n) { return musaGetDeviceCount(n); }"
    )
    target = str(stub.package / "lib" / "libmusa_runtime.so")
    # Without its dependency on the path of the build, the loader searches the name.
    command = [*compiler, "-o", target, f"-Wl,--no-as-needed,-L{tmp_path}", f"-l:{built_with}"]
    subprocess.run(command, input=source, text=True, check=True)


def test_a_library_linked_with_another_name_of_the_sdk_names_the_fix(stub, tmp_path):
    """The vendor's libraries have the major version in their names; the emulator's have none."""
    link_runtime(stub, tmp_path, "libmusart.so", "libmusart.so.4")
    report = stub.load()
    folder = stub.home / "lib"
    assert report["status"] == "unavailable" and report["error"] == "LibraryLoadError"
    assert "libmusa_runtime.so needs libmusart.so, the name of a library of the SDK" in report["reason"]
    assert f'Fix: export LD_LIBRARY_PATH="{folder}:$LD_LIBRARY_PATH"' in report["reason"]
    assert stub.load(LD_LIBRARY_PATH=str(folder))["status"] == "loaded"


def test_a_library_linked_with_another_major_version_of_the_sdk_names_the_wheels(stub, tmp_path):
    link_runtime(stub, tmp_path, "libmusart.so.4", "libmusart.so.5")
    (stub.home / "version.json").write_text('{"musa_runtime": {"version": "5.1.0"}}')
    report = stub.load()
    assert "libmusa_runtime.so needs libmusart.so.4" in report["reason"]
    fix = report["reason"].splitlines()[-1]
    assert (
        fix.startswith("Fix: ") and "<the folder or index of the wheels for MUSA SDK 5> musa-runtime" in fix
    )
    link_runtime(stub, tmp_path, "libmusart.so.5", "libmusart.so.5")
    assert stub.load()["status"] == "loaded"


def test_importing_the_package_imports_nothing_heavy(stub):
    done = stub.run(
        """
        import sys
        before = set(sys.modules)
        import musa_runtime
        print(sorted(set(sys.modules) - before - {"__future__"}))
        """
    )
    assert done.stdout == "['musa_runtime', 'musa_runtime._build']\n", done.stderr


def test_loading_imports_neither_pluggy_nor_metadata(stub):
    done = stub.run(
        """
        import sys
        import musa_runtime
        assert musa_runtime.load().status == "loaded"
        print([name for name in ("pluggy", "importlib.metadata", "subprocess", "pathlib", "json") if name in
        sys.modules])
        """
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_a_missing_sdk_is_reported_and_the_substitute_is_loaded(stub):
    report = stub.load(MUSA_HOME="/nonexistent/musa")
    assert (report["status"], report["error"]) == ("unavailable", "SdkNotFoundError")
    assert "/nonexistent/musa: no such directory" in report["reason"]
    assert report["told"].strip() == f"told: {report['reason']}"


def test_a_musa_home_that_is_not_text_is_reported_with_its_bytes_escaped(stub):
    report = stub.load(MUSA_HOME=os.fsdecode(b"/nonexistent/\xff"))
    assert (report["status"], report["error"]) == ("unavailable", "SdkNotFoundError")
    assert "$MUSA_HOME=/nonexistent/\\udcff: no such directory" in report["told"]


def test_another_torch_minor_is_refused_before_any_library_is_loaded(stub):
    stub.write_torch(version=OTHER_MINOR)
    report = stub.load()
    assert (report["status"], report["error"]) == ("absent", "TorchVersionError")
    assert f"have: torch {OTHER_MINOR}" in report["reason"]
    assert f"need: torch {musa_runtime.TORCH_MINOR}.*" in report["reason"]
    assert f"pip install 'torch=={musa_runtime.TORCH_MINOR}.*'" in report["reason"]
    assert "built for torch 2.11 to 2.15" in report["reason"]
    assert report["attempts"] == []
    assert report["told"] == ""


@pytest.mark.parametrize("patch", ["0+cpu", "1", "0a0+git123"])
def test_builds_of_the_right_minor_are_accepted(stub, patch):
    stub.write_torch(version=f"{musa_runtime.TORCH_MINOR}.{patch}")
    assert stub.load()["status"] == "loaded"


def test_a_torch_with_the_minor_as_prefix_only_is_refused(stub):
    stub.write_torch(version=f"{musa_runtime.TORCH_MINOR}0.0")
    assert stub.load()["error"] == "TorchVersionError"


def test_an_installation_without_the_record_of_its_torch_is_refused(stub):
    (stub.package / "_torch_minor.py").unlink()
    report = stub.load()
    assert (report["status"], report["error"]) == ("absent", "TorchVersionError")
    assert "no record of the torch it was compiled for" in report["reason"] and "Fix: " in report["reason"]
    assert report["attempts"] == []


def test_another_backend_in_the_slot_is_left_alone(stub):
    stub.write_torch(slot="openreg")
    report = stub.load()
    assert (report["status"], report["error"]) == ("absent", "BackendConflictError")
    assert "'openreg'" in report["reason"]
    assert report["told"] == ""


@pytest.mark.parametrize("library", ["libmusart.so", "libmusa_runtime.so"])
def test_a_library_that_fails_to_load_is_reported_with_the_linkers_error(stub, library):
    path = stub.home / "lib" / library if library == "libmusart.so" else stub.package / "lib" / library
    path.write_bytes(b"this is not a library")
    report = stub.load()
    assert (report["status"], report["error"], report["cause"]) == (
        "unavailable",
        "LibraryLoadError",
        "OSError",
    )
    assert "file too short" in steps(report)[library] or "invalid ELF header" in steps(report)[library]
    assert steps(report)[library] in report["reason"]
    fix = "install the MUSA SDK at" if library == "libmusart.so" else "-m pip install --force-reinstall"
    assert f"\nFix: {fix}" in report["reason"].replace(sys.executable + " ", "")
    assert report["told"].startswith("told: ")


def test_an_unresolved_symbol_is_reported_by_name(stub):
    source = RUNTIME % musa_runtime.ABI + " void musaNoSuchCall(void); void use(void) { musaNoSuchCall(); }"
    stub.compile("musa_runtime/lib/libmusa_runtime.so", source)
    report = stub.load()
    assert report["error"] == "LibraryLoadError"
    assert "undefined symbol: musaNoSuchCall" in report["reason"]


def test_a_missing_runtime_library_is_reported(stub):
    (stub.package / "lib" / "libmusa_runtime.so").unlink()
    report = stub.load()
    assert (report["status"], report["error"]) == ("unavailable", "LibraryLoadError")
    assert "libmusa_runtime.so" in report["reason"]


@pytest.mark.parametrize(
    "source", [RUNTIME % (musa_runtime.ABI + 1), "int something_else;"], ids=["other", "none"]
)
def test_another_abi_is_refused_and_the_substitute_is_not_loaded(stub, source):
    # The runtime's hooks are already registered; registering the substitute's too would abort the process.
    stub.compile("musa_runtime/lib/libmusa_runtime.so", source)
    report = stub.load()
    assert (report["status"], report["error"]) == ("unavailable", "AbiMismatchError")
    assert f"need: ABI {musa_runtime.ABI}" in report["reason"]
    assert report["told"] == ""


def test_an_extension_that_raises_on_import_is_reported(stub):
    stub.write("musa_runtime/_C.py", "raise ImportError('undefined symbol: c10_something')")
    report = stub.load()
    assert (report["error"], report["cause"]) == ("LibraryLoadError", "ImportError")
    assert "c10_something" in report["reason"]


def test_an_unforeseen_failure_is_recorded_too(stub):
    stub.write("musa_runtime/_C.py", "raise ZeroDivisionError('a surprise')")
    report = stub.load()
    assert (report["error"], report["cause"]) == ("LibraryLoadError", "ZeroDivisionError")
    assert "a surprise" in report["reason"]


def test_without_sdk_and_substitute_privateuse1_must_stay_unnamed(stub):
    (stub.package / "lib" / "libmusa_unavailable.so").unlink()
    report = stub.load(MUSA_HOME="/nonexistent/musa")
    assert (report["status"], report["error"]) == ("absent", "SdkNotFoundError")


def test_the_recorded_cause_is_raised_at_each_use(stub):
    done = stub.run(
        """
        from musa_runtime import _load, errors
        for attempt in range(2):
            try:
                _load.extension()
            except errors.SdkNotFoundError as error:
                print(len(str(error).splitlines()) > 3)
        """,
        MUSA_HOME="/nonexistent/musa",
    )
    assert done.stdout.splitlines()[-2:] == ["True", "True"], done.stdout + done.stderr


def test_config_prints_each_value(stub):
    stub.write("musa_runtime/share/cmake/musa_runtime/musa_runtimeConfig.cmake", "")
    stub.write("musa_runtime/include/musa_runtime/op_pack.h", "")
    done = stub.run(
        """
        from musa_runtime import config
        code = config.main(["--cmakedir", "--includedir", "--libdir", "--musa-home", "--abi"])
        raise SystemExit(code)
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(stub.package / "share/cmake/musa_runtime"),
        str(stub.package / "include"),
        str(stub.package / "lib"),
        str(stub.home),
        str(musa_runtime.ABI),
    ]


def test_config_prints_the_version_as_every_command_does(stub):
    done = stub.run("from musa_runtime import config; config.main(['--version', '--cmakedir'])")
    assert (done.returncode, done.stdout.splitlines()) == (0, [musa_runtime.__version__]), done.stderr


def test_config_fails_with_the_reason_if_a_file_is_missing(stub):
    code = "from musa_runtime import config; raise SystemExit(config.main(['--cmakedir']))"
    done = stub.run(code)
    assert done.returncode == 1
    assert "musa_runtimeConfig.cmake" in done.stderr
