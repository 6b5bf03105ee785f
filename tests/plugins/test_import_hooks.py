# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Code of packs before the first use of the device: hooks at `import torch`, and modules of `torch.musa`."""

import json
import os

import pytest

from tests.harness.subprocesses import run_code, run_forked, run_module
from tests.plugins.packs import write_pack

pytestmark = pytest.mark.once

PACK = """
from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "a pack that works"}
"""
HOOK = """
def musa_import(musa):
    assert musa.__name__ == "torch_musa.musa" and not musa.is_initialized()
    musa.order = [*getattr(musa, "order", ()), __name__]
"""
RUN_OPTION = """
import contextlib


@contextlib.contextmanager
def foo():
    print("foo begins")
    yield
    print("foo ends")
"""
BAD_HOOKS = {
    "c_raises": ("def musa_import(musa): raise ValueError('not at import')", "ValueError: not at import"),
    "d_exits": ("raise SystemExit(3)", "SystemExit: 3"),
    "e_absent": ("x = 1", "has no attribute 'musa_import'"),
    "f_missing": ("import a_module_that_is_not_there", "No module named 'a_module_that_is_not_there'"),
}


def path_of(*sites):
    return os.pathsep.join([*map(str, sites), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A pack with a hook and a module, among packs whose hooks fail."""
    site = tmp_path_factory.mktemp("packs")
    write_pack(
        site,
        "a_good",
        PACK,
        import_hook=HOOK,
        modules=("foo = pack_a_good_foo",),
        submodules=("foo = pack_a_good_foo", "utils.foo = pack_a_good_foo"),
        run_options=("foo = pack_a_good_run:foo",),
    )
    (site / "pack_a_good_foo.py").write_text("print('imported foo')\nx = 7\n")
    (site / "pack_a_good_run.py").write_text(RUN_OPTION)
    write_pack(site, "z_good", PACK, import_hook=HOOK)
    for name, (code, _) in BAD_HOOKS.items():
        write_pack(site, name, PACK, import_hook=code)
    return site


@pytest.fixture(scope="module")
def environment(site):
    return {"PYTHONPATH": path_of(site)}


@pytest.fixture(scope="module")
def rows(environment):
    done = run_module("torch_musa", "packs", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {row["name"]: row for row in json.loads(done.stdout)}


def test_hooks_run_at_import_in_order_of_names_and_failures_stop_nothing(environment):
    code = """
    import sys, warnings
    warnings.simplefilter("error")
    import torch
    print(torch.musa.order, torch.musa.is_initialized(), "pluggy" in sys.modules)
    print([name for name in ("pack_a_good", "pack_c_raises", "pack_a_good_foo") if name in sys.modules])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        print(torch.ones(2, device="musa").sum().item())
    packs = [str(one.message) for one in caught if one.category.__name__ == "PackWarning"]
    print(sum("op pack 'c_raises'" in text and "Fix: " in text for text in packs))
    """
    assert run_code(code, **environment).splitlines() == [
        "['pack_a_good_startup', 'pack_z_good_startup'] False False",
        "[]",
        "2.0",
        "1",
    ]


@pytest.mark.parametrize("name", sorted(BAD_HOOKS))
def test_a_hook_that_fails_is_recorded_and_its_pack_does_not_load(rows, name):
    assert rows[name]["status"] == "failed"
    assert BAD_HOOKS[name][1] in rows[name]["error"]
    assert f"export TORCH_MUSA_DISABLE_PACKS={name}" in rows[name]["error"]


def test_the_other_packs_load(rows):
    assert {name: rows[name]["status"] for name in ("a_good", "z_good", "amp", "mudnn")} == dict.fromkeys(
        ("a_good", "z_good", "amp", "mudnn"), "loaded"
    )


def test_the_doctor_shows_a_hook_that_fails(environment):
    done = run_module("torch_musa", "doctor", "--json", **environment)
    (packs,) = [outcome for outcome in json.loads(done.stdout) if outcome["title"] == "packs"]
    assert done.returncode == 1 and packs["status"] == "fail"
    assert "ValueError: not at import" in packs["detail"]


def test_without_sdk_the_failure_is_shown_too(environment):
    done = run_module("torch_musa", "packs", "--json", **{**environment, "MUSA_HOME": "/nonexistent/musa"})
    status = {row["name"]: row["status"] for row in json.loads(done.stdout)}
    assert (status["a_good"], status["c_raises"]) == ("found", "failed")


def test_strict_raises_the_failure_at_the_first_use_and_not_at_import(environment):
    code = """
    import torch
    from musa_runtime.errors import PackError
    try:
        torch.ones(1, device="musa")
    except PackError as error:
        print("c_raises" in str(error), type(error.__cause__).__name__)
    """
    assert run_code(code, TORCH_MUSA_STRICT="1", **environment) == "True ValueError\n"


@pytest.mark.parametrize(
    "statement",
    [
        "torch.musa.foo.x",
        "__import__('torch.musa.foo').musa.foo.x",
        "importlib.import_module('torch.musa.foo').x",
    ],
)
def test_a_module_of_a_pack_is_imported_on_first_access(environment, statement):
    code = f"""
    import importlib, sys
    import torch
    assert "foo" in dir(torch.musa) and "pack_a_good_foo" not in sys.modules
    print({statement})
    from torch.musa.foo import x
    import pack_a_good_foo
    assert torch.musa.foo is pack_a_good_foo is sys.modules["torch.musa.foo"]
    assert pack_a_good_foo.__spec__.name == "pack_a_good_foo"
    print(x, torch.musa.is_initialized())
    """
    assert run_code(code, **environment) == "imported foo\n7\n7 False\n"


@pytest.mark.parametrize("name", ["foo", "utils.foo"])
def test_a_module_below_torch_musa_is_imported_on_first_access(environment, name):
    code = f"""
    import importlib, sys
    import torch_musa
    assert "pack_a_good_foo" not in sys.modules
    module = importlib.import_module("torch_musa.{name}")
    import pack_a_good_foo
    assert module is pack_a_good_foo is sys.modules["torch_musa.{name}"]
    assert torch_musa.foo is module and not hasattr(torch_musa, "bar")
    """
    assert run_code(code, **environment) == "imported foo\n"


PROGRAM = "import sys\nprint(__name__, sys.argv[1:], __file__ == sys.argv[0])\nsys.exit(5)\n"


@pytest.mark.parametrize("options", [["--foo"], []])
def test_run_executes_a_program_within_the_option_of_a_pack(environment, tmp_path, options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = run_module("torch_musa", "run", *options, str(program), "--json", "-x", **environment)
    assert done.returncode == 5, done.stderr
    body = ["__main__ ['--json', '-x'] True"]
    # The program ends with an exception, SystemExit, which exits the context manager of the option too.
    assert done.stdout.splitlines() == (["foo begins", *body] if options else body)


def test_run_refuses_an_option_that_no_pack_offers_and_a_program_that_is_not_there(environment, tmp_path):
    disabled = {**environment, "TORCH_MUSA_DISABLE_PACKS": "a_good"}
    done = run_module("torch_musa", "run", "--foo", "x.py", **disabled)
    assert done.returncode == 2 and "--foo" in done.stderr
    done = run_module("torch_musa", "run", "--foo", str(tmp_path / "absent.py"), **environment)
    assert done.returncode == 1 and "no such file" in done.stderr and "Fix: " in done.stderr


@pytest.mark.parametrize("names", ["a_good, c_raises", "all"])
def test_a_disabled_pack_has_no_hook_and_no_module(environment, names):
    code = """
    import torch
    print("pack_a_good_startup" in getattr(torch.musa, "order", ()))
    print(hasattr(torch.musa, "foo"), "foo" in dir(torch.musa))
    try:
        import torch.musa.foo
    except ModuleNotFoundError as error:
        print(error)
    from torch_musa import import_hooks
    print(("pack-c_raises", "c_raises") in import_hooks.failures)
    """
    printed = run_code(code, TORCH_MUSA_DISABLE_PACKS=names, **environment).splitlines()
    assert printed == [
        "False",
        "False False",
        "torch.musa.foo belongs to the pack 'a_good', which TORCH_MUSA_DISABLE_PACKS switches off.",
        "Fix: remove it from that variable",
        "False",
    ]


def test_trace_shows_the_hooks_at_import(environment):
    done = run_forked("import torch", TORCH_MUSA_TRACE_PACKS="1", **environment)
    assert "a_good: pack_a_good_startup:musa_import" in done.stderr


def test_a_module_name_goes_to_one_distribution_and_the_other_is_reported(environment, site, tmp_path):
    write_pack(tmp_path, "rival", PACK, modules=("foo = pack_rival",))
    write_pack(tmp_path, "shadow", PACK, modules=("memory = pack_shadow",))
    write_pack(tmp_path, "below", PACK, submodules=("foo = pack_below",))
    write_pack(tmp_path, "umbrella", PACK, submodules=("utils.cpp_extension = pack_umbrella",))
    done = run_module("torch_musa", "packs", "--json", PYTHONPATH=path_of(site, tmp_path))
    status = {row["name"]: row for row in json.loads(done.stdout)}
    assert status["a_good"]["status"] == "loaded" and status["rival"]["status"] == "failed"
    assert "torch.musa.foo is taken by pack-a_good 1.2" in status["rival"]["error"]
    assert "torch.musa.memory is taken by torch.musa itself" in status["shadow"]["error"]
    assert "torch_musa.foo is taken by pack-a_good 1.2" in status["below"]["error"]
    assert "torch_musa.utils.cpp_extension is taken by torch_musa itself" in status["umbrella"]["error"]
    code = "import torch; print(torch.musa.foo.__name__)"
    told = run_code(code, PYTHONPATH=path_of(site, tmp_path), TORCH_MUSA_DISABLE_PACKS="a_good")
    assert told == "pack_rival\n"


def test_hooks_and_modules_without_a_pack_are_reported_and_not_used(tmp_path):
    write_pack(tmp_path, "plain", PACK, import_hook=HOOK, modules=("foo = pack_plain",))
    points = tmp_path / "pack_plain-1.2.dist-info" / "entry_points.txt"
    lines = points.read_text().splitlines()
    points.write_text("\n".join(lines[2:]))  # all except its pack
    done = run_module("torch_musa", "packs", "--json", PYTHONPATH=path_of(tmp_path))
    errors = {row["name"]: row["error"] for row in json.loads(done.stdout) if row["dist"] == "pack-plain"}
    assert "pack-plain declares no pack named 'plain'" in errors["plain"]
    assert "pack-plain declares no pack" in errors["foo"]
    code = "import torch; print(hasattr(torch.musa, 'order'), hasattr(torch.musa, 'foo'))"
    assert run_code(code, PYTHONPATH=path_of(tmp_path)) == "False False\n"


def test_a_pack_for_loaders_of_both_contracts_loads_once(tmp_path):
    write_pack(tmp_path, "both", PACK)
    points = tmp_path / "pack_both-1.2.dist-info" / "entry_points.txt"
    old = "[torch_musa.plugins]\nboth = pack_both\n[torch_musa.contract]\nboth = v1\n"
    points.write_text(points.read_text() + old + "[torch_musa.plugins.v9]\nboth = not_there\n")
    code = """
    from torch_musa import plugins
    print([(r.status, r.contract) for r in plugins.load_packs() if r.name == "both"])
    """
    assert run_code(code, PYTHONPATH=path_of(tmp_path)) == "[('loaded', 'v2')]\n"
