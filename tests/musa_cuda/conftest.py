# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Fixtures: a CUDA toolkit, and the SDK over CUDA."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness import skips

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "packages" / "musa-cuda"
if str(PACKAGE) not in sys.path:
    sys.path.append(str(PACKAGE))  # for codegen, which is not part of the wheel


@pytest.fixture(scope="session")
def cuda() -> Path:
    """The folder of the CUDA toolkit."""
    from codegen import toolkit

    try:
        return toolkit.cuda()[0]
    except toolkit.ToolkitError as error:
        skips.skip_permanently("cuda-toolkit", str(error).splitlines()[0])


@pytest.fixture(scope="session")
def sdk(cuda: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A MUSA_HOME built by the package's CMake project."""
    folder = tmp_path_factory.mktemp("musa_cuda")
    tools = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    for command in (
        ["cmake", "-S", PACKAGE, "-B", folder / "build", "-G", "Ninja", "-DCMAKE_CXX_FLAGS_RELEASE=-O0",
         f"-DPython_EXECUTABLE={sys.executable}", f"-DCMAKE_INSTALL_PREFIX={folder}"],
        ["ninja", "-C", folder / "build", "install"],
    ):  # fmt: skip
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "warning:" not in done.stdout + done.stderr
    return folder / "sdk"
