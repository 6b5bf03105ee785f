# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The plugin contract equals its documentation: an undocumented new or changed hook fails a test here."""

import inspect
from pathlib import Path

import pluggy
import pytest

from musa_runtime import hookspecs
from torch_musa import entry_points

pytestmark = pytest.mark.once


README = Path(__file__).parents[2] / "packages" / "musa-runtime" / "README.md"

# The hooks of each version. Changing a hook's arguments or removing a hook needs a new CONTRACT_VERSION.
VERSION_1 = {
    "musa_pack_info": (),
    "musa_libraries": (),
    "musa_register": ("musa",),
    "musa_doctor_checks": (),
    "musa_env_report": (),
}
CONTRACT = {1: VERSION_1, 2: {**VERSION_1, "musa_rank": ()}}


def hooks():
    marker = hookspecs.PROJECT + "_spec"
    return {
        name: value for name, value in vars(hookspecs).items() if getattr(value, marker, None) is not None
    }


def drift(specifications, contract):
    """Returns the differences between the hooks and a contract."""
    found = {name: tuple(inspect.signature(hook).parameters) for name, hook in specifications.items()}
    return [
        f"{name}: {found.get(name, 'no such hook')} is not {contract.get(name, 'in the contract')}"
        for name in sorted(found.keys() | contract.keys())
        if found.get(name) != contract.get(name)
    ]


def undocumented(specifications, text):
    """Returns the names of hooks that the text does not explain in a separate sentence."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0].startswith("`musa_"):
            rows[cells[0].strip("`").partition("(")[0]] = cells[1]
    return [name for name in specifications if len(rows.get(name, "")) < 20]


def test_the_hooks_are_those_of_the_declared_version():
    assert drift(hooks(), CONTRACT[hookspecs.CONTRACT_VERSION]) == []


def test_a_difference_is_detected():
    def musa_register(musa, level):
        """Changed."""

    changed = {**hooks(), "musa_register": musa_register, "musa_new": lambda: None}
    del changed["musa_libraries"]
    names = [complaint.partition(":")[0] for complaint in drift(changed, CONTRACT[2])]
    assert names == ["musa_libraries", "musa_new", "musa_register"]


def test_packs_of_version_1_find_their_hooks():
    assert [line for line in drift(hooks(), VERSION_1) if not line.startswith("musa_rank:")] == []


@pytest.mark.parametrize("name", sorted(hooks()))
def test_each_hook_has_the_prefix_and_one_line_of_documentation(name):
    assert name.startswith("musa_")
    documentation = inspect.getdoc(hooks()[name])
    assert documentation and "\n" not in documentation


def test_the_readme_explains_each_hook():
    assert undocumented(hooks(), README.read_text()) == []


@pytest.mark.parametrize(
    "group",
    [
        entry_points.PACKS,
        entry_points.IMPORT_HOOKS,
        entry_points.MODULES,
        entry_points.SUBMODULES,
        entry_points.ATTRIBUTES,
        entry_points.RUN_OPTIONS,
    ],
)
def test_the_specifications_and_the_readme_show_each_group_of_entry_points(group):
    line = f'[project.entry-points."{group}"]'
    assert line in hookspecs.__doc__ and line in README.read_text()
    assert group.endswith(f".v{hookspecs.CONTRACT_VERSION}")


def test_an_unexplained_hook_is_detected():
    assert undocumented(["musa_register"], "| `musa_pack_info()` | what the pack is, in one line |") == [
        "musa_register"
    ]


def test_pluggy_accepts_the_specifications():
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    assert all(hasattr(manager.hook, name) for name in hooks())
