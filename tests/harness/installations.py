# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Installations of the packages to break: environments of symbolic links, made in a fraction of a second.

An installation is a virtual environment whose `site-packages` holds the packages as an installer of wheels
writes them, but each file is a link, so that pip may remove and replace them without changes to the
environment of the tests. All other packages, including torch, come from one folder of links that every
installation shares. The path has a space in it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from tests.harness.forkserver import ForkServer
from workspace import underscored
from workspace.packages import package_names

FAMILY = tuple(package_names())
SITE = Path(sysconfig.get_path("purelib"))
PACKAGES = Path(__file__).resolve().parents[2] / "packages"
WHEEL = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
# Removed from the environment of every child, so that its state depends on the test alone.
SETTINGS = re.compile(r"(MUSA|MCCL|MUDNN|TORCH|PYTORCH|PYTHON|PIP|XDG)_?|CXX$|VIRTUAL_ENV$")


def shared_links(folder: Path) -> Path:
    """A folder with links to all packages that are installed here, except the family.

    pip must not find torch and ninja in it, because tests install other versions of them.
    """
    folder.mkdir()
    own = {underscored(name) for name in FAMILY}
    for entry in SITE.iterdir():
        name = entry.name.partition("-")[0]
        replaced = name in ("torch", "ninja") and entry.suffix == ".dist-info"
        if replaced or name in own or entry.suffix == ".pth" or entry.name.startswith("_editable_"):
            continue
        (folder / entry.name).symlink_to(entry)
    return folder


@contextmanager
def fork_server(shared: Path) -> Iterator[ForkServer]:
    """Forks of an interpreter that finds the packages of `shared_links` alone and has imported torch."""
    server = ForkServer("-S", path=(str(shared),))
    yield server
    server.close()


def files_of(name: str) -> dict[str, Path]:
    """The compiled and Python files of a distribution by their path below site-packages."""
    found = {}
    for file in metadata.distribution(name).files:
        relative = str(file)
        if relative.startswith(("..", "_editable", "__pycache__")) or "/direct_url.json" in relative:
            continue
        found[relative] = Path(file.locate())
    source = PACKAGES / name / "src"
    for path in source.rglob("*") if source.is_dir() else ():
        if path.is_file():
            found[str(path.relative_to(source))] = path
    return found


def install(site: Path, name: str, wheels: Path | None) -> None:
    """Put a distribution into site-packages, with the record that it came from a folder of wheels."""
    info = f"{underscored(name)}-{metadata.version(name)}.dist-info"
    record = []
    for relative, path in files_of(name).items():
        target = site / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if relative.startswith(f"{info}/RECORD"):
            continue
        target.symlink_to(path)
        record.append(f"{relative},,")
    if wheels is not None:
        url = wheel_path(wheels, name).as_uri()
        (site / info / "direct_url.json").write_text(json.dumps({"url": url, "archive_info": {}}))
        record.append(f"{info}/direct_url.json,,")
    (site / info / "RECORD").write_text("\n".join([*record, f"{info}/RECORD,,", ""]))


def wheel_path(folder: Path, name: str) -> Path:
    return folder / f"{underscored(name)}-{metadata.version(name)}-py3-none-any.whl"


def write_wheel(
    folder: Path, name: str, version: str, files: dict[str, bytes | Path], entry_points: str = ""
) -> Path:
    """Write a wheel of any content."""
    stem = f"{underscored(name)}-{version}"
    files = {
        **files,
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{stem}.dist-info/WHEEL": WHEEL,
        **({f"{stem}.dist-info/entry_points.txt": entry_points.encode()} if entry_points else {}),
    }
    path = folder / f"{stem}-py3-none-any.whl"
    record = []
    with zipfile.ZipFile(path, "w") as archive:
        for relative, content in files.items():
            data = content if isinstance(content, bytes) else content.read_bytes()
            entry = zipfile.ZipInfo(relative)
            mode = 0o755 if isinstance(content, bytes) else stat.S_IMODE(content.stat().st_mode)
            entry.external_attr = (stat.S_IFREG | mode) << 16
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{relative},sha256={digest},{len(data)}")
        archive.writestr(f"{stem}.dist-info/RECORD", "\n".join([*record, f"{stem}.dist-info/RECORD,,", ""]))
    return path


