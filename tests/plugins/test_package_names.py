# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Modules and attributes below `torch_musa` that packs offer: found, refused, switched off, and reported."""

import json
import os

import pytest

from tests.harness.subprocesses import run_code, run_module
from tests.plugins.packs import write_pack

pytestmark = pytest.mark.once

PACK = """
from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "a pack that works"}


def attribute(name):
    if name == "answer":
        return 42
    raise AttributeError(name)


def broken(name):
    raise ImportError("broken pack")
"""


def path_of(*sites):
    return os.pathsep.join([*map(str, sites), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A pack with a module, a submodule, and attributes."""
    site = tmp_path_factory.mktemp("names")
    modules = ("bar = pack_named_bar", "bar.baz = pack_named_baz", "utils.qux = pack_named_qux")
    write_pack(site, "named", PACK, submodules=modules, attributes="pack_named:attribute")
    (site / "pack_named_bar.py").write_text("print('imported bar')\n__path__ = []\n")
    (site / "pack_named_baz.py").write_text("x = 7\n")
    (site / "pack_named_qux.py").write_text("x = 8\n")
    return site


def test_names_are_found_on_first_access(site):
    code = """
    import sys, torch, torch_musa
    print("pack_named" in sys.modules, "pack_named_bar" in sys.modules, "bar" in dir(torch_musa))
    from torch_musa.bar.baz import x
    import torch_musa.utils.qux
    from torch_musa import answer
    print(x, torch_musa.utils.qux.x, answer, torch_musa.answer)
    import pack_named_baz
    print(torch_musa.bar.baz is pack_named_baz, torch_musa.bar.__name__, torch.musa.is_initialized())
    print(hasattr(torch_musa, "question"))
    """
    assert run_code(code, PYTHONPATH=path_of(site)).splitlines() == [
        "False False True",
        "imported bar",
        "7 8 42 42",
        "True pack_named_bar False",
        "False",
    ]


def test_names_of_a_disabled_pack_are_missing_and_the_error_names_the_reason(site):
    code = """
    import torch_musa
    for statement in ("import torch_musa.bar.baz", "torch_musa.bar", "from torch_musa import answer"):
        try:
            exec(statement)
        except (AttributeError, ImportError) as error:
            print("TORCH_MUSA_DISABLE_PACKS switches off" in str(error))
    """
    found = run_code(code, PYTHONPATH=path_of(site), TORCH_MUSA_DISABLE_PACKS="named").splitlines()
    assert found == ["True", "True", "False"]  # the pack of an attribute is not known


def test_names_that_are_taken_are_reported(site, tmp_path):
    write_pack(tmp_path, "rival", PACK, submodules=("bar = pack_rival",))
    write_pack(tmp_path, "shadow", PACK, submodules=("utils.cpp_extension = pack_shadow",))
    done = run_module("torch_musa", "packs", "--json", PYTHONPATH=path_of(site, tmp_path))
    status = {row["name"]: row for row in json.loads(done.stdout)}
    assert status["named"]["status"] == "loaded" and status["rival"]["status"] == "failed"
    assert "torch_musa.bar is taken by pack-named 1.2" in status["rival"]["error"]
    assert "torch_musa.utils.cpp_extension is taken by torch_musa itself" in status["shadow"]["error"]


def test_functions_and_modules_without_a_pack_are_reported_and_not_used(tmp_path):
    write_pack(tmp_path, "plain", PACK, submodules=("bar = pack_plain",), attributes="pack_plain:attribute")
    points = tmp_path / "pack_plain-1.2.dist-info" / "entry_points.txt"
    points.write_text("\n".join(points.read_text().splitlines()[2:]))  # all except its pack
    done = run_module("torch_musa", "packs", "--json", PYTHONPATH=path_of(tmp_path))
    errors = {row["name"]: row["error"] for row in json.loads(done.stdout) if row["dist"] == "pack-plain"}
    assert "pack-plain declares no pack named 'plain'" in errors["plain"]
    assert "pack-plain declares no pack" in errors["bar"]
    code = "import torch_musa; print(hasattr(torch_musa, 'bar'), hasattr(torch_musa, 'answer'))"
    assert run_code(code, PYTHONPATH=path_of(tmp_path)) == "False False\n"


def test_an_error_of_a_function_is_raised(tmp_path):
    write_pack(tmp_path, "bad", PACK, attributes="pack_bad:broken")
    code = """
    import torch_musa
    try:
        torch_musa.question
    except ImportError as error:
        print(error)
    print(torch_musa.plugins.__name__ if hasattr(torch_musa, "plugins") else "not yet")
    from torch_musa import plugins
    """
    assert run_code(code, PYTHONPATH=path_of(tmp_path)) == "broken pack\nnot yet\n"
