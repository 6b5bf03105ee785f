# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The conda recipe has every package, with the requirements and the version of its wheel."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from workspace import WorkspaceError, conda, packages

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
    """The differences between the recipe and the packages."""
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


def test_the_recipe_matches_the_packages():
    assert differences(yaml.safe_load(RECIPE.read_text())) == []


def test_a_recipe_of_other_packages_is_noticed():
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["context"]["version"] = "0.0.9"
    recipe["outputs"][0]["package"]["name"] = "musa-imagination"
    recipe["outputs"][1]["requirements"]["run"].append("flask")
    found = differences(recipe)
    assert len(found) == 4 and "flask" in found[2] and "0.0.9" in found[3], found


# -- the packages that rattler-build makes from it


def stale(record: dict, recipe: dict) -> list[str]:
    """The differences between the record of the last run and the recipe."""
    outputs = {output["package"]["name"]: output for output in recipe["outputs"]}
    rendered = {name for name, _ in record["rendered"]}
    found = [f"{name}: only one of record and recipe" for name in sorted(rendered ^ outputs.keys())]
    for name, entry in record["built"].items():
        wanted = {name_of(requirement) for requirement in outputs[name]["requirements"]["run"]}
        have = {text.split()[0] for text in entry["depends"]}
        if not wanted <= have:
            found.append(f"{name}: the package does not require {sorted(wanted - have)}")
        if f"/{name}-{recipe['context']['version']}-" not in entry["package"]:
            found.append(f"{name}: the package is {entry['package']}")
    return found


def test_the_record_matches_the_recipe():
    record = json.loads(conda.RECORD.read_text())
    assert stale(record, yaml.safe_load(RECIPE.read_text())) == []
    assert record["stand_ins"]
    tested = {name for name, entry in record["built"].items() if not entry["not_tested"]}
    assert tested >= {"musa-emulator", "musa-runtime", "torch-musa", "musa-port", "musa-amp"}


def test_a_record_of_another_recipe_is_noticed():
    record = json.loads(conda.RECORD.read_text())
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["context"]["version"] = "0.0.9"
    outputs = {output["package"]["name"]: output for output in recipe["outputs"]}
    outputs["musa-port"]["requirements"]["run"].append("flask")
    record["rendered"] = [row for row in record["rendered"] if row[0] != "musa-amp"]
    record["built"] = {"musa-port": record["built"]["musa-port"]}
    found = stale(record, recipe)
    assert len(found) == 3 and "musa-amp: only one" in found[0] and "['flask']" in found[1], found


def test_an_output_that_does_not_exist_is_named():
    with pytest.raises(WorkspaceError, match="the recipe has no output musa-imagination; the outputs are"):
        conda.run(["musa-imagination"])


@pytest.mark.full
@pytest.mark.slow
def test_rattler_build_renders_every_output():
    rows = conda.render()["rendered"]
    assert {name for name, _ in rows} == set(packages.package_names())
    pythons = {variant["python"] for _, variant in rows if "python" in variant}
    torches = {variant["pytorch"] for name, variant in rows if name == "musa-runtime"}
    assert len(pythons) >= 2 and torches == {"2.13.*"}


@pytest.mark.full
@pytest.mark.slow
def test_an_output_is_built_with_packages_of_this_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(conda, "FOLDER", tmp_path / "folder")
    built = conda.render(["musa-port"])["built"]["musa-port"]
    assert (tmp_path / "folder" / "output" / built["package"]).is_file() and built["files"] > 10
    assert "musa-runtime" in built["not_tested"]
    text = RECIPE.read_text()
    assert text.count("scikit-build-core >=1.1") > 5
    (tmp_path / "conda").mkdir()
    (tmp_path / "conda" / "recipe.yaml").write_text(text.replace("core >=1.1", "core >=99"))
    (tmp_path / "conda" / "variants.yaml").write_text((RECIPE.parent / "variants.yaml").read_text())
    monkeypatch.setattr(conda, "RECIPE", tmp_path / "conda")
    with pytest.raises(WorkspaceError, match="Failed to resolve dependencies"):
        conda.render(["musa-port"])
