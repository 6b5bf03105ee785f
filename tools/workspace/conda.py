# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Checks the recipe in conda/: `dev.py conda`.

rattler-build renders every output. With `build` it also builds outputs, with packages that replace those of
conda-forge (`workspace.conda_build`), to test the script and the requirements of each output. Such packages
contain files of this machine and must not be distributed.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ROOT, WorkspaceError, packages, release
from .progress import run_logged

RECIPE = ROOT / "conda"
FOLDER = ROOT / "build" / "conda"
RECORD = ROOT / "tests" / "data" / "last_conda_run.json"


def render(build: Sequence[str] = ()) -> dict[str, Any]:
    """Returns rattler-build's rendering of the recipe. build: names of the outputs to build."""
    release.install_tools()
    FOLDER.mkdir(parents=True, exist_ok=True)
    result = FOLDER / "result.json"
    result.unlink(missing_ok=True)
    script = Path(__file__).parent / "conda_build.py"
    command = [release.PYTHON, script, RECIPE, "--site", packages.SITE, "--folder", FOLDER, "--log", result]
    command += [f"--build={name}" for name in build]
    log, environment = FOLDER / "build.log", release.tool_environment()
    run_logged("the recipe of conda", [str(word) for word in command], log, environment, cwd=ROOT)
    return json.loads(result.read_text())


def table(record: dict[str, Any]) -> str:
    lines = []
    for name in dict.fromkeys(name for name, _ in record["rendered"]):
        variants = [variant for other, variant in record["rendered"] if other == name]
        pythons = sorted({variant.get("python", "any") for variant in variants})
        text = f"{name:21}rendered for Python {', '.join(pythons)}"
        if entry := record["built"].get(name):
            lacks = ", ".join(entry["not_tested"])
            tested = f"not tested, for lack of {lacks}" if lacks else "tests passed"
            text += f"; {entry['package']}, {entry['bytes'] / 1000:.0f} KB, {entry['files']} files; {tested}"
        lines.append(text)
    return "\n".join(lines)


def run(build: Sequence[str]) -> int:
    """Renders the recipe, builds the named outputs and prints a table.

    Builds are recorded; recorded builds of other outputs in the recipe are kept.
    """
    names = packages.package_names()
    if unknown := [name for name in build if name not in names]:
        raise WorkspaceError(f"the recipe has no output {unknown[0]}; the outputs are {', '.join(names)}")
    record = {"built": {}, **render(build)}
    if build:
        rendered = {name for name, _ in record["rendered"]}
        recorded = json.loads(RECORD.read_text())["built"] if RECORD.is_file() else {}
        kept = {name: entry for name, entry in recorded.items() if name in rendered}
        record["built"] = {**kept, **record["built"]}
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    print(table(record))
    return 0
