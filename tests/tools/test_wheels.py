# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The wheels: their files and metadata, and the packages that their extras install."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import musa_runtime
from workspace import packages, torch_metadata, wheel_check

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "mudnn,ported,math,port,amp,distributed,compile,vision,serving,vllm,compat,as-cuda,emulator"
# Python alone, or no torch.
WITHOUT_TORCH = {"musa-emulator", "torch-musa", "musa-port", "musa-as-cuda", "vllm-torch-musa"}


def project(name: str, minor: str = musa_runtime.TORCH_MINOR, sdk: str = "emulator") -> dict:
    """`[project]` of a package in a build with that minor of torch and that kind of SDK."""
    settings = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
    (dynamic,) = settings["tool"].get("dynamic-metadata", [None])
    kind = sdk if dynamic and dynamic.get("kernels") else None
    generated = torch_metadata.for_minor(dynamic, minor, kind) if dynamic else {}
    return {**settings["project"], **generated}


# -- one wheel


def make_wheel(folder: Path, wheel: str, library: str, *flags: str) -> Path:
    built = folder / "lib.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", built, *flags], check=True)
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.write(built, library)
        archive.writestr(f"{library.split('/')[0]}/module.py", "")
    return folder / wheel


def test_good_wheels_are_accepted(tmp_path):
    paths = "-Wl,-rpath,$ORIGIN:$ORIGIN/../../torch/lib"
    one = make_wheel(tmp_path, "one.whl", "one/lib/libone.so", paths)
    # Extension modules of one name in two packages are two modules, and wheels may have the same folder.
    two = make_wheel(tmp_path, "two.whl", "two/_C.cpython-311-x86_64-linux-gnu.so")
    three = make_wheel(tmp_path, "three.whl", "three/_C.cpython-311-x86_64-linux-gnu.so")
    for number, wheel in enumerate((one, two)):
        with zipfile.ZipFile(wheel, "a") as archive:
            archive.writestr("a/", "")
            archive.writestr(f"a/module_{number}.py", "")
    assert wheel_check.check_wheels([one, two, three]) == []


def test_bad_wheels_are_refused(tmp_path):
    paths = "-Wl,-rpath,$ORIGIN:/opt/build/lib"
    absolute = make_wheel(tmp_path, "absolute.whl", "a/lib/libabsolute.so", paths)
    assert "'/opt/build/lib'" in wheel_check.check_wheels([absolute])[0]
    grafted = make_wheel(tmp_path, "grafted.whl", "a.libs/libtorch_cpu.so")
    assert "torch's wheel" in wheel_check.check_wheels([grafted])[0]
    first = make_wheel(tmp_path, "first.whl", "a/lib/libmusa_runtime.so")
    second = make_wheel(tmp_path, "second.whl", "b/lib/libmusa_runtime.so")
    [found] = wheel_check.check_wheels([first, second])
    assert "libmusa_runtime.so is in first.whl too" in found
    same_module = make_wheel(tmp_path, "third.whl", "a/_C.abi3.so")
    found = wheel_check.check_wheels([first, same_module])
    assert found == [
        "third.whl: a/module.py is in first.whl too; one of the two copies would be used for both"
    ]


