# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Packages of several releases in one environment: each mixture works, or is refused by name.

A release is made of the installed files with other version numbers. `tests/tools/test_upgrades.py` tests pip,
and `test_refused_packs.py` libraries that were compiled for another ABI or another torch.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path

import pytest

from musa_runtime import TORCH_MINOR
from tests.harness import mixtures
from tests.harness.forkserver import ForkServer
from tests.harness.installations import (
    FAMILY,
    PACKAGES,
    SITE,
    Installation,
    fork_server,
    shared_links,
    underscored,
)

pytestmark = pytest.mark.once

# The distribution of each pack of this family.
PACKS = {
    entry.name: entry.dist.name
    for entry in metadata.entry_points(group="torch_musa.plugins.v2")
    if entry.dist is not None and entry.dist.name in FAMILY
}
# Prints the warnings of a program, the packs, and a product that the device computes.
PROGRAM = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import torch
found = {"warnings": [str(warning.message) for warning in caught], "packs": {}}
try:
    ones = torch.ones(2, 2, device="musa")
    found["product"] = (ones @ ones).sum().item()
    from torch_musa import plugins
    for record in plugins.records():
        found["packs"][record.name] = [record.status, str(record.error or "")]
except Exception as error:
    found["error"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def place():
    folder = Path(tempfile.mkdtemp(prefix="mixtures-"))
    (folder / "wheels").mkdir()
    shared_links(folder / "shared")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server(place):
    with fork_server(place / "shared") as server:
        yield server


@pytest.fixture
def installation(place):
    return Installation(Path(tempfile.mkdtemp(dir=place)), place / "shared", place / "wheels")


def info(name: str) -> str:
    return f"{underscored(name)}-{metadata.version(name)}.dist-info"


def release(installation: Installation, name: str, version: str, minor: str) -> None:
    """Sets the version of a distribution, and the pins of its release."""
    path = f"{info(name)}/METADATA"
    text = (installation.site / path).read_text()
    text = text.replace(f"\nVersion: {metadata.version(name).partition('+')[0]}", f"\nVersion: {version}")
    text = text.replace("==0.1.*", f"=={minor}.*")
    assert f"\nVersion: {version}" in text
    installation.replace(path, text)
    modules = {"musa-runtime": "musa_runtime/_build.py", "torch-musa": "torch_musa/_version.py"}
    if name in modules:
        code = (installation.site / modules[name]).read_text()
        assert '__version__ = "0.1.0"' in code
        installation.replace(
            modules[name], code.replace('__version__ = "0.1.0"', f'__version__ = "{version}"')
        )


def outcome(installation: Installation, server: ForkServer) -> dict:
    code = installation.code(installation.environment, PROGRAM)
    done = server.run(code, installation.environment, cwd=str(installation.prefix))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def doctor(installation: Installation, server: ForkServer) -> dict[str, dict]:
    done = installation.doctor_in_fork(server, installation.environment)
    return {row["title"]: row for row in json.loads(done.stdout)}


def expected(pack: str, dist: str, version: str, need: str, have: str) -> list[str]:
    """The lines of the message that refuses a pack, except for the commands that end it."""
    return [
        f"op pack '{pack}' ({dist} {version}) is of another release than the installed musa-runtime; "
        "it was not loaded.",
        f"  have: musa-runtime {have}",
        f"  need: musa-runtime=={need}.*",
        "Likely causes: one of the two was upgraded or installed alone.",
    ]


def test_one_release_works(installation, server):
    found = outcome(installation, server)
    assert found["product"] == 8 and found["warnings"] == []
    assert {name: status for name, (status, _) in found["packs"].items()} == dict.fromkeys(PACKS, "loaded")


def test_old_packs_with_a_new_runtime_are_refused(installation, server, request):
    """The umbrella and the runtime were upgraded alone: the device computes, without any pack."""
    for name in ("torch-musa", "musa-runtime"):
        release(installation, name, "0.2.0", "0.2")
    found = outcome(installation, server)
    assert found["product"] == 8 and found["warnings"] == []
    assert set(found["packs"]) == set(PACKS)
    for name, (status, error) in found["packs"].items():
        assert status == "incompatible"
        dist = PACKS[name]
        have = f"0.2.0+torch{TORCH_MINOR}"
        lines = expected(name, dist, metadata.version(dist), "0.1", have)
        assert error.splitlines()[:4] == lines
        assert error.splitlines()[4].startswith("Fix: ") and f"{dist} musa-runtime" in error.splitlines()[4]
        assert error.splitlines()[5] == f"To run without it: export TORCH_MUSA_DISABLE_PACKS={name}"
    mixtures.check(request, found["packs"]["amp"][1])
    told = doctor(installation, server)["versions"]
    assert told["status"] == "fail" and f"musa-runtime 0.2.0+torch{TORCH_MINOR}" in told["detail"]


def test_a_new_pack_with_an_old_runtime_is_refused(installation, server, request):
    """One pack was upgraded, or all but one were downgraded: the others work."""
    release(installation, "musa-amp", "0.2.0", "0.2")
    found = outcome(installation, server)
    assert found["product"] == 8 and found["warnings"] == []
    status, error = found["packs"].pop("amp")
    old = f"0.1.0+torch{TORCH_MINOR}"
    lines = expected("amp", "musa-amp", f"0.2.0+torch{TORCH_MINOR}.emulator", "0.2", old)
    assert status == "incompatible" and error.splitlines()[:4] == lines
    mixtures.check(request, error)
    assert {status for status, _ in found["packs"].values()} == {"loaded"}
    assert doctor(installation, server)["versions"]["status"] == "fail"


@pytest.mark.parametrize(("name", "other"), [("torch-musa", "musa-runtime"), ("musa-runtime", "torch-musa")])
def test_an_umbrella_and_a_runtime_of_two_releases_are_refused(installation, server, name, other, request):
    release(installation, name, "0.2.0", "0.2")
    versions = {name: "0.2.0", other: "0.1.0"}
    found = outcome(installation, server)
    assert "product" not in found
    [warning] = found["warnings"]
    need = ".".join(versions["torch-musa"].split(".")[:2])
    assert warning.splitlines()[:4] == [
        "torch_musa could not be activated: torch-musa and musa-runtime are of different releases, so the "
        "musa device cannot be used.",
        f"  have: torch-musa {versions['torch-musa']}, musa-runtime {versions['musa-runtime']}",
        f"  need: musa-runtime {need}.*",
        "Likely causes: one of the two was upgraded or installed alone; PYTHONPATH names another copy.",
    ]
    mixtures.check(request, warning)
    assert (
        warning.splitlines()[4].startswith("Fix: ") and "torch-musa musa-runtime" in warning.splitlines()[4]
    )
    # torch itself works, and the doctor names the same cause.
    told = doctor(installation, server)
    assert told["versions"]["status"] == "fail" or told["activation"]["status"] == "fail"
    assert "different releases" in told["activation"]["detail"]


def test_an_emulator_of_another_release_works_and_is_named(installation, server, request):
    """The runtime needs an SDK of any version; the libraries of the emulator need their own release of it."""
    release(installation, "musa-emulator", "0.2.0", "0.2")
    found = outcome(installation, server)
    assert found["product"] == 8 and {status for status, _ in found["packs"].values()} == {"loaded"}
    told = doctor(installation, server)["versions"]
    assert told["status"] == "fail" and "musa-emulator 0.2.0" in told["detail"]
    mixtures.check(request, f"{told['detail']} {told['need']}")


def test_a_patch_release_of_one_package_works(installation, server):
    release(installation, "musa-amp", "0.1.7", "0.1")
    found = outcome(installation, server)
    assert found["product"] == 8 and found["packs"]["amp"][0] == "loaded"
    assert doctor(installation, server)["versions"]["status"] == "ok"


def test_a_pack_of_somebody_else_without_a_pin_is_loaded(installation, server, request):
    """Only pins of this project's packages are compared; pip checks others."""
    pack = (
        "from musa_runtime.hookspecs import hookimpl\n\n\n"
        "@hookimpl\ndef musa_pack_info():\n    return {'summary': 'a pack'}\n"
    )
    installation.replace("other_pack.py", pack)
    folder = "other_pack-3.dist-info"
    head = "Metadata-Version: 2.1\nName: other-pack\nVersion: 3\n"
    points = "[torch_musa.plugins.v2]\nother = other_pack\n"
    installation.replace(f"{folder}/entry_points.txt", points)
    for requirement, status in (("numpy==0.0.1", "loaded"), ("musa-runtime==0.3.*", "incompatible")):
        installation.replace(f"{folder}/METADATA", f"{head}Requires-Dist: {requirement}\n")
        found, error = outcome(installation, server)["packs"]["other"]
        assert found == status
    mixtures.check(request, error)


# -- editable installations beside wheels


def make_editable(installation: Installation, name: str) -> None:
    """Installs a distribution as editable: Python files in the checkout, libraries in site-packages."""
    for file in metadata.distribution(name).files:
        relative = str(file)
        if not relative.startswith("..") and not relative.endswith(".pyc"):
            target = installation.site / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            # A copy, because the finder of an editable installation searches libraries in its own folder.
            shutil.copy(SITE / relative, target)


@pytest.mark.parametrize("editable", ["musa-runtime", "musa-amp", "torch-musa"])
def test_an_editable_package_beside_wheels_works(place, editable):
    folder = Path(tempfile.mkdtemp(dir=place))
    installation = Installation(folder, place / "shared", place / "wheels", (editable,))
    make_editable(installation, editable)
    where = f"import {underscored(editable)} as package; print(package.__file__)"
    code = f"{PROGRAM}\n{where}"
    # An interpreter of its own, which reads the .pth file of the editable package.
    done = subprocess.run(
        [installation.python, "-c", code],
        env=installation.environment,
        capture_output=True,
        text=True,
        cwd=installation.prefix,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found, file = done.stdout.splitlines()[-2:]
    assert str(installation.site) not in file and str(PACKAGES) in file
    assert json.loads(found)["product"] == 8 and json.loads(found)["warnings"] == []
    assert {status for status, _ in json.loads(found)["packs"].values()} == {"loaded"}
    assert outcomes_of(installation)["versions"]["status"] == "ok"


def outcomes_of(installation: Installation) -> dict[str, dict]:
    done = installation.doctor_here(installation.environment)
    return {row["title"]: row for row in json.loads(done.stdout)}


def test_an_editable_pack_of_another_release_is_refused(place, request):
    """The checkout is newer than the installed wheels."""
    folder = Path(tempfile.mkdtemp(dir=place))
    installation = Installation(folder, place / "shared", place / "wheels", ("musa-amp",))
    make_editable(installation, "musa-amp")
    release(installation, "musa-amp", "0.2.0", "0.2")
    told = outcomes_of(installation)
    assert told["packs"]["status"] == "fail" and "musa-runtime==0.2.*" in told["packs"]["detail"]
    mixtures.check(request, told["packs"]["detail"])
    assert "musa-amp musa-runtime" in told["versions"]["command"] or "musa-amp" in told["versions"]["command"]
