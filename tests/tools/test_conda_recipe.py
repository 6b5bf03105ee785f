# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The recipe of conda has every package, with the requirements and the version of its wheel."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from workspace import packages, release, sysroot

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "conda" / "recipe.yaml"
CONDA_NAMES = {"torch": "pytorch", "PyYAML": "pyyaml"}


def name_of(requirement: str) -> str:
    """The name in a requirement of a wheel or of the recipe, as conda spells it."""
    pin = re.match(r'\$\{\{ pin_\w+\("([^"]+)"', requirement)
    name = pin.group(1) if pin else re.match(r"[\w.-]+", requirement).group()
    return CONDA_NAMES.get(name, name)


def required_by_wheel(name: str) -> set[str]:
    settings = tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())
    [dynamic] = settings["tool"].get("dynamic-metadata", [{}])
    listed = [*settings["project"].get("dependencies", ()), *dynamic.get("dependencies", ())]
    return {name_of(requirement) for requirement in listed}


def differences(recipe: dict) -> list[str]:
    """Where the recipe is not what the packages are."""
    outputs = {output["package"]["name"]: output for output in recipe["outputs"]}
    found = [
        f"{name}: only one of recipe and tree"
        for name in sorted(set(packages.package_names()) ^ set(outputs))
    ]
    for name in set(packages.package_names()) & set(outputs):
        run = {name_of(requirement) for requirement in outputs[name]["requirements"]["run"]} - {"python"}
        if run != required_by_wheel(name):
            found.append(f"{name}: requires {sorted(run)}, its wheel {sorted(required_by_wheel(name))}")
    version = packages.workspace_setting((ROOT / "pyproject.toml").read_text(), r'^version\s*=\s*"([^"]*)"')
    if recipe["context"]["version"] != version:
        found.append(f"version {recipe['context']['version']}, the tree has {version}")
    return found


def test_the_recipe_is_that_of_the_packages():
    assert differences(yaml.safe_load(RECIPE.read_text())) == []


def test_a_recipe_of_other_packages_is_noticed():
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["context"]["version"] = "0.0.9"
    recipe["outputs"][0]["package"]["name"] = "musa-imagination"
    recipe["outputs"][1]["requirements"]["run"].append("flask")
    found = differences(recipe)
    assert len(found) == 4 and "flask" in found[2] and "0.0.9" in found[3], found


RENDER = """
import json, sys
from rattler_build import VariantConfig, stage0
recipe = stage0.Stage0Recipe.from_file(sys.argv[1] + "/recipe.yaml")
rendered = recipe.render(VariantConfig.from_file(sys.argv[1] + "/variants.yaml"))
rows = [[str(output.recipe.package.name), dict(output.variant)] for output in rendered]
print(json.dumps(rows))
"""


@pytest.mark.full
@pytest.mark.slow
def test_rattler_build_renders_every_output():
    release.install_tools()
    rows = json.loads(sysroot.run([release.PYTHON, "-c", RENDER, RECIPE.parent]))
    assert {name for name, _ in rows} == set(packages.package_names())
    pythons = {variant["python"] for _, variant in rows if "python" in variant}
    torches = {variant["pytorch"] for name, variant in rows if name == "musa-runtime"}
    assert len(pythons) >= 2 and torches == {"2.13.*"}
