# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The wheels: their files, the packages that their extras install, and a clean environment made of them."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import musa_runtime
from tests.harness.clean_environment import CleanEnvironment
from workspace import packages, torch_metadata, wheel_check

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = "mudnn,ported,port,amp,distributed,compile,vision,compat,as-cuda,emulator"
# One step of training with autocast, through muDNN, the ported kernels, MCCL and the emulator.
TRAINING_STEP = """
import torch, torch.distributed as dist
dist.init_process_group("mccl", rank=0, world_size=1, store=dist.HashStore())
layers = torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 4)
model = torch.nn.Sequential(*layers)
model = torch.nn.parallel.DistributedDataParallel(model.to("musa"), device_ids=[0])
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("musa")
x, y = torch.randn(16, 3, 8, 8, device="musa"), torch.randint(4, (16,), device="musa")
losses = []
for _ in range(5):
    with torch.autocast("musa"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
dist.destroy_process_group()
print("trained")
"""


def project(name: str, minor: str = musa_runtime.TORCH_MINOR) -> dict:
    """`[project]` of a package in a build with that minor of torch."""
    settings = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
    (dynamic,) = settings["tool"].get("dynamic-metadata", [None])
    generated = torch_metadata.for_minor(dynamic, minor) if dynamic else {}
    return {**settings["project"], **generated}


# -- files of a wheel


def make_wheel(folder: Path, wheel: str, library: str, *flags: str) -> Path:
    built = folder / "lib.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", built, *flags], check=True)
    with zipfile.ZipFile(folder / wheel, "w") as archive:
        archive.write(built, library)
        archive.writestr(f"{library.split('/')[0]}/module.py", "")
    return folder / wheel


def test_a_wheel_that_searches_its_own_folder_is_good(tmp_path):
    paths = "-Wl,-rpath,$ORIGIN:$ORIGIN/../../torch/lib"
    one = make_wheel(tmp_path, "one.whl", "one/lib/libone.so", paths)
    two = make_wheel(tmp_path, "two.whl", "two/lib/libtwo.so")
    assert wheel_check.search_paths(tmp_path / "lib.so") == []
    assert wheel_check.check_wheels([one, two]) == []


def test_extension_modules_of_one_name_in_two_packages_are_two_modules(tmp_path):
    one = make_wheel(tmp_path, "one.whl", "one/_C.cpython-311-x86_64-linux-gnu.so")
    two = make_wheel(tmp_path, "two.whl", "two/_C.cpython-311-x86_64-linux-gnu.so")
    assert wheel_check.check_wheels([one, two]) == []


def test_two_wheels_may_have_entries_for_one_folder(tmp_path):
    wheels = [make_wheel(tmp_path, f"{name}.whl", f"a/lib/lib{name}.so") for name in ("one", "two")]
    for number, wheel in enumerate(wheels):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("a/", "")
            archive.writestr(f"a/module_{number}.py", "")
    assert wheel_check.check_wheels(wheels) == []


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


def test_the_installed_packages_pass_the_check_of_wheels():
    contents = []
    for name in packages.package_names():
        files = importlib.metadata.distribution(name).files
        contents += [(name, str(file), Path(file.locate())) for file in files if file.suffix != ".pyc"]
    libraries = [name for _, name, _ in contents if wheel_check.SHARED_OBJECT.search(name)]
    assert len([name for name in libraries if Path(name).name.startswith("_C.")]) >= 2, libraries
    assert wheel_check.check_contents(contents) == []


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


def write_family(folder: Path, minor: str) -> None:
    """The wheels of all packages, built for one minor of torch."""
    for name in packages.package_names():
        metadata = project(name, minor)
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
    done = resolve(stubs, f"torch-musa[{EXTRAS}]")
    assert done.returncode == 0, done.stderr
    installed = {entry["metadata"]["name"] for entry in json.loads(done.stdout)["install"]}
    assert set(packages.package_names()) <= installed


PAGES_WITH_COMMANDS = re.compile(r"^pip install torch==\S+ (.+)$", re.MULTILINE)


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
        ROOT / "README.md",
        *(ROOT / "packages").glob("*/README.md"),
    ):
        text = page.read_text(encoding="utf-8")
        # Pages for newer versions of Python need not install what older ones lack.
        if python != "3.10" or "Python 3.11 or newer" not in text:
            lines += [(page, line) for line in PAGES_WITH_COMMANDS.findall(text) if "pluggy" in line]
    assert len(lines) >= 4
    needed = needed_from_an_index(python)
    assert "pluggy" in needed and ("tomli" in needed) == (python == "3.10")
    for page, line in lines:
        listed = {Requirement(word).name for word in shlex.split(line)}
        assert needed <= listed, (page, needed - listed)


