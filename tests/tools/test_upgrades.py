# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""pip with two releases of the packages, as wheels of metadata alone: upgrades, downgrades, mixtures.

`tests/plugins/test_mixtures.py` tests the packages in mixtures that pip permits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import mixtures
from tests.tools.test_wheels import WITH_KERNELS, Environment, project, write_others, write_stub
from workspace import packages

pytestmark = pytest.mark.once

EXTRAS = "mudnn,ported,port,amp,distributed,emulator"
MINORS = ("2.13", "2.14")
PACKS = ("musa-amp", "musa-distributed", "musa-ops-mudnn", "musa-ops-ported")


def write_release(folder: Path, version: str, minor: str) -> None:
    """The wheels of all packages of one release, built for one minor of torch."""
    pin = version.rpartition(".")[0]

    def released(texts) -> list[str]:
        return [text.replace("==0.1.*", f"=={pin}.*") for text in texts]

    for name in packages.package_names():
        fields = project(name, minor)
        extras = fields.get("optional-dependencies", {})
        requires = released(fields.get("dependencies", ()))
        for extra, listed in extras.items():
            requires += [f'{requirement}; extra == "{extra}"' for requirement in released(listed)]
        write_stub(folder, name, fields["version"].replace("0.1.0", version), requires, extras)


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    """Two releases for two minors of torch."""
    folder = tmp_path_factory.mktemp("index")
    for version in ("0.1.0", "0.2.0"):
        for minor in MINORS:
            write_release(folder, version, minor)
    write_others(folder, "2.13.1", "2.14.0")
    return folder


@pytest.fixture
def environment(tmp_path, index) -> Environment:
    return Environment(tmp_path / "environment", index)


def test_an_upgrade_with_the_extras_upgrades_all(environment):
    environment.install(f"torch-musa[{EXTRAS}]==0.1.*", "torch==2.13.*")
    assert environment.releases() == {"0.1.0"} and environment.pip("check").returncode == 0
    said = environment.install("--upgrade", f"torch-musa[{EXTRAS}]", "torch==2.13.*")
    assert environment.releases() == {"0.2.0"} and said == ""
    assert environment.versions()["musa-runtime"] == "0.2.0+torch2.13"


def test_a_downgrade_with_the_extras_downgrades_all(environment):
    environment.install(f"torch-musa[{EXTRAS}]", "torch==2.13.*")
    said = environment.install(f"torch-musa[{EXTRAS}]==0.1.*", "torch==2.13.*")
    assert environment.releases() == {"0.1.0"} and said == ""
    assert environment.pip("check").returncode == 0


@pytest.mark.parametrize(("first", "then"), [("0.1", "0.2"), ("0.2", "0.1")])
def test_an_umbrella_alone_leaves_packs_that_pip_names(environment, first, then, request):
    """pip replaces the umbrella and the runtime, and names each incompatible pack; those do not load."""
    environment.install(f"torch-musa[{EXTRAS}]=={first}.*", "torch==2.13.*")
    said = environment.install(f"torch-musa=={then}.*", "torch==2.13.*")
    checked = environment.pip("check")
    assert checked.returncode == 1
    mixtures.check(request, said)
    for name in PACKS:
        label = "torch2.13.emulator" if name in WITH_KERNELS else "torch2.13"
        sentence = (
            f"{name} {first}.0+{label} requires musa-runtime=={first}.*, "
            f"but you have musa-runtime {then}.0+torch2.13 which is incompatible."
        )
        assert sentence in said, said
        assert f"{name} {first}.0+{label} has requirement musa-runtime=={first}.*" in checked.stdout


def test_two_releases_in_one_command_are_refused(environment, request):
    done = environment.try_install("torch-musa==0.2.*", "musa-amp==0.1.*", "torch==2.13.*")
    assert done.returncode != 0 and environment.versions() == {}
    assert (
        "Cannot install musa-amp==0.1.0+torch2.13.emulator" in done.stderr
        and "ResolutionImpossible" in done.stderr
    )
    assert "musa-amp 0.1.0+torch2.13.emulator depends on musa-runtime==0.1.*" in done.stdout
    assert "torch-musa 0.2.0 depends on musa-runtime==0.2.*" in done.stdout
    mixtures.check(request, done.stdout + done.stderr)


def test_a_pack_for_another_torch_is_refused_beside_a_torch(environment, request):
    environment.install("torch-musa", "torch==2.13.*")
    done = environment.try_install("musa-amp==0.2.0+torch2.14.emulator", "torch==2.13.*")
    assert done.returncode != 0 and "Cannot install musa-amp==0.2.0+torch2.14.emulator" in done.stderr
    assert "musa-amp 0.2.0+torch2.14.emulator depends on torch==2.14.*" in done.stdout
    mixtures.check(request, done.stdout + done.stderr)
    assert "musa-amp" not in environment.versions()


def test_a_pack_for_another_torch_alone_replaces_torch(environment, request):
    """pip replaces the runtime too and names a pack that stays; the loader of packs refuses that one."""
    environment.install("torch-musa[mudnn]", "torch==2.13.*")
    said = environment.install("musa-amp==0.2.0+torch2.14.emulator")
    versions = environment.versions()
    assert versions["torch"] == "2.14.0" and versions["musa-runtime"] == "0.2.0+torch2.14"
    assert (
        "musa-ops-mudnn 0.2.0+torch2.13 requires torch==2.13.*, "
        "but you have torch 2.14.0 which is incompatible."
    ) in said
    mixtures.check(request, said)