def write_family_wheel(folder: Path, name: str) -> Path:
    """Write a wheel of one package of the family, from the files that are installed here."""
    files = {
        relative: path
        for relative, path in files_of(name).items()
        if ".dist-info/" not in relative and path.suffix != ".pyc"
    }
    points = metadata.distribution(name).read_text("entry_points.txt") or ""
    made = write_wheel(folder, name, metadata.version(name), files, points)
    assert made == wheel_path(folder, name)
    return made


AS_PROGRAM = """
sys.argv = ["torch_musa", "doctor", "--json"]
runpy.run_module("torch_musa", run_name="__main__", alter_sys=True)
"""


class Installation:
    """A virtual environment with the family in it.

    Attributes:
        prefix, site, python (Path): its folder, its site-packages, its interpreter.
        environment (dict): the variables of its programs.
        wheels (Path): the folder from which, by their records, the packages were installed.
    """

    def __init__(self, folder: Path, shared: Path, wheels: Path, without: tuple[str, ...] = ()) -> None:
        self.prefix = folder / "an environment"
        self.python = self.prefix / "bin" / "python"
        self.site = (
            self.prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        )
        self.wheels = wheels
        self.shared = shared
        self.site.mkdir(parents=True)
        self.python.parent.mkdir()
        base = Path(sys._base_executable).resolve()
        for name in ("python", "python3"):
            (self.python.parent / name).symlink_to(base)
        (self.prefix / "pyvenv.cfg").write_text(
            f"home = {base.parent}\ninclude-system-site-packages = false\n"
            f"version = {'.'.join(map(str, sys.version_info[:3]))}\n"
        )
        (self.site / "shared.pth").write_text(f"{shared}\n")
        for name in FAMILY:
            if name not in without:
                install(self.site, name, wheels)
        kept = {name: value for name, value in os.environ.items() if not SETTINGS.match(name)}
        path = os.pathsep.join([str(self.python.parent), "/usr/bin", "/bin"])
        self.environment = {
            **kept,
            "PATH": path,
            "OMP_NUM_THREADS": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_ROOT_USER_ACTION": "ignore",
            "HOME": str(folder),
        }
        (self.python.parent / "ninja").symlink_to(shutil.which("ninja"))

    def replace(self, relative: str, content: bytes | str) -> None:
        """Put other content in place of a file."""
        path = self.site / relative
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def shell(self, command: str, environment: dict[str, str]) -> dict[str, str]:
        """Run a command as a user's shell would, and return the environment after it."""
        done = subprocess.run(
            ["/bin/sh", "-e", "-c", f"{{ {command}\n}} >&2\n/usr/bin/env -0"],
            env=environment,
            capture_output=True,
            cwd=self.prefix,
            timeout=300,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr.decode()}"
        variables = (os.fsdecode(entry).partition("=") for entry in done.stdout.split(b"\0") if entry)
        return {name: value for name, _, value in variables if name not in ("_", "SHLVL", "PWD", "OLDPWD")}

    def doctor_here(self, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """The doctor in an interpreter of its own."""
        return subprocess.run(
            [str(self.python), "-m", "torch_musa", "doctor", "--json"],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            cwd=self.prefix,
            timeout=300,
        )

    def doctor_in_fork(
        self, server: ForkServer, environment: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """The doctor in a fork of a process with torch, as `python -m torch_musa doctor --json` would run."""
        return server.run(self.code(environment, AS_PROGRAM), environment, cwd=str(self.prefix))

    def code(self, environment: dict[str, str], program: str) -> str:
        """Code that sets up a fork as a process of this environment, then runs `program`."""
        path = [part for part in environment.get("PYTHONPATH", "").split(os.pathsep) if part]
        return f"""
import os, runpy, sys
standard = [part for part in sys.path if part and part != {str(self.shared)!r}]
sys.path[:] = [os.getcwd(), *{path!r}, *standard, {str(self.site)!r}, {str(self.shared)!r}]
sys.executable, sys.prefix = {str(self.python)!r}, {str(self.prefix)!r}
hide_torch()
{program}
"""