def test_a_folder_without_a_requirement_cannot_be_installed_from(tmp_path):
    """The resolver, as on the pages: the known-bad case of the test above."""
    write_family(tmp_path, musa_runtime.TORCH_MINOR)
    write_stub(tmp_path, "torch", f"{musa_runtime.TORCH_MINOR}.0")
    for name in sorted({*needed_from_an_index("3.10"), "setuptools"} - {"PyYAML"}):  # torch brings setuptools
        write_stub(tmp_path, name, "99")
    done = resolve(tmp_path, "torch-musa[all,emulator]")
    assert done.returncode != 0 and "PyYAML" in done.stderr
    write_stub(tmp_path, "PyYAML", "99")
    done = resolve(tmp_path, "torch-musa[all,emulator]")
    assert done.returncode == 0, done.stderr


def test_the_extra_emulator_brings_every_library_of_the_emulator(stubs):
    done = resolve(stubs, "torch-musa[emulator]")
    assert done.returncode == 0, done.stderr
    installed = {entry["metadata"]["name"] for entry in json.loads(done.stdout)["install"]}
    expected = {name for name in packages.package_names() if name.startswith("musa-emulator")}
    assert expected <= installed and len(expected) >= 3


def test_an_extra_that_names_no_package_of_the_workspace_is_noticed(stubs, tmp_path):
    for wheel in stubs.glob("*.whl"):
        (tmp_path / wheel.name).write_bytes(wheel.read_bytes())
    (tmp_path / next(stubs.glob("musa_emulator_mccl-*.whl")).name).unlink()
    done = resolve(tmp_path, "torch-musa[emulator]")
    assert done.returncode != 0 and "musa-emulator-mccl" in done.stderr


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
    assert {labels[name] for name in compiled} == {f"torch{minor}"} and len(compiled) >= 8


def test_pip_without_a_torch_takes_the_newest_one(two_minors):
    """So the command that installs the family must name torch, as in the README and on the wheels' page."""
    done = resolve(two_minors, "torch-musa")
    found = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    entries = {entry["name"]: entry["version"] for entry in found}
    assert entries["torch"] == "2.14.0" and entries["musa-runtime"].endswith("+torch2.14")


def test_a_torch_for_which_there_is_no_wheel_is_refused(two_minors):
    done = resolve(two_minors, "torch-musa", "torch==2.12.*")
    assert done.returncode != 0 and "torch==2.12.*" in done.stderr


def test_the_wheels_of_two_minors_have_different_names(two_minors):
    for name in packages.package_names():
        count = len(list(two_minors.glob(f"{name.replace('-', '_')}-*.whl")))
        assert count == (2 if "+" in project(name)["version"] else 1), name


# -- the wheels in an environment of their own


@pytest.fixture(scope="module")
def wheels() -> Path:
    """The folder of the wheels: that of `MUSA_TEST_WHEELS`, else dist/, into which they are built now."""
    ready = os.environ.get("MUSA_TEST_WHEELS")
    if ready:
        return Path(ready)
    command = [sys.executable, "tools/dev.py", "wheels"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return ROOT / "dist"


@pytest.mark.full
@pytest.mark.slow
def test_the_wheels_train_a_network_in_a_clean_environment(wheels, tmp_path):
    environment = CleanEnvironment(tmp_path / "venv", "torch", "numpy", "pluggy", "PyYAML")
    done = environment.pip_install("--find-links", str(wheels), f"torch-musa[{EXTRAS}]")
    assert done.returncode == 0, done.stderr
    code = "import torch, musa_runtime, torch_musa; print(musa_runtime.__file__, torch_musa.__file__)"
    where = environment.run("-c", code)
    assert where.stdout.count(str(environment.site)) == 2, where.stdout + where.stderr
    doctor = environment.run("-m", "torch_musa", "doctor")
    marks = re.findall(r"^\[ *(\w+) *\]", doctor.stdout, re.MULTILINE)
    assert doctor.returncode == 0 and set(marks) == {"ok"} and len(marks) > 5, doctor.stdout + doctor.stderr
    trained = environment.run("-c", TRAINING_STEP, MUSA_EMULATOR_DEVICES="1")
    assert trained.returncode == 0 and trained.stdout.endswith("trained\n"), trained.stdout + trained.stderr
