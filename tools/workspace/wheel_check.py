# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks wheels for libraries of torch, files of another wheel, and search paths of the build machine."""

import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

# A second copy of one of these in a process is a second dispatcher, which knows no operator.
TORCH_LIBRARY = re.compile(r"lib(torch|c10|shm|gomp)([_.-]|$)")
SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")


def search_paths(library: Path) -> list[str]:
    """Entries of RPATH and RUNPATH, as readelf prints them."""
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return [
        entry for found in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic) for entry in found.split(":")
    ]


def identity(name: str) -> str:
    """The key under which two wheels may not both have a file.

    The loader takes two libraries of one name for one library, wherever they are. Every other file, extension
    modules such as `_C.cpython-311-x86_64-linux-gnu.so` included, is identified by its path.
    """
    base = Path(name).name
    return base if base.startswith("lib") and SHARED_OBJECT.search(base) else name


def check_contents(contents: Iterable[tuple[str, str, Path]]) -> list[str]:
    """What is wrong with the files of several wheels, given as (wheel, path in the wheel, file on disk)."""
    found = []
    owners: dict[str, str] = {}
    for wheel, name, file in contents:
        owner = owners.setdefault(identity(name), wheel)
        if owner != wheel:
            found.append(f"{wheel}: {name} is in {owner} too; one of the two copies would be used for both")
        base = Path(name).name
        if not SHARED_OBJECT.search(base):
            continue
        if TORCH_LIBRARY.match(base):
            found.append(f"{wheel}: {name} belongs to torch's wheel")
        for path in search_paths(file):
            if not path.startswith("$ORIGIN"):
                found.append(f"{wheel}: {name} searches {path!r}, a folder of the machine that built it")
    return found


def check_wheels(wheels: Sequence[Path]) -> list[str]:
    """What is wrong with the wheels, each as a line that names the wheel and the file."""

    def contents() -> Iterable[tuple[str, str, Path]]:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    yield wheel.name, name, Path(archive.extract(name, folder))

    return check_contents(contents())
