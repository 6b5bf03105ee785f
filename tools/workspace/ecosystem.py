# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Runs real packages, unmodified, on the musa device: `dev.py ecosystem`.

The packages are installed in build/ecosystem/site-packages, in the versions of
tests/ecosystem/requirements.txt. They use the torch and the packs of .venv, so there is no second torch.
pytest-xdist starts a new process after a crash.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from tests.harness import records

from . import ROOT, packages
from .legs import counts_of
from .progress import run_logged

REQUIREMENTS = ROOT / "tests" / "ecosystem" / "requirements.txt"
FOLDER = ROOT / "build" / "ecosystem"
# dill, which datasets uses, regards modules outside a folder of this name as user code and pickles
# their contents.
SITE = FOLDER / "site-packages"


def install() -> None:
    """Installs the packages unless they are up to date."""
    text = REQUIREMENTS.read_text()
    stamp = FOLDER / "installed"
    digest = hashlib.sha256(f"{sys.version_info[:2]}{text}".encode()).hexdigest()
    if packages.matches(stamp, digest):
        return
    stamp.unlink(missing_ok=True)
    shutil.rmtree(SITE, ignore_errors=True)
    # pip moves packages from its temporary folder, but copies them if that is on another file system.
    temporary = FOLDER / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    # Dependencies are not resolved: the list is complete, and does not contain torch. DeepSpeed is built from
    # source and imports torch for that; without DS_BUILD_OPS=0 it might compile CUDA operators.
    command = [str(packages.PYTHON), "-m", "pip", "install", "--no-deps", "--no-build-isolation"]
    command += ["--target", str(SITE), "-r", str(REQUIREMENTS)]
    environment = {**os.environ, "DS_BUILD_OPS": "0", "TMPDIR": str(temporary)}
    run_logged("packages of the ecosystem", command, packages.LOGS / "ecosystem.log", environment)
    stamp.write_text(digest)


def environment() -> dict[str, str]:
    """Returns the environment of the cases' processes."""
    home = FOLDER / "home"
    return {
        **os.environ,
        **dict.fromkeys(("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"), "1"),
        "PYTHONPATH": os.pathsep.join([str(SITE), str(ROOT)]),
        # Sums over several threads differ by rounding between runs, and spinning threads slow small
        # models down.
        "OMP_NUM_THREADS": "1",
        "HF_HOME": str(home / "hf"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "TORCH_HOME": str(home / "torch"),
        "TORCHINDUCTOR_CACHE_DIR": str(home / "inductor"),
        "MPLBACKEND": "Agg",
        "TOKENIZERS_PARALLELISM": "false",
    }


def run(arguments: Sequence[str]) -> int:
    """Runs the cases and records a run of all; returns pytest's status. arguments: those of pytest."""
    report = FOLDER / "report.xml"
    command = [str(packages.PYTHON), "-m", "pytest", "tests/ecosystem", "--ecosystem", "-q", "-n", "2"]
    command += ["--dist=loadfile", f"--junitxml={report}", *arguments]
    status = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    if list(arguments) == ["--full"]:
        summary = ", ".join(f"{number:,} {kind}" for kind, number in counts_of(report).items())
        records.write("ecosystem", "python3 tools/dev.py ecosystem --full", summary)
    return status
