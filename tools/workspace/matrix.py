# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds and tests this tree with another torch or Python: `dev.py matrix --torch 2.14`.

Each combination has an environment and build folders of its own in build/matrix/<torch>-<python>, so that
those of this tree do not change and a second run compiles only differences. pip's settings select the torch:
its default index has CUDA builds, and `PIP_EXTRA_INDEX_URL` can name an index of CPU builds.
"""

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.harness import records

from . import ROOT, WorkspaceError, packages, versions
from .legs import counts_of
from .progress import run_logged

FOLDER = ROOT / "build" / "matrix"
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
# Tests of each part of the product. Tests of the tools and the emulator do not depend on torch's version.
QUICK = (
    "tests/torch_musa/test_import.py",
    "tests/torch_musa/test_device_api.py",
    "tests/torch_musa/test_memory_api.py",
    "tests/torch_musa/test_no_monkeypatch.py",
    "tests/musa_runtime/test_loading.py",
    "tests/musa_runtime/test_accelerator.py",
    "tests/musa_runtime/test_autograd.py",
    "tests/musa_runtime/test_caching_allocator.py",
    "tests/musa_runtime/test_copies.py",
    "tests/musa_runtime/test_events.py",
    "tests/musa_runtime/test_graphs.py",
    "tests/musa_runtime/test_profiler.py",
    "tests/musa_runtime/test_random.py",
    "tests/musa_runtime/test_serialization.py",
    "tests/musa_runtime/test_streams.py",
    "tests/musa_runtime/test_tensors.py",
    "tests/musa_runtime/test_views.py",
    "tests/musa_ops_mudnn/test_small.py",
    "tests/musa_ops_ported/test_library.py",
    "tests/musa_amp/test_autocast.py",
    "tests/musa_amp/test_scaling.py",
    "tests/musa_distributed/test_pack.py",
    "tests/musa_compile/test_pack.py",
    "tests/musa_compat/test_names.py",
    "tests/musa_as_cuda/test_switch.py",
)
# Files of which one case in so many runs: the operator database, compiled programs, torchvision's operators.
SAMPLED = {
    "tests/conformance/test_ops.py": 40,
    "tests/musa_compile/test_programs.py": 6,
    "tests/musa_ops_vision/test_operators.py": 6,
}


def run_combination(torch: str, python: str) -> bool:
    """Installs torch, builds the packages in order and runs the suites; returns whether all passed."""
    folder = FOLDER / f"{torch}-{python}"
    venv = folder / "venv"
    executable = str(venv / "bin" / "python")
    path = f"{venv / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**packages.build_environment(), "PATH": path, "VIRTUAL_ENV": str(venv)}

    def run(title: str, *command: str) -> None:
        log = folder / "logs" / f"{title}.log"
        run_logged(f"torch {torch}, Python {python}: {title}", list(command), log, environment, cwd=ROOT)

    if not Path(executable).exists():
        run("venv", shutil.which(f"python{python}") or sys.executable, "-m", "venv", str(venv))
    text = packages.REQUIREMENTS.read_text()
    requirements = folder / "requirements.txt"
    requirements.write_text(re.sub("^torch==.*", f"torch=={torch}.*", text, flags=re.MULTILINE))
    run("requirements", executable, "-m", "pip", "install", "-r", str(requirements))
    names = packages.package_names()
    for name in names:
        build = f"--config-settings=build-dir={folder / 'objects' / name}"
        options = ("--no-build-isolation", "--no-deps", "--force-reinstall", build)
        run(name, executable, "-m", "pip", "install", *options, str(ROOT / "packages" / name))
    # A CUDA build of torch that finds a GPU would use "cuda" as the machine's accelerator.
    tested = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    suites = {"quick": QUICK, **{Path(file).stem: (file, "--part", f"1/{n}") for file, n in SAMPLED.items()}}
    total, good = Counter[str](), True
    for suite, arguments in suites.items():
        report = folder / f"{suite}.xml"
        report.unlink(missing_ok=True)
        command = [executable, "-m", "pytest", "-q", "-n", str(len(os.sched_getaffinity(0)))]
        command += ["--dist=loadfile", f"--junitxml={report}", *arguments]
        good &= subprocess.run(command, cwd=ROOT, env=tested, check=False).returncode == 0
        total.update(counts_of(report) if report.is_file() else {})
    summary = ", ".join(f"{number:,} {kind}" for kind, number in total.items())
    command = f"python3 tools/dev.py matrix --torch {torch} --python {python}"
    records.write(f"matrix_{torch}_{python}", command, f"{len(names)} packages built; {summary}")
    return good


def run(torches: Sequence[str], pythons: Sequence[str]) -> int:
    """Runs the combinations; returns 1 unless all passed."""
    served = versions.served_torch()
    if unknown := [torch for torch in torches if torch not in served]:
        raise WorkspaceError(f"torch {unknown[0]} is not served; [tool.musa] of pyproject.toml says {served}")
    if absent := [python for python in pythons if python != RUNNING and not shutil.which(f"python{python}")]:
        raise WorkspaceError(f"python{absent[0]} is not on PATH")
    good = [run_combination(torch, python) for torch in torches for python in pythons]
    return int(not all(good))
