# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What a wheel must not carry: libraries of torch, or search paths of the machine it was built on."""

import re
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

# A second copy of one of these in a process is a second dispatcher, which knows no operator.
TORCH_LIBRARY = re.compile(r"lib(torch|c10|shm|gomp)([_.-]|$)")


def search_paths(library: Path) -> list[str]:
    """Entries of RPATH and RUNPATH, as readelf prints them."""
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return [
        entry for found in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic) for entry in found.split(":")
    ]


def check_wheels(wheels: Sequence[Path]) -> list[str]:
    """What is wrong with the wheels, each as a line that names the wheel and the file."""
    found = []
    owners: dict[str, str] = {}
    for wheel in wheels:
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                base = Path(name).name
                if not re.search(r"\.so(\.\d+)*$", base):
                    continue
                if TORCH_LIBRARY.match(base):
                    found.append(f"{wheel.name}: {name} belongs to torch's wheel")
                owner = owners.setdefault(base, wheel.name)
                if owner != wheel.name:
                    found.append(f"{wheel.name}: {name} is in {owner} too; two copies are two states")
                for path in search_paths(Path(archive.extract(name, folder))):
                    if not path.startswith("$ORIGIN"):
                        found.append(
                            f"{wheel.name}: {name} searches {path!r}, a folder of the machine that built it"
                        )
    return found
