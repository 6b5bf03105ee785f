# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The conda recipe has every package, with the requirements of its wheel."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import yaml

from workspace import packages

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "conda" / "recipe.yaml"
CONDA_NAMES = {"torch": "pytorch", "PyYAML": "pyyaml"}


def name_of(requirement: str) -> str:
    """The name in a requirement of a wheel or of the recipe, in conda's spelling."""
    pin = re.match(r'\$\{\{ pin_\w+\("([^"]+)"', requirement)
    name = pin.group(1) if pin else re.match(r"[\w.-]+", requirement).group()
    return CONDA_NAMES.get(name, name)


def required_by_wheel(name: str) -> set[str]:
    settings = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
    [dynamic] = settings["tool"].get("dynamic-metadata", [{}])
    listed = [*settings["project"].get("dependencies", ()), *dynamic.get("dependencies", ())]
    return {name_of(requirement) for requirement in listed}


def differences(recipe: dict) -> list[str]:
    outputs = {output["package"]["name"]: output for output in recipe["outputs"]}
    names = set(packages.package_names())
    found = [f"{name}: only one of recipe and tree" for name in sorted(names ^ set(outputs))]
    for name in sorted(names & set(outputs)):
        run = {name_of(requirement) for requirement in outputs[name]["requirements"]["run"]} - {"python"}
        if run != required_by_wheel(name):
            found.append(f"{name}: requires {sorted(run)}, its wheel {sorted(required_by_wheel(name))}")
    return found


def test_the_recipe_matches_the_packages() -> None:
    recipe = yaml.safe_load(RECIPE.read_text())
    assert differences(recipe) == []
    recipe["outputs"][0]["package"]["name"] = "musa-imagination"
    recipe["outputs"][1]["requirements"]["run"].append("flask")
    found = differences(recipe)
    assert len(found) == 3 and "musa-imagination" in found[1] and "flask" in found[2], found
