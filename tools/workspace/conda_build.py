# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Renders the conda recipe, builds outputs of it without an online channel, and tests them.

`workspace.conda` runs this script with the Python of the release tools, which has rattler-build. Requirements
of the outputs come from a local channel: conda packages made from files of this machine, namely Python, the
compiler and the distributions of .venv. They replace conda-forge's.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import rattler_build

PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
PYTHON_VERSION = sys.version.split()[0]
# Distributions that the outputs require; their own requirements are added.
DISTRIBUTIONS = ("pip", "scikit-build-core", "pybind11", "pluggy", "PyYAML", "setuptools", "tomli", "torch")
CONDA_NAMES = {"torch": "pytorch"}
# Parts of Python that builds do not need.
LEFT_OUT = {"test", "tests", "__pycache__", "site-packages", "idlelib"}
SUBDIRS = ("linux-64", "noarch")
# Run when a build environment is activated. The machine's compiler has its own sysroot.
ACTIVATION = 'export CC="$(command -v gcc)" CXX="$(command -v g++)"\n'

Files = list[tuple[Path, str]]


def conda_name(name: str) -> str:
    normal = re.sub(r"[-_.]+", "-", name).lower()
    return CONDA_NAMES.get(normal, normal)


class Channel:
    """A conda channel in a local folder.

    Attributes:
        packages: the entries of its index, by file name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages: dict[str, dict[str, Any]] = {}
        shutil.rmtree(folder, ignore_errors=True)
        for subdir in SUBDIRS:
            (folder / subdir).mkdir(parents=True)

    @property
    def names(self) -> set[str]:
        return {entry["name"] for entry in self.packages.values()}

    def add(self, name: str, version: str, files: Files, depends: list[str]) -> None:
        made = rattler_build.assemble_package(
            name,
            version,
            SUBDIRS[0],
            "0",
            self.folder / SUBDIRS[0],
            files=[rattler_build.FileEntry.from_paths(source, target) for source, target in files],
            depends=depends,
            compression_level=1,
            detect_prefix=False,
        )
        data = Path(made.path).read_bytes()
        self.packages[Path(made.path).name] = {
            "name": name,
            "version": version,
            "build": "0",
            "build_number": 0,
            "depends": depends,
            "subdir": SUBDIRS[0],
            "sha256": hashlib.sha256(data).hexdigest(),
            "size": len(data),
        }

    def write_index(self) -> None:
        for subdir, packages in zip(SUBDIRS, (self.packages, {}), strict=True):
            index = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
            (self.folder / subdir / "repodata.json").write_text(json.dumps(index))


def python_files() -> Files:
    base, found = Path(sys.base_prefix), []
    for top in ("bin", "include", "lib"):
        for path in sorted((base / top).rglob("*")):
            name = path.relative_to(base)
            is_file = path.is_symlink() or path.is_file()
            other = top == "bin" and not path.name.startswith("python")
            if is_file and not other and path.suffix != ".a" and not LEFT_OUT & set(name.parts):
                found.append((path, str(name)))
    return found


def below(folder: Path, prefix: str = "") -> Files:
    return [
        (path, f"{prefix}{path.relative_to(folder)}") for path in sorted(folder.rglob("*")) if path.is_file()
    ]


def add_distributions(channel: Channel, site: Path) -> None:
    """Adds DISTRIBUTIONS and their requirements, from .venv or else from the release tools.

    site: site-packages of .venv.
    """
    folders = [str(site), sysconfig.get_path("purelib")]
    waiting = list(DISTRIBUTIONS)
    while waiting:
        name = waiting.pop()
        found = next(iter(metadata.distributions(name=name, path=folders)), None)
        if found is None or conda_name(name) in channel.names:
            continue  # required on another system only
        required = [text for text in found.requires or () if "extra ==" not in text]
        needed = [re.match(r"[\w.-]+", text).group() for text in required]
        needed = [other for other in needed if any(metadata.distributions(name=other, path=folders))]
        files = [
            (Path(str(found.locate_file(file))), f"lib/{PYTHON}/site-packages/{file}")
            for file in found.files or ()
            if file.parts[0] != ".." and "__pycache__" not in file.parts
        ]
        depends = [f"python {PYTHON_VERSION}", *map(conda_name, needed)]
        channel.add(conda_name(name), found.version.partition("+")[0], files, depends)
        waiting += needed


def make_channel(folder: Path, site: Path) -> Channel:
    """Makes a channel with all requirements of the outputs. site: site-packages of .venv."""
    channel = Channel(folder / "channel")
    channel.add("python", PYTHON_VERSION, python_files(), [])
    add_distributions(channel, site)
    [cmake] = metadata.distributions(name="cmake", path=[str(site)])
    [ninja] = metadata.distributions(name="ninja", path=[str(site)])
    data = site / "cmake" / "data"
    channel.add("cmake", cmake.version, below(data / "bin", "bin/") + below(data / "share", "share/"), [])
    channel.add("ninja", ninja.version, [(site.parents[2] / "bin" / "ninja", "bin/ninja")], [])
    script = folder / "activate.sh"
    script.write_text(ACTIVATION)
    done = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True, check=True)
    channel.add("gxx_linux-64", done.stdout.strip(), [(script, "etc/conda/activate.d/gxx.sh")], [])
    channel.add("sysroot_linux-64", "2.28", [(script, "share/stand-in/sysroot")], [])
    channel.write_index()
    return channel


def contents(package: Path, member: str) -> dict[str, Any]:
    """Returns a JSON file from a package's info section."""
    unpacked = package.with_suffix(".info")
    shutil.rmtree(unpacked, ignore_errors=True)
    with zipfile.ZipFile(package) as archive:
        [part] = [name for name in archive.namelist() if name.startswith("info-")]
        archive.extract(part, unpacked)
    subprocess.run(["tar", "--zstd", "-xf", unpacked / part, "-C", unpacked], check=True)
    return json.loads((unpacked / "info" / member).read_text())


