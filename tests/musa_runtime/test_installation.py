# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Commands that install a package of the family name the origin of the other packages, and no index."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from musa_runtime import installation
from tests.harness.installations import FAMILY, write_wheel

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
PIP = f"{sys.executable} -m pip install"
UNKNOWN = "<the folder or index that torch-musa was installed from>"


@pytest.fixture
def came_from(monkeypatch):
    """Sets the origin that pip reports for each distribution."""
    records = {}
    monkeypatch.setattr(installation, "_direct_url", records.get)

    def set_origin(**origins):
        records.update({name.replace("_", "-"): record for name, record in origins.items()})

    return set_origin


def checkout(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / "packages" / name).mkdir(parents=True)
        (folder / "packages" / name / "pyproject.toml").touch()
    return folder / "packages"


def test_wheels_of_a_folder_are_installed_only_from_it(came_from, tmp_path):
    folder = tmp_path / "my wheels"
    folder.mkdir()
    wheel = write_wheel(folder, "musa-emulator-mudnn", "0.1", {})
    came_from(torch_musa={"url": (folder / "torch_musa-0.1.whl").as_uri(), "archive_info": {}})
    command = installation.command("musa-emulator-mudnn")
    assert command == f"{PIP} --no-index --find-links '{folder}' musa-emulator-mudnn"
    assert "--force-reinstall --no-deps --no-index" in installation.command(
        "musa-emulator-mudnn", reinstall=True
    )
    wheel.unlink()
    assert UNKNOWN in installation.command("musa-emulator-mudnn")


def test_wheels_of_a_web_page_are_taken_from_it(came_from):
    came_from(torch_musa={"url": "https://wheels.example/musa/torch_musa-0.1.whl", "archive_info": {}})
    assert "--no-index --find-links https://wheels.example/musa/ musa-amp" in installation.command("musa-amp")


@pytest.mark.parametrize("editable", [True, False])
def test_a_checkout_installs_its_packages_one_after_the_other(came_from, tmp_path, editable):
    packages = checkout(tmp_path, "musa-runtime", "musa-emulator", "musa-emulator-mudnn")
    came_from(musa_runtime={"url": (packages / "musa-runtime").as_uri(), "dir_info": {"editable": editable}})
    option = "-e " if editable else ""
    assert installation.command("musa-emulator", "musa-emulator-mudnn") == " && ".join(
        f"{PIP} --no-build-isolation --no-deps {option}{packages / name}"
        for name in ("musa-emulator", "musa-emulator-mudnn")
    )


def test_a_list_of_no_packs_has_one_command_per_line(came_from, tmp_path, monkeypatch):
    from torch_musa import extras, listings

    packages = checkout(tmp_path, "musa-amp", "musa-port")
    came_from(torch_musa={"url": (packages / "torch-musa").as_uri(), "dir_info": {"editable": True}})
    monkeypatch.setattr(extras, "installs", lambda: {"all": ["musa-amp", "musa-port"]})
    assert listings.render_packs([]).splitlines()[1:] == [
        "To add some:",
        *(
            f"  {PIP} --no-build-isolation --no-deps -e {packages / name}"
            for name in ("musa-amp", "musa-port")
        ),
    ]


def test_a_repository_is_named_with_its_commit(came_from):
    came_from(
        torch_musa={
            "url": "https://example/torch_musa.git",
            "vcs_info": {"vcs": "git", "commit_id": "abc"},
            "subdirectory": "packages/torch-musa",
        }
    )
    assert "'git+https://example/torch_musa.git@abc#subdirectory=packages/musa-amp'" in installation.command(
        "musa-amp"
    )


@pytest.mark.parametrize(
    "record", [None, [], {}, {"url": 7}, {"url": "file:///gone/x.whl", "archive_info": {}}]
)
def test_an_unknown_origin_gives_a_placeholder_and_never_an_index(came_from, record):
    came_from(torch_musa=record, musa_runtime=record)
    assert installation.command("musa-amp") == f"{PIP} --no-index --find-links {UNKNOWN} musa-amp"


