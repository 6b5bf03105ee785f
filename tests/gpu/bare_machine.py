# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Builds some packs on a GPU machine without a network, and compares them with torch.cuda there.

`python3 tests/gpu/bare_machine.py --tree COPY --out FOLDER` copies this tree, makes an environment of
the running Python's packages, builds, trains ConvNeXt-T three times and once with torch.cuda, and runs the
sweep of tests/conformance/sizes.py. Results are written to FOLDER as they are made.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "musa-cuda",
    "musa-runtime",
    "torch-musa",
    "musa-cuda-mudnn",
    "musa-ops-mudnn",
    "musa-port",
    "musa-ops-ported",
    "musa-amp",
    "musa-ops-math",
)
RUNS = 3
NEAR = 1e-2  # largest difference of a loss from torch.cuda's
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", ".device")


def prepare(tree: Path, packages: Sequence[str]) -> Path:
    """Copies this tree, makes its .venv and builds packages; returns the Python of .venv.

    A second run on the same machine compiles differences only.
    """
    shutil.copytree(ROOT, tree, ignore=NOT_COPIED, dirs_exist_ok=True, copy_function=copy_if_changed)
    sys.path.insert(0, str(tree / "tools"))
    from workspace import gpu

    (tree / "pyproject.toml").write_text(gpu.for_gpu((ROOT / "pyproject.toml").read_text(), packages))

    class Cell(gpu.Cell):
        @property
        def folder(self) -> Path:
            return tree / "build" / "cell"

        @property
        def tree(self) -> Path:
            return tree

    cell = Cell()
    if not cell.executable.exists():
        venv = [sys.executable, "-m", "venv", "--without-pip", str(tree / ".venv")]
        subprocess.run(venv, check=True)
        gpu.share_torch(cell, sys.executable)
        gpu.use_packages_of_this_python(cell)
    subprocess.run([sys.executable, "tools/dev.py", "setup"], cwd=tree, env=cell.environment(), check=True)
    os.environ["MUSA_HOME"] = str(cell.home)
    return cell.executable


def copy_if_changed(source: str, target: str) -> str:
    if not os.path.exists(target) or Path(source).read_bytes() != Path(target).read_bytes():
        shutil.copy2(source, target)
    return target


def learn(python: Path, tree: Path, device: str) -> list[float] | str:
    """Returns the losses of a run, or the end of its messages. torch.cuda's has no torch_musa to import."""
    interpreter = str(python) if device == "musa" else sys.executable
    command = [interpreter, "-W", "ignore", "-m", "tests.gpu.learning_program", device]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr[-2000:]


def compared(runs: list[list[float] | str], cuda: list[float] | str) -> dict:
    """Returns all losses, whether musa's runs are equal, and the largest difference from torch.cuda's."""
    result: dict = {"musa": runs, "cuda": cuda}
    if all(isinstance(losses, list) for losses in (*runs, cuda)):
        result["equal"] = all(losses == runs[0] for losses in runs)
        result["difference"] = max(abs(one - other) for one, other in zip(runs[0], cuda))
        result["near"] = result["difference"] <= NEAR
    return result


def main() -> int:
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="folder of the copy")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--seconds", type=float, default=570, help="time for everything")
    parser.add_argument("--build-only", action="store_true", help="needs no GPU")
    parser.add_argument("--packages", nargs="+", default=PACKAGES, help="in the order of their builds")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    python = prepare(options.tree.resolve(), options.packages)
    print(f"built after {time.monotonic() - start:.0f} s", flush=True)
    if options.build_only:
        return 0
    losses = compared(
        [learn(python, options.tree, "musa") for _ in range(RUNS)], learn(python, options.tree, "cuda")
    )
    (options.out / "convnext.json").write_text(json.dumps(losses, indent=1) + "\n")
    print(json.dumps(losses), f"\nafter {time.monotonic() - start:.0f} s", flush=True)
    left = options.seconds - (time.monotonic() - start) - 10
    sweep = [python, "-W", "ignore", "-m", "tests.conformance.sizes", "--jobs=7", f"--limit={left:.0f}"]
    sweep += ["--device=musa", "--device=cuda", f"--out={options.out.resolve() / 'sizes.json'}"]
    done = subprocess.run(sweep, cwd=options.tree, check=False)
    print(f"after {time.monotonic() - start:.0f} s", flush=True)
    return int(done.returncode != 0 or not (losses.get("equal") and losses.get("near")))


if __name__ == "__main__":
    sys.exit(main())