def build(outputs: list[Any], channel: Channel, folder: Path) -> dict[str, dict[str, Any]]:
    """Builds outputs in order, then tests those whose requirements are available.

    Packages built by an earlier call in the folder can be used as requirements.
    """
    built: dict[str, dict[str, Any]] = {}
    packages: dict[str, Path] = {}
    earlier = {file.name.rsplit("-", 2)[0] for file in (folder / "output").glob("*/*.conda")}
    channels = [channel.folder.as_uri(), *([(folder / "output").as_uri()] if earlier else [])]
    for output in outputs:
        name = str(output.recipe.package.name)
        done = output.run_build(
            rattler_build.ToolConfiguration(test_strategy="skip", use_sharded=False),
            folder / "output",
            channels=channels,
        )
        print("\n".join(done.log), flush=True)
        [packages[name]] = [Path(path) for path in done.packages]
        index = contents(packages[name], "index.json")
        built[name] = {
            "package": f"{index.get('subdir')}/{packages[name].name}",
            "bytes": packages[name].stat().st_size,
            "files": len(contents(packages[name], "paths.json")["paths"]),
            "depends": index["depends"],
        }
    for name, entry in built.items():
        lacks = {text.split()[0] for text in entry["depends"]} - channel.names - packages.keys() - earlier
        entry["not_tested"] = sorted(lacks)
        if not lacks and not test(packages[name], [channels[0], (folder / "output").as_uri()]):
            entry["not_tested"] = ["tests in the recipe"]
    return built


def test(package: Path, channels: list[str]) -> int:
    """Runs the tests of a package and returns their number; exits if one fails."""
    results = rattler_build.Package.from_file(package).run_tests(channel=channels, use_sharded=False)
    for result in results:
        if not result.success:
            sys.exit("\n".join([*result.output, f"a test of {package.name} failed"]))
    return len(results)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path, help="folder of the recipe")
    parser.add_argument("--site", type=Path, required=True, help="site-packages of .venv")
    parser.add_argument("--folder", type=Path, required=True, help="for the channel and the packages")
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--build", action="append", default=[], help="name of an output")
    chosen = parser.parse_args(arguments)
    recipe = rattler_build.stage0.Stage0Recipe.from_file(chosen.recipe / "recipe.yaml")
    variants = rattler_build.VariantConfig.from_file(chosen.recipe / "variants.yaml")
    rendered = list(recipe.render(variants))
    rows = [[str(output.recipe.package.name), dict(output.variant)] for output in rendered]
    record: dict[str, Any] = {"rendered": rows}
    if chosen.build:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        channel = make_channel(chosen.folder, chosen.site)
        record["stand_ins"] = sorted(f"{e['name']} {e['version']}" for e in channel.packages.values())
        own = f"{PYTHON.removeprefix('python')}.*"
        outputs = {
            name: output
            for (name, variant), output in zip(rows, rendered, strict=True)
            if name in chosen.build and variant.get("python", own) == own
        }
        record["built"] = build(list(outputs.values()), channel, chosen.folder)
    chosen.log.write_text(json.dumps(record))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
