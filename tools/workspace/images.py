# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the images in docker/: `dev.py images`.

hadolint reads the Dockerfiles. With `execute`, which needs root on Debian or Ubuntu, debootstrap makes a
system and each instruction runs in it once, in the order in which the images are made of each other. The
result is no image; the record shows that every line works and that the doctor, which is the health
check, passes.
"""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, prerequisites, release, sysroot
from .progress import run_logged

DOCKERFILES = ROOT / "docker"
FOLDER = ROOT / "build" / "images"
RECORD = ROOT / "tests" / "data" / "last_images_run.json"
SUITE = "bookworm"
# In the order in which they are made of each other, with the build arguments of a machine without a GPU.
IMAGES: dict[str, tuple[str, ...]] = {"base": (), "release": ("EXTRAS=all,emulator",), "dev": ()}
DEBOOTSTRAP = prerequisites.Prerequisite(
    "debootstrap", lambda: None if shutil.which("debootstrap") else "debootstrap is missing", ["debootstrap"]
)


def lint(files: list[Path]) -> list[str]:
    """What hadolint says against Dockerfiles."""
    command = [release.PYTHON.parent / "hadolint", "--no-color", "--config", DOCKERFILES / ".hadolint.yaml"]
    found = []
    for file in files:
        try:
            sysroot.run([*command, file])
        except WorkspaceError as error:
            found.append(str(error))
    return found


def make_system() -> Path:
    """A copy of the system that the first image begins with."""
    system, root = FOLDER / SUITE, FOLDER / "root"
    if not (system / "etc").is_dir() or (system / "debootstrap").exists():  # absent, or was interrupted
        shutil.rmtree(system, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", SUITE, str(system)]
        run_logged(f"debootstrap {SUITE}", command, FOLDER / "debootstrap.log")
    sysroot.run(["rm", "-rf", root, root.with_suffix(".json")])
    sysroot.run(["cp", "-a", system, root])
    return root


def execute() -> dict[str, Any]:
    """Runs the instructions of all Dockerfiles; returns the record."""
    if os.geteuid() != 0:
        fix = "sudo python3 tools/dev.py images --execute"
        raise WorkspaceError(f"The instructions run as root in a system of their own.\nFix: {fix}")
    prerequisites.ensure((DEBOOTSTRAP,))
    root = make_system()
    images: dict[str, Any] = {}
    for name, arguments in IMAGES.items():
        steps = FOLDER / f"{name}.json"
        steps.unlink(missing_ok=True)
        script = Path(__file__).parent / "image_steps.py"
        command = [
            release.PYTHON,
            script,
            DOCKERFILES / f"{name}.Dockerfile",
            "--root",
            root,
            "--context",
            ROOT,
        ]
        command += ["--log", steps, *(f"--build-arg={argument}" for argument in arguments)]
        failed = None
        try:
            run_logged(f"image {name}", [str(word) for word in command], FOLDER / f"{name}.log", cwd=ROOT)
        except WorkspaceError as error:
            failed = error
        if not steps.is_file():
            raise failed or WorkspaceError(f"{script.name} wrote no {steps.name}")
        images[name] = {"arguments": list(arguments), "steps": json.loads(steps.read_text())}
        if failed:
            break
    return {"system": f"debootstrap --variant=minbase {SUITE}", "images": images}


def table(record: dict[str, Any]) -> str:
    lines = []
    for name, image in record["images"].items():
        for step in image["steps"]:
            text = step["text"] if len(step["text"]) < 70 else step["text"][:67] + "..."
            lines.append(f"{name:9}{step['line']:4}  {step['status']:3}  {step['instruction']} {text}")
    return "\n".join(lines)


def failures(record: dict[str, Any]) -> list[str]:
    """Images that were not executed, or not to their end, or without a health check that passed."""
    found = [f"{name}: not executed" for name in IMAGES if name not in record["images"]]
    for name, image in record["images"].items():
        bad = [step for step in image["steps"] if step["status"] != 0]
        found += [f"{name}: line {step['line']} ended with status {step['status']}" for step in bad]
    return found


def run(*, executed: bool) -> int:
    """Lints the Dockerfiles and, if asked to, executes them, prints the table and writes the record."""
    release.install_tools()
    if found := lint([DOCKERFILES / f"{name}.Dockerfile" for name in IMAGES]):
        raise WorkspaceError("\n".join(found))
    print(f"hadolint: {len(IMAGES)} Dockerfiles, nothing found")
    if not executed:
        return 0
    record = execute()
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(table(record))
    if found := failures(record):
        raise WorkspaceError("\n".join(found))
    return 0