def test_a_pack_of_others_is_taken_from_its_own_origin_first(came_from, tmp_path):
    write_wheel(tmp_path, "demo-pack", "1", {})
    came_from(
        demo_pack={"url": (tmp_path / "demo_pack-1.whl").as_uri(), "archive_info": {}},
        torch_musa={"url": "https://wheels.example/torch_musa-0.1.whl", "archive_info": {}},
    )
    assert installation.command("demo-pack").endswith(f"--find-links {tmp_path} demo-pack")
    place = "<the folder or index that other-pack was installed from>"
    assert installation.command("other-pack").endswith(f"--find-links {place} other-pack")


def test_the_command_of_a_checkout_installs(came_from, tmp_path):
    """Runs the command with a package that builds quickly."""
    package = checkout(tmp_path / "a checkout", "musa-runtime", "musa-nothing") / "musa-nothing"
    (package / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
        '[project]\nname = "musa-nothing"\nversion = "1"\n[tool.setuptools]\npy-modules = []\n'
    )
    runtime = package.with_name("musa-runtime").as_uri()
    came_from(musa_runtime={"url": runtime, "dir_info": {"editable": False}})
    target = tmp_path / "target"
    command = installation.command("musa-nothing").replace(" install ", f" install --target {target} ")
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (target / "musa_nothing-1.dist-info").is_dir()


def test_pips_own_record_is_read():
    record = installation._direct_url("musa-runtime")
    assert record is None or record["url"].startswith("file:"), json.dumps(record)
    assert installation._direct_url("no-such-distribution") is None


# ---- no message or page installs one of our names from an index

INSTALL = re.compile(r"pip3?(?:\(\)\})? (?:install|download|wheel)\b([^\n`\"#|&;]*)")
OURS = re.compile(r"(?:torch|musa)[-_]musa|musa[-_][a-z]+(?:[-_][a-z]+)*")


def refused(text: str) -> list[str]:
    """Returns the commands in the text that install one of the family by name from pip's default index."""
    found = []
    for match in INSTALL.finditer(text):
        words = match.group(1).replace("'", " ").replace("\\", " ").split()
        names = [word for word in words if OURS.fullmatch(re.split(r"[\[=<>~!.,;:)]", word)[0])]
        if names and not {"--no-index", "--find-links"} <= set(words):
            found.append(match.group(0).strip())
    return found


@pytest.mark.parametrize(
    "text",
    [
        "Fix: pip install torch-musa[emulator]",
        "pip install 'torch-musa[mudnn]'",
        "pip install --force-reinstall --no-deps musa-runtime   (in a source tree: ...)",
        "or for the emulator: pip install musa-emulator-mudnn.",
        "pip install torch==2.13.0 musa_runtime==0.1.*",
        "pip install --find-links dist torch-musa",
        "{installation.pip()} install musa-amp",
    ],
)
def test_a_command_that_installs_our_names_from_an_index_is_found(text):
    assert refused(text)


@pytest.mark.parametrize(
    "text",
    [
        "pip install torch==2.13.0 dist/*.whl",
        "pip install --no-build-isolation --no-deps packages/musa-amp",
        "pip install --no-index --find-links dist 'torch-musa[all]'",
        "pip install mthreads-ml-py",
    ],
)
def test_a_command_that_names_a_place_is_allowed(text):
    assert not refused(text)


def test_no_message_and_no_page_installs_our_names_from_an_index():
    kinds = {".py", ".md", ".cpp", ".h", ".txt", ".toml", ".cmake", ".in", ".mu", ".yaml"}
    folders = ("packages", "docs", "examples", "tools", "benchmarks")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    files = [path for path in files if "build" not in path.relative_to(ROOT).parts] + [ROOT / "README.md"]
    assert len(files) > 300
    own = {ROOT / "packages" / name / "README.md" for name in FAMILY}
    assert own <= set(files)
    found = {str(path.relative_to(ROOT)): refused(path.read_text(errors="replace")) for path in files}
    assert {path: commands for path, commands in found.items() if commands} == {}
