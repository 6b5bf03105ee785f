# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""`dev.py matrix --machine`: the build for another processor, and the tests in its system."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.harness.skips import skip_permanently

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import dev  # noqa: E402
from workspace import WorkspaceError, cross, image_steps, matrix, packages, prerequisites  # noqa: E402

pytestmark = pytest.mark.once
MACHINE = "aarch64"


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cross.Cell:
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    return cross.Cell("2.13", cross.PYTHON, MACHINE)


def elf_machine(path: Path) -> str:
    header = subprocess.run(["readelf", "-h", path], capture_output=True, text=True, check=True).stdout
    return next(line.split(":")[1].strip() for line in header.splitlines() if "Machine:" in line)


def test_the_compiler_makes_the_emulators_libraries_for_the_processor(tmp_path: Path) -> None:
    """Compiles the files with code for one processor; `dev.py matrix` builds the package with all files."""
    if shutil.which(cross.compiler(MACHINE)) is None:
        skip_permanently("cross-compiler", cross.compiler(MACHINE))
    source = ROOT / "packages" / "musa-emulator" / "csrc" / "musart"
    for name in ("fiber", "vector_math", "block"):
        output = tmp_path / f"{name}.o"
        command = [cross.compiler(MACHINE), "-std=c++20", "-O2", "-fPIC", "-Wall", "-Wextra", "-Werror"]
        folders = (source.parent / "include", source, source.parents[1] / "mcc" / "include")
        command += [f"-I{folder}" for folder in folders]
        command += ["-c", source / "simt" / f"{name}.cpp", "-o", output]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert elf_machine(output) == "AArch64"


def test_packages_are_built_here_and_installed_in_the_system_one_after_another(
    cell: cross.Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def build_wheel(name: str, options: packages.Options, target: Path, **how) -> Path:
        assert how["env"]["CXX"] == f"aarch64-linux-gnu-g++ --sysroot={cell.root}"
        assert how["env"]["_PYTHON_HOST_PLATFORM"] == "linux-aarch64"
        assert how["python"] == cell.folder / "builder" / "bin" / "python"
        assert "--config-settings=cmake.define.CMAKE_SYSTEM_PROCESSOR=aarch64" in how["settings"]
        done.append(f"build {name}")
        return target / f"{name}.whl"

    monkeypatch.setattr(packages, "build_wheel", build_wheel)
    monkeypatch.setattr(packages, "package_names", lambda *root: ["a", "b"])
    monkeypatch.setattr(cross, "make_builder", lambda cell: None)
    monkeypatch.setattr(cross, "check_modules", lambda wheel, machine: done.append(f"check {wheel.stem}"))
    monkeypatch.setattr(
        cross.Cell, "run", lambda self, title, command: done.append(f"{title}: {Path(command[-1]).name}")
    )
    cell.folder.mkdir(parents=True)
    cell.environment_outside.mkdir(parents=True)
    cell.build("python3", ())
    assert done == [
        "requirements: requirements-dev.txt",
        *("build a", "check a", "wheel of a: a.whl", "build b", "check b", "wheel of b: b.whl"),
    ]
    assert matrix.built(cell) == ["a", "b"]


@pytest.mark.parametrize(
    ("member", "refused"),
    [
        ("a/_C.cpython-311-aarch64-linux-gnu.so", False),
        ("a/lib/liba.so", False),
        ("a/_C.cpython-311-x86_64-linux-gnu.so", True),
    ],
)
def test_a_module_that_the_other_python_ignores_is_refused(
    tmp_path: Path, member: str, refused: bool
) -> None:
    wheel = tmp_path / "a-1-cp311-cp311-linux_aarch64.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, "")
    if not refused:
        return cross.check_modules(wheel, MACHINE)
    with pytest.raises(
        WorkspaceError, match=r"_C\.cpython-311-x86_64-linux-gnu\.so, which Python on aarch64"
    ):
        cross.check_modules(wheel, MACHINE)


def test_a_command_in_the_system_has_a_limit_of_addresses(
    cell: cross.Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the limit, tests that use the emulated device took all memory of the machine."""
    lines = []

    def run_logged(title: str, command: list[str], log: Path, *more: object, **options: object) -> None:
        lines.append(command)
        log.parent.mkdir(parents=True)
        log.write_text("$ command\noutput\n")

    monkeypatch.setattr(cross, "run_logged", run_logged)
    assert cell.run("a title", ["true"]) == "output\n"
    assert lines[0][:3] == ["prlimit", f"--as={cross.ADDRESSES}", "unshare"]


def test_a_command_runs_in_the_system_and_changes_the_combinations_folder_alone(cell: cross.Cell) -> None:
    words = image_steps.command_in(cell.root, ["true"], {"A": "1"}, {}, changed=[cell.folder])
    script = words[-1]
    assert f"mount --bind {cell.folder} {cell.root}{cell.folder}" in script
    assert f"exec chroot --userspec=0:0 {cell.root} /usr/bin/env -i --chdir=/ " in script
    assert script.endswith(" A=1 true")
    assert "-o ro" in image_steps.mount(cell.root, cell.folder, "/x")


def test_missing_prerequisites_are_named(cell: cross.Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(cross.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(cross.platform, "machine", lambda: "other")
    monkeypatch.setattr(cross, "Path", lambda path: cell.root / "absent")
    found = prerequisites.describe(prerequisites.problems(cross.required(MACHINE)))
    for text in ("aarch64-linux-gnu-g++ is missing", "debootstrap is missing", "(binfmt_misc)", "need root"):
        assert text in found
    assert "apt-get install -y debootstrap g++-aarch64-linux-gnu qemu-user-static" in found


def test_another_python_than_the_systems_is_refused() -> None:
    with pytest.raises(WorkspaceError, match=r"there are no tests with 3\.12"):
        cross.Cell("2.13", "3.12", MACHINE).prepare()
    with pytest.raises(SystemExit):
        dev.main(["matrix", "--machine", MACHINE, "--python", "3.12"])
