# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The README of musa-compat lists all names; those that it lists as covered exist, and the others do not."""

import importlib
import re
import sys
import warnings
from importlib import metadata
from pathlib import Path

import pytest

import torch_musa
from musa_compat import musa_extension
from tests.harness.subprocesses import run_code
from tests.musa_compat import table
from tests.musa_compat.table import README

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = pytest.mark.once

TEXT = README.read_text()
SUBMODULES = "torch_musa.submodules.v2"
# Names that the pack adds to torch itself.
ADDED = ("torch.nn.SwishGLU", "torch.nn.RoPE", "torch.nn.functional.rope", "torch.nn.functional.swish_glu")


def exists(name: str) -> bool:
    """Whether a program can import or read a name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            importlib.import_module(name)
            return True
        except ModuleNotFoundError:
            module, _, attribute = name.rpartition(".")
            try:
                return hasattr(importlib.import_module(module), attribute)
            except ModuleNotFoundError:
                return False


@pytest.mark.parametrize(("name", "covered"), sorted(table.names(TEXT).items()))
def test_the_table_says_which_names_exist(musa, name, covered):
    assert exists(name) is covered


def test_no_module_that_the_pack_offers_is_left_out():
    offered = {
        entry.name for entry in metadata.entry_points(group=SUBMODULES) if entry.dist.name == "musa-compat"
    }
    covered = {name for name, is_covered in table.names(TEXT).items() if is_covered}
    assert offered and {f"torch_musa.{name}" for name in offered} <= covered
    modules = metadata.entry_points(group="torch_musa.modules.v2")
    assert {f"torch.musa.{entry.name}" for entry in modules if entry.dist.name == "musa-compat"} <= covered
    assert set(ADDED) <= covered


def test_every_public_name_of_torch_musa_is_forwarded(musa):
    wrong = [name for name in musa.__all__ if not hasattr(torch_musa, name)]
    assert wrong == []
    assert torch_musa.Stream is musa.Stream and torch_musa.amp is musa.amp
    with pytest.raises(AttributeError, match="has no attribute 'is_avaliable'"):
        torch_musa.is_avaliable  # noqa: B018


def test_a_name_of_the_package_itself_stays(musa):
    import torch_musa.plugins

    assert torch_musa.plugins.__name__ == "torch_musa.plugins" and torch_musa.__version__


def test_the_umbrella_lists_the_extra_of_each_module():
    """torch-musa's metadata lists the modules, for the error without the pack."""
    known = {entry.name: entry.value for entry in metadata.entry_points(group="torch_musa.names_of_extras")}
    offered = {entry.name for entry in metadata.entry_points(group=SUBMODULES)}
    # An import of a module below another one fails with the error of the upper one.
    inner = {name for name in offered if name.partition(".")[0] in known}
    assert offered - inner == {name for name in known if name in offered - inner}
    assert offered <= inner | set(known) and set(known.values()) == {"compat", "as_cuda"}


WRONG_TABLES = {
    "| `torch_musa.imaginary` | | yes |": {"torch_musa.imaginary": True},
    "| `torch_musa.is_available` | | no: a reason |": {"torch_musa.is_available": False},
}


@pytest.mark.parametrize("text", WRONG_TABLES)
def test_a_wrong_table_is_noticed(musa, text):
    ((name, covered),) = table.names(text).items()
    assert WRONG_TABLES[text] == {name: covered}
    assert exists(name) is not covered


def test_a_row_without_a_reason_is_refused():
    with pytest.raises(ValueError, match="no reason"):
        table.names("| `torch_musa.a` | | no |")


def test_the_headers_are_those_of_the_table():
    """The README repeats headers.toml, and the installed headers include these files."""
    listed = table.headers(TEXT)
    codegen = Path(README).parent / "codegen" / "headers.toml"
    assert listed == {
        f"torch_musa/{name}": target for name, target in tomllib.loads(codegen.read_text()).items()
    }
    site = musa_extension.LAYOUT.parent
    for name, target in listed.items():
        include = re.search(r'#include "(.+)"', (site / name).read_text())
        assert include and (site / name).parent.joinpath(include[1]).resolve().match(f"*/include/{target}")


DEPRECATED = """
import warnings
import torch_musa
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {statement}
    {statement}
found = [warning for warning in caught if issubclass(warning.category, FutureWarning)]
print(len(found), found[-1].message, found[-1].filename)
"""


@pytest.mark.parametrize(
    ("statement", "name", "instead"),
    [
        ("import torch_musa.core.device", "torch_musa.core.device", "torch.musa"),
        (
            "torch_musa.optim.FusedAdamW([torch_musa._impl.torch.zeros(2, requires_grad=True)])",
            "torch_musa.optim.FusedAdamW",
            "torch.optim.AdamW(params, fused=True)",
        ),
    ],
)
def test_a_deprecated_name_warns_once_at_the_line_of_the_program(statement, name, instead):
    count, *rest = run_code(DEPRECATED.format(statement=statement)).split(" ")
    # torch_musa.core warns too, when a module of it is imported.
    assert int(count) == 1 + name.startswith("torch_musa.core.")
    assert " ".join(rest) == f"{name} is deprecated. Use {instead}. <child>\n"


def test_code_of_a_library_is_not_warned(tmp_path):
    (tmp_path / "of_vendor.py").write_text(
        "import torch_musa.core.device\nfrom torch_musa.core import stream\n"
    )
    code = f"""
import sys, warnings
sys.path.insert(0, {str(tmp_path)!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import of_vendor
    print([str(warning.message) for warning in caught])
    import torch_musa
    torch_musa.optim.FusedAdam([torch_musa._impl.torch.zeros(2, requires_grad=True)])
    print(len(caught))
"""
    assert run_code(code) == "[]\n1\n"


def test_importing_torch_loads_only_the_import_hook():
    code = "import sys, torch; print(sorted(name for name in sys.modules if name.startswith('musa_compat')))"
    hook = ["musa_compat", "musa_compat.additions", "musa_compat.fused_layers", "musa_compat.profiler_names"]
    assert run_code(code) == f"{hook}\n"
