# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Makes the environment of the tests with vLLM, and runs them in it: `nox -s vllm`.

    python -m tests.vllm_torch_musa.environment [ARGUMENT...]

The environment is `build/vllm`: torch's CPU build, vLLM and its dependencies as pip installs them, less
those that need CUDA's libraries at import, and the wheels of `dist`. It takes 6 GB and downloads 3 GB once.
Arguments go to pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "vllm"
PYTHON = FOLDER / "bin" / "python"
VLLM = "0.32.0"
TORCH = "2.13.0"
# Wheels of the package index that load CUDA's libraries when vLLM or transformers import them. Without them
# audio and video inputs are not decoded.
LEFT_OUT = ("torchaudio", "torchcodec")
VARIABLE = "MUSA_VLLM_PYTHON"  # names the Python of another environment


def python() -> Path:
    """Returns the Python of the environment, which need not exist."""
    return Path(os.environ.get(VARIABLE, PYTHON))


def pip(*arguments: str) -> None:
    subprocess.run([str(PYTHON), "-m", "pip", *arguments], check=True)


def make() -> None:
    """Makes the environment unless it is complete, and installs the workspace's wheels of `dist`."""
    stamp = FOLDER / f"vllm-{VLLM}"  # written last, so that an interrupted installation is repeated
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
        pip("install", "--quiet", f"torch=={TORCH}")
        pip("install", "--quiet", f"vllm=={VLLM}", f"torch=={TORCH}", "pluggy", "PyYAML", "tomli")
        pip("uninstall", "--quiet", "--yes", *LEFT_OUT)
        stamp.touch()
    subprocess.run([sys.executable, "tools/dev.py", "wheels", "--local"], cwd=ROOT, check=True)
    wheels = ["--no-index", "--find-links", str(ROOT / "dist"), "--force-reinstall", "--no-deps"]
    pip("install", "--quiet", *wheels, *(str(wheel) for wheel in sorted((ROOT / "dist").glob("*.whl"))))


def main() -> int:
    if VARIABLE not in os.environ:
        make()
    command = [sys.executable, "-m", "pytest", "--full", "tests/vllm_torch_musa", *sys.argv[1:]]
    environment = {**os.environ, "MUSA_TESTS_NO_SKIP": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