@pytest.mark.parametrize(
    ("name", "version", "requires", "bad"),
    [
        ("musa-runtime", "0.1.0+torch2.13", ["torch==2.13.*"], ""),
        ("musa-amp", "0.1.0+torch2.13.musa4", ["torch==2.13.*", "musa-runtime==0.1.*"], ""),
        ("musa-emulator-mccl", "0.1.0+torch2.13", ["musa-emulator==0.1.*", "torch==2.13.*"], ""),
        ("torch-musa", "0.1.0", ["torch<2.16,>=2.11", "musa-emulator==0.1.*; extra == 'emulator'"], ""),
        ("musa-amp", "0.1.0+torch2.13.emulator", ["torch==2.14.*"], "should require ['torch==2.13.*']"),
        ("musa-runtime", "0.1.0+torch2.13", ["torch>=2.11"], "should require ['torch==2.13.*']"),
        ("torch-musa", "0.1.0", ["torch==2.13.*"], "should require []"),
        ("musa-amp", "0.1.0", ["musa-emulator-mudnn==0.1.*"], "requires musa-emulator-mudnn==0.1.*"),
    ],
)
def test_a_wheel_requires_its_torch_and_no_emulator(name, version, requires, bad):
    lines = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    text = "\n".join([*lines, *(f"Requires-Dist: {requirement}" for requirement in requires), ""])
    found = wheel_check.check_metadata("a.whl", text)
    assert len(found) == bool(bad) and all(bad in line for line in found), found


# The packages with kernels, measured by their undefined symbols.
WITH_KERNELS = {"musa-amp", "musa-ops-math", "musa-ops-ported", "musa-ops-serving", "musa-ops-vision"}


def test_the_installed_packages_pass_the_check_of_wheels():
    contents = []
    for name in packages.package_names():
        distribution = importlib.metadata.distribution(name)
        assert wheel_check.check_metadata(name, distribution.read_text("METADATA")) == []
        assert ("+torch" in distribution.version) == (name not in WITHOUT_TORCH)
        files = distribution.files
        own = [(name, str(file), Path(file.locate())) for file in files if file.suffix != ".pyc"]
        assert wheel_check.check_sdk(name, distribution.read_text("METADATA"), [row[1:] for row in own]) == []
        label = wheel_check.LABEL.search(distribution.version)
        assert bool(label and label[2]) == (name in WITH_KERNELS), distribution.version
        contents += own
    libraries = [name for _, name, _ in contents if wheel_check.SHARED_OBJECT.search(name)]
    assert len([name for name in libraries if Path(name).name.startswith("_C.")]) >= 2, libraries
    assert wheel_check.check_contents(contents) == []


@pytest.mark.parametrize(
    ("version", "declared", "symbol", "wanted", "bad"),
    [
        ("+torch2.13.emulator", "emulator", "musa_simt_register", "", ""),
        ("+torch2.13.emulator", "emulator", "musa_simt_register", "emulator", ""),
        ("+torch2.13.musa4", "musa4", "musaMalloc", "musa4", ""),
        ("+torch2.13.cuda", "cuda", "__cudaRegisterFatBinary", "", ""),
        ("+torch2.13", None, "musaMalloc", "musa4", ""),
        ("+torch2.13.emulator", "emulator", "musa_simt_register", "musa4", "these wheels are for musa4"),
        ("+torch2.13.musa4", "musa4", "musa_simt_register", "", "needs musa_simt_register"),
        ("+torch2.13", None, "musa_simt_register", "", "needs musa_simt_register"),
        ("+torch2.13", None, "torch_musa_capability", "", "needs torch_musa_capability"),
        ("+torch2.13.musa4", "musa4", "__cudaRegisterFatBinary", "", "only the SDK cuda has"),
        ("+torch2.13.musa4", "musa5", "musaMalloc", "", "names the SDK 'musa5'"),
        ("+torch2.13", "musa4", "musaMalloc", "", "names the SDK 'musa4'"),
        ("+torch2.13.musa4", None, "musaMalloc", "", "no file <library>.sdk does"),
    ],
)
def test_a_wheel_names_the_sdk_whose_symbols_it_needs(tmp_path, version, declared, symbol, wanted, bad):
    library = tmp_path / "libpack.so"
    source = f'extern "C" int {symbol}(); int use() {{ return {symbol}(); }}'
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)
    files = [("pack/lib/libpack.so", library)]
    if declared:
        (tmp_path / "libpack.so.sdk").write_text(f"{declared}\n")
        files.append(("pack/lib/libpack.so.sdk", tmp_path / "libpack.so.sdk"))
    text = f"Metadata-Version: 2.4\nName: musa-amp\nVersion: 0.1.0{version}\n"
    found = wheel_check.check_sdk("a.whl", text, files, wanted)
    assert len(found) == bool(bad) and all(bad in line for line in found), found


