# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks wheels: their files, the systems that their libraries load on, and their metadata."""

import hashlib
import json
import re
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import sysroot, underscored, wheel_metadata

# A second copy of one of these in a process is a second dispatcher without registered operators.
TORCH_LIBRARY = re.compile(r"lib(torch|c10|shm|gomp)([_.-]|$)")
SHARED_OBJECT = re.compile(r"\.so(\.\d+)*$")
PLATFORM = f"manylinux_{sysroot.GLIBC[0]}_{sysroot.GLIBC[1]}_x86_64"
ELF = b"\x7fELF"


def search_paths(library: Path) -> list[str]:
    """Returns the entries of RPATH and RUNPATH, as printed by readelf."""
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


def check_wheels(wheels: Sequence[Path]) -> list[str]:
    """Returns problems in the files of the wheels, as lines that name wheel and file."""

    def contents() -> Iterable[tuple[str, str, Path]]:
        for wheel in wheels:
            with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if not name.endswith("/"):  # auditwheel adds entries for folders
                        yield wheel.name, name, Path(archive.extract(name, folder))

    return check_contents(contents())


# -- the systems that the libraries load on


@dataclass
class Symbols:
    """The symbols that ELF files need and define.

    Attributes:
        needs: the newest version of each family, such as {"GLIBC": "2.17"}.
        undefined: names without a version, which another library must define.
        defined: defined names.
    """

    needs: dict[str, str] = field(default_factory=dict)
    undefined: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)


def symbols_of(file: Path) -> Symbols:
    listed = subprocess.run(
        ["readelf", "--dyn-syms", "--wide", file], capture_output=True, text=True, check=True
    )
    result = Symbols()
    for line in listed.stdout.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].rstrip(":").isdigit():
            continue
        name, _, version = fields[7].partition("@")
        if fields[6] != "UND":
            result.defined.add(name)
        elif version:
            family, _, number = version.partition("_")
            if re.fullmatch(r"[\d.]+", number) and family in sysroot.NEWEST:
                result.needs[family] = newest(result.needs.get(family, "0"), number)
        elif fields[4] != "WEAK":
            result.undefined.add(name)
    return result


def newest(one: str, other: str) -> str:
    return max(one, other, key=lambda version: [int(part) for part in version.split(".")])


def too_new(needs: Mapping[str, str]) -> list[str]:
    """Returns the needed versions that systems of the platform tag may lack."""
    versions = [f"{family}_{version}" for family, version in sorted(needs.items())]
    return [version for version in versions if not sysroot.is_old_enough(version)]


def check_symbols(wheels: Mapping[str, Mapping[str, Symbols]], provided: set[str] | None) -> list[str]:
    """Returns versions that are too new, and names that no library defines.

    wheels: the ELF files of each wheel; provided: names that torch defines, or None if wheels that define
    names are missing, so that only versions can be checked.
    """
    every = [symbols for files in wheels.values() for symbols in files.values()]
    defined = (provided or set()).union(*(symbols.defined for symbols in every))
    found = []
    for wheel, files in wheels.items():
        for name, symbols in files.items():
            found += [
                f"{wheel}: {name} needs {version}, and {PLATFORM} promises less"
                for version in too_new(symbols.needs)
            ]
            if provided is None:
                continue
            missing = {text for text in symbols.undefined - defined if not text.lstrip("_").startswith("Py")}
            found += [f"{wheel}: {name} needs {text}, which no library defines" for text in sorted(missing)]
    return found


# -- what a package index and its users need


@dataclass(frozen=True)
class Wheel:
    """A wheel unpacked in a folder."""

    file: Path
    folder: Path

    @property
    def info(self) -> Path:
        [found] = self.folder.glob("*.dist-info")
        return found

    @property
    def names(self) -> list[str]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.folder).as_posix() for path in files)

    @property
    def metadata(self) -> str:
        return (self.info / "METADATA").read_text(encoding="utf-8")

    def elf_files(self) -> list[str]:
        def is_elf(name: str) -> bool:
            with (self.folder / name).open("rb") as file:
                return file.read(len(ELF)) == ELF

        return [name for name in self.names if is_elf(name)]


def check_tag(wheel: Wheel) -> list[str]:
    """Checks that wheels with libraries have a platform tag, and others none."""
    platform = wheel.file.stem.rpartition("-")[2]
    wanted = PLATFORM if wheel.elf_files() else "any"
    return [] if platform == wanted else [f"the platform tag is {platform}, and should be {wanted}"]


def check_folders(wheel: Wheel, folders: Iterable[str]) -> list[str]:
    """Returns files that contain the name of a folder on the build machine."""
    contents = {name: (wheel.folder / name).read_bytes() for name in wheel.names}
    return [
        f"{name} holds {folder}, a folder of the machine that built it"
        for folder in folders
        for name, data in contents.items()
        if folder.encode() in data
    ]


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def check_bill(wheel: Wheel) -> list[str]:
    """Checks that the bill of materials names this wheel and its ELF files with digests."""
    bills = list((wheel.info / "sboms").glob("*.cdx.json"))
    if len(bills) != 1:
        return [f"{wheel.info.name}/sboms holds {len(bills)} bills of materials, one is needed"]
    bill = json.loads(bills[0].read_text(encoding="utf-8"))
    subject = bill["metadata"]["component"]
    named = f"{underscored(subject['name'])}-{subject['version']}.dist-info"
    found = [] if named == wheel.info.name else [f"the bill of materials is one of {named}"]
    files = [part for part in bill.get("components", []) if part["type"] == "file"]
    listed = {part["name"]: part["hashes"][0]["content"] for part in files}
    actual = {name: digest(wheel.folder / name) for name in wheel.elf_files()}
    differing = {name for name in listed.keys() | actual.keys() if listed.get(name) != actual.get(name)}
    return found + [
        f"the bill of materials has another digest of {name}, or none" for name in sorted(differing)
    ]


def check_publishable(wheel: Wheel, folders: Iterable[str]) -> list[str]:
    """Returns problems that prevent publishing. folders: names that must not be in its files."""
    names = [name.partition("/")[2] for name in wheel.names if name.startswith(f"{wheel.info.name}/")]
    found = wheel_metadata.problems(wheel.metadata, names)
    found += check_tag(wheel) + check_folders(wheel, folders) + check_bill(wheel)
    return [f"{wheel.file.name}: {text}" for text in found]
