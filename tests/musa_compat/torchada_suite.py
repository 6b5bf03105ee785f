# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs torchada's own tests on the emulator, in four settings: `nox -s torchada`.

    python -m tests.musa_compat.torchada_suite [SETTING]... [-- ARGUMENT...]

The tests are those of the source distribution of the version that requirements-dev.txt pins; pip downloads
it. Streams run in workers, as on a GPU (`MUSA_EMULATOR_MODE=async`). "without" is a copy of .venv, made of
hard links, from which musa-compat is uninstalled. Arguments after `--` go to pytest.

Failed tests are printed with their messages; with any, the exit status is 1. docs/design/compat.md has the
results and the reasons.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "torchada"
SETTINGS = {
    "compat": (True, "0"),
    "compat-as-cuda": (True, "1"),
    "without": (False, "0"),
    "without-as-cuda": (False, "1"),
}
# Options of pytest. The source distribution lacks the C++ sources that two files compile. One test multiplies
# 64 matrices of 4096 x 4096 in bfloat16: 16 minutes of CPU time for each of its 8 cases, as on torch's CPU.
LEFT_OUT = [
    "--ignore=tests/test_extension_build.py",
    "--ignore=tests/test_stable_abi.py",
    "--deselect=tests/test_isfinite.py::test_isfinite_leaves_queued_work_pending",
]
# Files that import Triton and transformers.
WITH_TRITON = ["moe_pipeline", "nemotron_moe_config", "triton_descriptor_capability", "tune_moe_recipe"]


@pytest.fixture
def has_gpu() -> bool:
    """The fixture of torchada's conftest.py, which its source distribution does not contain."""
    import torch

    return torch.musa.is_available()


@pytest.fixture(autouse=True)
def products() -> Iterator[None]:
    """Restores the products that tests of torchada's wrappers replace.

    From 2.13.0 on torchada does not keep torch's functions, so its next probe would call a wrapper, which
    waits for the lock that the probe holds.
    """
    import torch

    own = torch.mm, torch.bmm
    yield
    torch.mm, torch.bmm = own


def source() -> Path:
    """Returns the folder of the unpacked source distribution, which is downloaded once."""
    version = importlib.metadata.version("torchada")
    folder = FOLDER / f"torchada-{version}"
    if not folder.is_dir():
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-build-isolation"]
        command += ["--no-binary=torchada", f"--dest={FOLDER}", f"torchada=={version}"]
        subprocess.run(command, check=True)
        with tarfile.open(FOLDER / f"{folder.name}.tar.gz") as archive:
            archive.extractall(FOLDER, filter="data")
    return folder


def without_compat() -> Path:
    """Returns the Python of a copy of the environment without musa-compat."""
    copy = FOLDER / "without"
    python = copy / "bin" / "python"
    if not python.exists():
        shutil.copytree(sys.prefix, copy, symlinks=True, copy_function=os.link)
        subprocess.run([str(python), "-m", "pip", "uninstall", "--quiet", "-y", "musa-compat"], check=True)
    return python


def run(setting: str, arguments: list[str]) -> dict[str, str]:
    """Runs the tests in one setting. Returns the message of each test that failed; prints the counts."""
    compat, as_cuda = SETTINGS[setting]
    python = Path(sys.executable) if compat else without_compat()
    report = FOLDER / f"{setting}.xml"
    environment = {
        **os.environ,
        "MUSA_EMULATOR_MODE": "async",
        "PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        # torchada's operators include headers of musa-compat. Without them each process would compile for
        # seconds and fail; a file in place of the folder of builds ends that attempt before.
        "TORCH_EXTENSIONS_DIR": str(FOLDER / "extensions-compat") if compat else os.devnull,
        "TORCH_MUSA_AS_CUDA": as_cuda,
        "TORCH_MUSA_OPS_FILE": "none",
    }
    # -c: not the settings of this workspace, which is above the folder.
    command = [
        str(python),
        "-m",
        "pytest",
        "-c",
        "pyproject.toml",
        "tests",
        "--tb=short",
        "-p",
        __spec__.name,
    ]
    command += ["-p", "no:cacheprovider", "--timeout=900", f"--junitxml={report}", *LEFT_OUT]
    if importlib.util.find_spec("triton") is None:
        command += [f"--ignore=tests/test_{name}.py" for name in WITH_TRITON]
    subprocess.run([*command, *arguments], cwd=source(), env=environment, check=False)
    counts: Counter[str] = Counter()
    failed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag: child for child in case}
        outcome = next((kind for kind in ("error", "failure", "skipped") if kind in kinds), "passed")
        counts[outcome] += 1
        if outcome in ("error", "failure"):
            name = f"{case.get('classname')}.{case.get('name')}"
            failed[name] = kinds[outcome].get("message", "").split("\n")[0]
    print(f"{setting}: {counts.total()} run, {dict(counts)}")
    return failed


def main() -> int:
    arguments = sys.argv[1:]
    split = arguments.index("--") if "--" in arguments else len(arguments)
    FOLDER.mkdir(parents=True, exist_ok=True)
    status = 0
    for setting in arguments[:split] or SETTINGS:
        for name, message in run(setting, arguments[split + 1 :]).items():
            print(f"  {name}: {message}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
