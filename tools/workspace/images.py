# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the images in docker/: `dev.py images`.

hadolint reads the Dockerfiles. With `execute`, which needs root on Debian or Ubuntu, debootstrap makes a
system, and each instruction runs in it once, in the order in which the images build on each other. The
result is not an image; the record shows that every line works and that the doctor, which is the health
check, passes. `oldest` tests the wheels on the oldest available system.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, prerequisites, release, sysroot
from .progress import run_logged

DOCKERFILES = ROOT / "docker"
FOLDER = ROOT / "build" / "images"
RECORD = ROOT / "tests" / "data" / "last_images_run.json"
# Suites of Debian and the images that are based on them, in the order in which images build on each
# other, with the build arguments of a machine without a GPU.
SUITES: dict[str, dict[str, tuple[str, ...]]] = {
    "bookworm": {"base": (), "release": ("EXTRAS=all,emulator",), "dev": ()},
    "bullseye": {"oldest": ()},
}
IMAGES = [name for images in SUITES.values() for name in images]
DEBOOTSTRAP = prerequisites.Prerequisite(
    "debootstrap", lambda: None if shutil.which("debootstrap") else "debootstrap is missing", ["debootstrap"]
)


def lint(files: list[Path]) -> list[str]:
    """Returns hadolint's findings in Dockerfiles."""
    command = [release.PYTHON.parent / "hadolint", "--no-color", "--config", DOCKERFILES / ".hadolint.yaml"]
    found = []
    for file in files:
        try:
            sysroot.run([*command, file])
        except WorkspaceError as error:
            found.append(str(error))
    return found


def make_system(suite: str) -> Path:
    """Returns a copy of the base system of the suite's first image."""
    system, root = FOLDER / suite, FOLDER / f"{suite}-root"
    if not (system / "etc").is_dir() or (system / "debootstrap").exists():  # missing, or interrupted
        shutil.rmtree(system, ignore_errors=True)
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = ["debootstrap", "--variant=minbase", suite, str(system)]
        run_logged(f"debootstrap {suite}", command, FOLDER / f"debootstrap-{suite}.log")
    sysroot.run(["rm", "-rf", root, root.with_suffix(".json")])
    sysroot.run(["cp", "-a", system, root])
    return root


def execute_image(name: str, arguments: Sequence[str], root: Path) -> dict[str, Any]:
    """Runs the instructions of a Dockerfile in a system; returns the image's entry in the record."""
    steps = FOLDER / f"{name}.json"
    steps.unlink(missing_ok=True)
    script = Path(__file__).parent / "image_steps.py"
    command = [release.PYTHON, script, DOCKERFILES / f"{name}.Dockerfile", "--root", root, "--context", ROOT]
    command += ["--log", steps, *(f"--build-arg={argument}" for argument in arguments)]
    try:
        run_logged(f"image {name}", [str(word) for word in command], FOLDER / f"{name}.log", cwd=ROOT)
    except WorkspaceError:
        if not steps.is_file():
            raise
    return {"arguments": list(arguments), "steps": json.loads(steps.read_text())}


def execute(suites: Sequence[str]) -> dict[str, Any]:
    """Runs the instructions of the suites' Dockerfiles; returns the images' entries in the record."""
    if os.geteuid() != 0:
        fix = "sudo python3 tools/dev.py images --execute"
        raise WorkspaceError(f"The instructions run as root in a system of their own.\nFix: {fix}")
    prerequisites.ensure((DEBOOTSTRAP,))
    images: dict[str, Any] = {}
    for suite in suites:
        root = make_system(suite)
        for name, arguments in SUITES[suite].items():
            images[name] = {"suite": suite, **execute_image(name, arguments, root)}
            if any(step["status"] != 0 for step in images[name]["steps"]):
                break  # images based on this one cannot be executed
        sysroot.run(["rm", "-rf", root])
    return images


def table(images: Mapping[str, Any]) -> str:
    lines = []
    for name, image in images.items():
        for step in image["steps"]:
            text = step["text"] if len(step["text"]) < 70 else step["text"][:67] + "..."
            lines.append(f"{name:9}{step['line']:4}  {step['status']:3}  {step['instruction']} {text}")
    return "\n".join(lines)


def failures(images: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Returns images that were not executed completely, or whose health check failed."""
    found = [f"{name}: not executed" for name in names if name not in images]
    for name, image in images.items():
        bad = [step for step in image["steps"] if step["status"] != 0]
        found += [f"{name}: line {step['line']} ended with status {step['status']}" for step in bad]
    return found


def run(*, executed: bool, suites: Sequence[str] = ()) -> int:
    """Lints the Dockerfiles; with `executed` also runs them, prints the table and writes the record.

    suites: the suites to execute; default: all. Images of other suites are kept in the record.
    """
    if unknown := [suite for suite in suites if suite not in SUITES]:
        raise WorkspaceError(f"no image begins with {unknown[0]}; the suites are {', '.join(SUITES)}")
    release.install_tools()
    if found := lint([DOCKERFILES / f"{name}.Dockerfile" for name in IMAGES]):
        raise WorkspaceError("\n".join(found))
    print(f"hadolint: {len(IMAGES)} Dockerfiles, nothing found")
    if not executed:
        return 0
    record = json.loads(RECORD.read_text()) if RECORD.is_file() else {"images": {}}
    chosen = suites or list(SUITES)
    others = {name: image for name, image in record["images"].items() if image["suite"] not in chosen}
    executed_now = execute(chosen)
    record = {"system": "debootstrap --variant=minbase SUITE", "images": {**others, **executed_now}}
    RECORD.write_text(json.dumps(record, indent=1) + "\n")
    print(table(executed_now))
    if found := failures(executed_now, [name for suite in chosen for name in SUITES[suite]]):
        raise WorkspaceError("\n".join(found))
    return 0