def test_a_weak_symbol_of_the_emulator_is_not_needed(tmp_path):
    library = tmp_path / "libpack.so"
    name = "torch_musa_capability"
    source = f'extern "C" __attribute__((weak)) int {name}(); int use() {{ return {name} ? {name}() : 0; }}'
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", library]
    subprocess.run(command, input=source, text=True, check=True)
    text = "Metadata-Version: 2.4\nName: musa-runtime\nVersion: 0.1.0+torch2.13\n"
    assert wheel_check.check_sdk("a.whl", text, [("a/lib/libpack.so", library)], "musa4") == []


def test_a_wheel_of_the_emulator_is_not_for_another_sdk():
    text = "Metadata-Version: 2.4\nName: musa-emulator-mccl\nVersion: 0.1.0+torch2.13\n"
    [found] = wheel_check.check_sdk("a.whl", text, [], "musa4")
    assert "belongs to the emulator" in found


# -- packages of the extras


def write_stub(folder: Path, name: str, version: str, requires=(), extras=()) -> None:
    """A wheel of metadata alone, which is sufficient for pip's resolver."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += [f"Provides-Extra: {extra}" for extra in extras]
    lines += [f"Requires-Dist: {requirement}" for requirement in requires]
    with zipfile.ZipFile(folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{info}/METADATA", "\n".join(lines) + "\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def resolve(folder: Path, *requirements: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pip", "--isolated", "install", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--no-index", "--find-links", str(folder), "--report", "-", *requirements]
    return subprocess.run(command, capture_output=True, text=True)


def write_family(folder: Path, minor: str, sdk: str = "emulator") -> None:
    """The wheels of all packages, built for one minor of torch and one kind of SDK."""
    for name in packages.package_names():
        metadata = project(name, minor, sdk)
        extras = metadata.get("optional-dependencies", {})
        requires = list(metadata.get("dependencies", ()))
        for extra, requirements in extras.items():
            requires += [f'{requirement}; extra == "{extra}"' for requirement in requirements]
        write_stub(folder, name, metadata["version"], requires, extras)


def write_others(folder: Path, *torches: str) -> None:
    others = {"pluggy": "1.7.0", "PyYAML": "6.0.3", "tomli": "2.4.1", "setuptools": "84"}
    for name, version in (*others.items(), *(("torch", version) for version in torches)):
        write_stub(folder, name, version)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("stubs")
    write_family(folder, musa_runtime.TORCH_MINOR)
    write_others(folder, f"{musa_runtime.TORCH_MINOR}.0")
    return folder


def test_the_extras_bring_every_package(stubs):
    family = set(packages.package_names())
    emulator = {name for name in family if name.startswith("musa-emulator")}
    for extras, expected in ((EXTRAS, family), ("emulator", emulator)):
        done = resolve(stubs, f"torch-musa[{extras}]")
        assert done.returncode == 0, done.stderr
        assert expected <= {entry["metadata"]["name"] for entry in json.loads(done.stdout)["install"]}


PAGES_WITH_COMMANDS = re.compile(r"^(?:user/bin/)?pip install torch==\S+ (.+)$", re.MULTILINE)


def needed_from_an_index(python: str) -> set[str]:
    """Distributions that the family requires on a version of Python, except its own and those of torch."""
    family = set(packages.package_names())
    found = set()
    for name in family:
        for text in project(name).get("dependencies", ()):
            requirement = Requirement(text)
            environment = {"python_version": python, "python_full_version": f"{python}.0"}
            if requirement.marker is None or requirement.marker.evaluate(environment):
                found.add(requirement.name)
    with_torch = {Requirement(text).name for text in importlib.metadata.requires("torch") or ()}
    return found - family - with_torch - {"torch"}


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_the_pages_install_what_the_wheels_need_from_an_index(python):
    lines = []
    for page in (
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("README*.md"),
        *(ROOT / "packages").glob("*/README.md"),
    ):
        text = page.read_text(encoding="utf-8")
        # Pages for newer versions of Python need not install what older ones lack.
        if python != "3.10" or not re.search("Python 3.11 (?:or newer|及以上)", text):
            lines += [(page, line) for line in PAGES_WITH_COMMANDS.findall(text) if "pluggy" in line]
    assert len(lines) >= 4
    needed = needed_from_an_index(python)
    assert "pluggy" in needed and ("tomli" in needed) == (python == "3.10")
    needed.add("numpy")  # which torch does not require, but warns at the first tensor without it
    for page, line in [*lines, (None, "numpy PyYAML 'setuptools>=70' tomli")]:
        listed = {Requirement(word).name for word in shlex.split(line)}
        assert needed - listed == (set() if page else {"pluggy"}), page


# The value of an entry point: a module, an attribute in it, extras.
REFERENCE = re.compile(r"[\w.]+(?:\s*:\s*[\w.]+)?(?:\s*\[.*\])?")


def wrong_entry_points(settings: dict) -> list[str]:
    """The entry points of a `[project]` whose values are no references to an object of Python."""
    groups = {**settings.get("entry-points", {}), "scripts": settings.get("scripts", {})}
    return [
        f"{group}: {name} = {value}"
        for group, entries in groups.items()
        for name, value in entries.items()
        if not REFERENCE.fullmatch(value)
    ]


def test_every_entry_point_is_a_reference_to_an_object():
    """pip on Python 3.10 refuses a wheel with another value."""
    wrong = {name: found for name in packages.package_names() if (found := wrong_entry_points(project(name)))}
    assert wrong == {}
    assert wrong_entry_points({"entry-points": {"a": {"b": "as-cuda", "c": "d.e:f"}}}) == ["a: b = as-cuda"]


def test_an_extra_that_names_no_package_of_the_workspace_is_noticed(stubs, tmp_path):
    for wheel in stubs.glob("*.whl"):
        (tmp_path / wheel.name).write_bytes(wheel.read_bytes())
    (tmp_path / next(stubs.glob("musa_emulator_mccl-*.whl")).name).unlink()
    done = resolve(tmp_path, "torch-musa[emulator]")
    assert done.returncode != 0 and "musa-emulator-mccl" in done.stderr


class Environment:
    """An empty virtual environment, into which pip installs from one folder."""

    def __init__(self, folder: Path, index: Path) -> None:
        venv.create(folder, symlinks=True)
        self.folder = folder
        self.index = index

    def pip(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pip", "--isolated", "--python", self.folder / "bin" / "python"]
        return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)

    def install(self, *requirements: str) -> str:
        """The error output of pip, which has to succeed."""
        done = self.try_install(*requirements)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def try_install(self, *requirements: str) -> subprocess.CompletedProcess[str]:
        return self.pip("install", "--no-index", "--find-links", str(self.index), *requirements)

    def versions(self) -> dict[str, str]:
        [site] = (self.folder / "lib").glob("python*/site-packages")
        return {found.name: found.version for found in importlib.metadata.distributions(path=[str(site)])}

    def releases(self) -> set[str]:
        """The releases of the installed packages of the family."""
        family = packages.package_names()
        return {version.partition("+")[0] for name, version in self.versions().items() if name in family}


# -- one folder of wheels for several minors of torch


@pytest.fixture(scope="module")
def two_minors(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("minors")
    for minor in ("2.13", "2.14"):
        write_family(folder, minor)
    write_others(folder, "2.13.1", "2.14.0")
    return folder


@pytest.mark.parametrize("minor", ["2.13", "2.14"])
def test_pip_takes_the_wheels_for_the_requested_torch(two_minors, minor):
    done = resolve(two_minors, f"torch-musa[{EXTRAS}]", f"torch=={minor}.*")
    assert done.returncode == 0, done.stderr
    entries = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    labels = {entry["name"]: entry["version"].partition("+")[2] for entry in entries}
    compiled = [name for name in packages.package_names() if "+" in project(name)["version"]]
    expected = {name: project(name, minor)["version"].partition("+")[2] for name in compiled}
    assert {name: labels[name] for name in compiled} == expected and len(compiled) >= 8
    assert set(expected.values()) == {f"torch{minor}", f"torch{minor}.emulator"}
    # A command that does not name torch installs the newest one. So the documented commands name it.
    done = resolve(two_minors, "torch-musa")
    found = {entry["metadata"]["name"]: entry["metadata"] for entry in json.loads(done.stdout)["install"]}
    assert found["torch"]["version"] == "2.14.0"
    done = resolve(two_minors, "torch-musa", "torch==2.12.*")
    assert done.returncode != 0 and "torch==2.12.*" in done.stderr


# -- one folder of wheels for several SDKs


def chosen(folder: Path, *requirements: str) -> dict[str, str]:
    """The versions that pip selects."""
    done = resolve(folder, *requirements)
    assert done.returncode == 0, done.stderr
    entries = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return {entry["name"]: entry["version"] for entry in entries}


@pytest.mark.parametrize(
    ("kinds", "taken"),
    [
        (("emulator", "musa4"), "musa4"),
        (("cuda", "emulator"), "emulator"),
        (("musa4", "musa5"), "musa5"),
    ],
)
def test_pip_takes_the_sdk_whose_name_is_last_in_the_alphabet(tmp_path, kinds, taken):
    """Also beside the emulator. So each SDK has its folder: docs/design/packaging.md."""
    minor = musa_runtime.TORCH_MINOR
    for kind in kinds:
        write_family(tmp_path, minor, kind)
    write_others(tmp_path, f"{minor}.0")
    for extras in ("all", "all,emulator"):
        found = chosen(tmp_path, f"torch-musa[{extras}]")
        assert {found[name] for name in WITH_KERNELS} == {f"0.1.0+torch{minor}.{taken}"}
    # An exact version selects the other one, and a pin between the packages accepts both.
    other = next(kind for kind in kinds if kind != taken)
    exact = [f"{name}==0.1.0+torch{minor}.{other}" for name in WITH_KERNELS]
    found = chosen(tmp_path, "torch-musa[all]", *exact)
    assert {found[name] for name in WITH_KERNELS} == {f"0.1.0+torch{minor}.{other}"}


def test_an_installation_for_one_sdk_is_replaced_by_an_exact_version_or_by_force(tmp_path):
    """pip keeps an installed wheel of the release, and regards the SDK of the later name as newer."""
    minor = musa_runtime.TORCH_MINOR
    for kind in ("emulator", "musa4"):
        (tmp_path / kind).mkdir()
        write_family(tmp_path / kind, minor, kind)
        write_others(tmp_path / kind, f"{minor}.0")
    environment = Environment(tmp_path / "environment", tmp_path / "emulator")

    def install(kind: str, *arguments: str) -> str:
        environment.index = tmp_path / kind
        environment.install(*arguments)
        return environment.versions()["musa-amp"].rpartition(".")[2]

    assert install("emulator", "torch-musa[amp]") == "emulator"
    assert install("musa4", "--upgrade", "torch-musa[amp]") == "emulator"
    assert install("musa4", "--upgrade", "musa-amp") == "musa4"
    assert install("emulator", "--upgrade", "musa-amp") == "musa4"
    assert install("emulator", "--force-reinstall", "--no-deps", "musa-amp") == "emulator"
    assert install("musa4", f"musa-amp==0.1.0+torch{minor}.musa4") == "musa4"
    assert install("emulator", f"musa-amp==0.1.0+torch{minor}.emulator") == "emulator"
