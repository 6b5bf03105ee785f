# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks of wheels that auditwheel, twine and check-wheel-contents do not make.

A script too: python tools/workspace/wheel_check.py dist/*.whl
"""

import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A second copy of one of these in a process is a second dispatcher without registered operators.
TORCH_LIBRARY = re.compile(r"lib(torch|c10|shm|gomp)([_.-]|$)")
SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")


def search_paths(library: Path) -> list[str]:
    """Returns the entries of RPATH and RUNPATH."""
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return [
        entry for found in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic) for entry in found.split(":")
    ]


def identity(name: str) -> str:
    """Returns a key under which at most one wheel may have a file.

    The loader regards libraries of the same name as the same library, wherever they are. All other files,
    including extension modules such as `_C.cpython-311-x86_64-linux-gnu.so`, are identified by their path.
    """
    base = Path(name).name
    return base if base.startswith("lib") and SHARED_OBJECT.search(base) else name


def check_contents(contents: Iterable[tuple[str, str, Path]]) -> list[str]:
    """Returns problems in the files of wheels, given as (wheel, path in the wheel, file on disk)."""
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


def check_metadata(wheel: str, text: str) -> list[str]:
    """Returns problems in a wheel's METADATA.

    A wheel that was compiled against torch has its minor in the version, and requires that minor. No pack
    requires the emulator, which would take the place of the SDK on a machine with a GPU.
    """
    fields = Parser().parsestr(text)
    requires = [line for line in fields.get_all("Requires-Dist", []) if "extra ==" not in line]
    label = re.search(r"\+torch(\d+\.\d+)$", fields["Version"])
    pins = [line for line in requires if re.match(r"torch\s*==", line)]
    wanted = [f"torch=={label[1]}.*"] if label else []
    found = []
    if pins != wanted:
        found.append(f"{wheel}: version {fields['Version']} requires {pins}, and should require {wanted}")
    if not fields["Name"].startswith("musa-emulator"):
        found += [
            f"{wheel}: requires {line}, which only an extra may require"
            for line in requires
            if line.startswith("musa-emulator")
        ]
    return found


def check_wheels(wheels: Sequence[Path]) -> list[str]:
    """Returns problems in wheels of one release, as lines that name wheel and file.

    Wheels of one distribution, for several versions of Python, have the same files.
    """
    found = []

    def contents() -> Iterable[tuple[str, str, Path]]:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith(".dist-info/METADATA"):
                        found.extend(check_metadata(wheel.name, archive.read(name).decode()))
                    if not name.endswith("/"):  # auditwheel adds entries for folders
                        yield wheel.name.partition("-")[0], name, Path(archive.extract(name, folder))

    files = check_contents(contents())
    return found + files


def run_tools(tools: Path, wheels: Sequence[Path]) -> int:
    """Runs the release tools in a folder on the wheels; returns 1 if one of them refuses a wheel."""
    # For wheels with libraries, auditwheel prints the oldest system with the symbols that they need.
    compiled = [wheel for wheel in wheels if not wheel.name.endswith("-any.whl")]
    commands = [["twine", "check", "--strict", *wheels], ["check-wheel-contents", *wheels]]
    commands += [["auditwheel", "show", wheel] for wheel in compiled]
    # check-wheel-contents reads its settings from the pyproject.toml of the current folder.
    refused = [subprocess.run([tools / name, *rest], cwd=ROOT, check=False) for name, *rest in commands]
    return int(any(done.returncode for done in refused))


if __name__ == "__main__":
    problems = check_wheels([Path(name) for name in sys.argv[1:]])
    sys.exit("\n".join(problems) if problems else 0)
