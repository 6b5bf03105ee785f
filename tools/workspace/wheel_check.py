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
# Symbols that only one kind of SDK has, and that its compiler or its own libraries refer to.
SYMBOLS_OF = {
    "emulator": re.compile(r"musa_simt|musaEmulator|musa_emulator|torch_musa_|MUSA_EMULATOR"),
    "cuda": re.compile(r"^_*cuda[A-Z]"),
}
# The torch and the kind of SDK in the version of a wheel.
LABEL = re.compile(r"\+torch(\d+\.\d+)(?:\.([a-z][a-z0-9]*))?$")
DECLARATION = ".sdk"


def search_paths(library: Path) -> list[str]:
    """Returns the entries of RPATH and RUNPATH."""
    dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
    return [
        entry for found in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic) for entry in found.split(":")
    ]


def needed_symbols(library: Path) -> list[str]:
    """Returns the symbols without which a library cannot be loaded; weak ones may be missing."""
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    )
    return [line.split()[1] for line in listed.stdout.splitlines() if line.split()[0] == "U"]


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
    label = LABEL.search(fields["Version"])
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


def check_sdk(wheel: str, text: str, files: Iterable[tuple[str, Path]], wanted: str = "") -> list[str]:
    """Returns problems with the SDK that a wheel is for.

    A wheel with kernels names the kind of SDK in its version and beside each library with kernels
    (`<library>.sdk`), and a library that needs symbols of one kind of SDK is only in a wheel that names it.

    Args:
        wheel (str): its name in messages.
        text (str): its METADATA.
        files (iterable of (str, Path)): paths in the wheel, and the files on disk.
        wanted (str): the kind that all wheels with kernels are for; "" for any.
    """
    fields = Parser().parsestr(text)
    version, own = fields["Version"], fields["Name"].startswith("musa-emulator")
    label = LABEL.search(version)
    kind = (label and label[2]) or ""
    found = []
    if own and wanted and wanted != "emulator":
        found.append(f"{wheel}: belongs to the emulator, and these wheels are for the SDK {wanted}")
    if kind and wanted and kind != wanted:
        found.append(f"{wheel}: version {version} names the SDK {kind}, and these wheels are for {wanted}")
    declared = False
    for name, file in files:
        if name.endswith(f".so{DECLARATION}"):
            declared = True
            if (says := file.read_text().strip()) != kind:
                found.append(f"{wheel}: {name} names the SDK {says!r}, and version {version} {kind!r}")
        if own or not SHARED_OBJECT.search(name):
            continue
        needed = needed_symbols(file)
        for owner, pattern in SYMBOLS_OF.items():
            symbols = [] if owner == kind else list(filter(pattern.search, needed))
            if symbols:
                found.append(
                    f"{wheel}: {name} needs {symbols[0]}, one of {len(symbols)} symbols that only the SDK "
                    f"{owner} has, and version {version} does not name it"
                )
    if kind and not declared:
        found.append(
            f"{wheel}: version {version} names the SDK {kind}, and no file <library>{DECLARATION} does"
        )
    return found


def check_wheels(wheels: Sequence[Path], sdk: str = "") -> list[str]:
    """Returns problems in wheels of one release, as lines that name wheel and file.

    Wheels of one distribution, for several versions of Python, have the same files. sdk: the kind of SDK that
    they were built for; "" accepts any.
    """
    found = []

    def contents() -> Iterable[tuple[str, str, Path]]:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                # auditwheel adds entries for folders
                names = [name for name in archive.namelist() if not name.endswith("/")]
                files = [(name, Path(archive.extract(name, folder))) for name in names]
                for name, file in files:
                    if name.endswith(".dist-info/METADATA"):
                        text = file.read_text()
                        found.extend(check_metadata(wheel.name, text))
                        found.extend(check_sdk(wheel.name, text, files, sdk))
                yield from ((wheel.name.partition("-")[0], name, file) for name, file in files)

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
