# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The pack loader records the failure of each pack, and the other packs work."""

import json
import os

import pytest

from tests.harness import mixtures
from tests.harness.subprocesses import run_code, run_forked, run_module
from tests.plugins.packs import write_pack

pytestmark = pytest.mark.once

HOOKIMPL = "from musa_runtime.hookspecs import hookimpl\n"

GOOD = """
from musa_runtime.hookspecs import hookimpl


@hookimpl
def musa_pack_info():
    return {"summary": "a pack that works"}

@hookimpl
def musa_register(musa):
    assert musa.__name__ == "torch_musa.musa"
    print("registered", __name__)

@hookimpl
def musa_doctor_checks():
    def library():
        return "version 7"
    def board():
        raise OSError("the board is on fire")
    def fan():
        raise UserWarning("the fan is loud\\nFix: oil it")
    return [("library", library), ("board", board), ("fan", fan)]

@hookimpl
def musa_env_report():
    return {"library": "version 7"}
"""

# Its import is recorded, because a pack of another contract version must not run at all.
TRACE = """
import os
open(os.environ["PACK_TRACE"], "a").write(__name__ + "\\n")
"""

BAD = {
    "b_raises": (
        "import a_module_that_is_not_there",
        "failed",
        "ModuleNotFoundError: No module named 'a_module_that",
    ),
    "c_exits": ("raise SystemExit(3)", "failed", "SystemExit: 3"),
    "d_no_such_library": (
        HOOKIMPL + "@hookimpl\ndef musa_libraries(): return ['/nonexistent/libpack.so']",
        "failed",
        "/nonexistent/libpack.so: cannot open shared object file",
    ),
    "e_bad_library": (
        HOOKIMPL + "import os\n@hookimpl\ndef musa_libraries(): return [os.environ['PACK_BAD_LIBRARY']]",
        "failed",
        "file too short",
    ),
    "f_typo": (HOOKIMPL + "@hookimpl\ndef musa_libarries(): return []", "failed", "musa_libarries"),
    "g_argument": (HOOKIMPL + "@hookimpl\ndef musa_register(cuda): pass", "failed", "cuda"),
    "h_unmarked": ("def musa_libraries(): return []", "failed", "@musa_runtime.hookspecs.hookimpl"),
    "i_register": (
        HOOKIMPL + "@hookimpl\ndef musa_register(): raise ValueError('not today')",
        "failed",
        "ValueError: not today",
    ),
    "i_string": (
        HOOKIMPL + "@hookimpl\ndef musa_libraries(): return '/some/library.so'",
        "failed",
        "must return a list of paths, but returned the path '/some/library.so'",
    ),
    "j_no_such_object": ("x = 1", "failed", "has no attribute 'plugin'"),
    "i_rank": (
        HOOKIMPL + "@hookimpl\ndef musa_rank(): return 'first'",
        "failed",
        "musa_rank must return an int, but returned 'first'",
    ),
    "k_future": (TRACE, "incompatible", "have: contract v3"),
    "l_undeclared": (TRACE, "incompatible", "torch_musa.contract"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Two good packs, one for each contract, and every kind of bad pack between them."""
    site = tmp_path_factory.mktemp("packs")
    (site / "libbad.so").write_bytes(b"no library")
    write_pack(site, "a_first", GOOD)
    write_pack(site, "z_last", GOOD, "v1")
    for name, (code, _, _) in BAD.items():
        contract = {"k_future": "v3", "l_undeclared": None}.get(name, "v2")
        write_pack(site, name, code, contract, "pack_j_no_such_object:plugin" if name[0] == "j" else None)
    return site


@pytest.fixture(scope="module")
def environment(site):
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    return {
        "PYTHONPATH": path,
        "PACK_TRACE": str(site / "trace"),
        "PACK_BAD_LIBRARY": str(site / "libbad.so"),
    }


def ours(rows):
    return [row for row in rows if row["dist"].startswith("pack-")]


@pytest.fixture(scope="module")
def records(environment):
    done = run_module("torch_musa", "packs", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {"printed": done.stderr, "rows": ours(json.loads(done.stdout))}


def test_every_pack_has_a_record_in_order_of_names(records):
    assert [row["name"] for row in records["rows"]] == sorted(["a_first", *BAD, "z_last"])


@pytest.mark.parametrize("name", ["a_first", "z_last"])
def test_good_packs_work_among_bad_ones(records, name):
    row = next(row for row in records["rows"] if row["name"] == name)
    assert (row["status"], row["error"], row["dist"], row["version"]) == (
        "loaded",
        None,
        f"pack-{name}",
        "1.2",
    )
    assert row["summary"] == "a pack that works"
    assert f"registered pack_{name}" in records["printed"]


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_pack_is_recorded_with_cause_and_cure(records, name, request):
    _, status, cause = BAD[name]
    row = next(row for row in records["rows"] if row["name"] == name)
    assert row["status"] == status
    assert cause in row["error"]
    mixtures.check(request, row["error"])
    assert f"'{name}' (pack-{name} 1.2)" in row["error"]
    assert f"export TORCH_MUSA_DISABLE_PACKS={name}" in row["error"]
    assert row["seconds"] >= 0


def test_a_pack_of_another_contract_is_not_imported(records, site):
    assert not (site / "trace").exists()


def test_the_device_works_among_bad_packs_and_packs_load_at_first_use_only(environment):
    code = """
    import sys, torch
    assert not any(name.startswith("pack_") for name in sys.modules)
    torch.manual_seed(0), torch.musa.is_available(), torch.musa.device_count()
    assert not any(name.startswith("pack_") for name in sys.modules)
    print(torch.ones(3, device="musa").sum().item())
    assert "pack_a_first" in sys.modules and "pack_z_last" in sys.modules
    """
    printed = run_code(code, **environment).splitlines()
    assert printed == ["registered pack_a_first", "registered pack_z_last", "3.0"]


def test_one_of_two_packs_of_a_name_is_loaded_and_the_other_fails(environment, site, tmp_path):
    (tmp_path / "b").mkdir()
    write_pack(tmp_path, "twin", GOOD)
    write_pack(tmp_path / "b", "twin", GOOD)
    rival = (tmp_path / "b" / "pack_twin-1.2.dist-info").rename(
        tmp_path / "b" / "pack_twin_rival-9.dist-info"
    )
    (rival / "METADATA").write_text("Metadata-Version: 2.1\nName: pack-twin-rival\nVersion: 9\n")
    path = os.pathsep.join([str(tmp_path), str(tmp_path / "b"), os.environ.get("PYTHONPATH", "")])
    done = run_module("torch_musa", "packs", "--json", PYTHONPATH=path)
    first, second = [row for row in json.loads(done.stdout) if row["name"] == "twin"]
    assert (first["dist"], first["status"]) == ("pack-twin", "loaded")
    assert (second["dist"], second["status"]) == ("pack-twin-rival", "failed")
    assert "the name is taken by pack-twin 1.2" in second["error"]


def test_strict_raises_the_first_failure_and_cpu_work_goes_on(environment):
    code = """
    import torch
    from musa_runtime.errors import PackError
    for _ in range(2):
        try:
            torch.ones(3, device="musa")
        except PackError as error:
            print("b_raises" in str(error), type(error.__cause__).__name__)
    print(torch.ones(3).sum().item())
    """
    printed = run_code(code, TORCH_MUSA_STRICT="1", **environment).splitlines()
    assert printed[-3:] == ["True ModuleNotFoundError"] * 2 + ["3.0"]


def test_packs_can_be_disabled_by_name_and_altogether(environment):
    code = """
    from torch_musa import plugins
    def status():
        plugins._records = None
        return [r.status for r in plugins.load_packs() if r.dist.startswith("pack-")]
    import os
    print(status().count("disabled"), end=" ")
    os.environ["TORCH_MUSA_DISABLE_PACKS"] = "all"
    print(set(status()))
    """
    printed = run_code(code, TORCH_MUSA_DISABLE_PACKS="a_first, z_last", **environment)
    assert printed == "2 {'disabled'}\n"


def test_trace_shows_every_hook_call(environment):
    code = "import torch; torch.ones(1, device='musa')"
    done = run_forked(code, TORCH_MUSA_TRACE_PACKS="1", **environment)
    assert done.returncode == 0, done.stderr
    assert "a_first.musa_register(musa)" in done.stderr
    assert "musa_register raised ValueError('not today')" in done.stderr


def test_doctor_runs_the_checks_of_packs_and_reports_bad_packs(environment):
    done = run_module("torch_musa", "doctor", "--json", **environment)
    assert done.returncode == 1
    outcomes = {o["title"]: o for o in json.loads(done.stdout)}
    assert outcomes["a_first: library"]["status"] == "ok"
    assert outcomes["a_first: library"]["detail"] == "version 7"
    assert outcomes["z_last: board"]["status"] == "fail"
    assert "the board is on fire" in outcomes["z_last: board"]["detail"]
    assert outcomes["z_last: fan"]["status"] == "warn"
    assert outcomes["z_last: fan"]["command"] == "oil it"
    assert outcomes["packs"]["status"] == "fail"
    assert "b_raises" in outcomes["packs"]["detail"]
    assert outcomes["operator"]["status"] == "ok"


def test_env_reports_packs(environment):
    done = run_module("torch_musa", "env", "--json", **environment)
    facts = json.loads(done.stdout)
    assert facts["a_first: library"] == "version 7"
    assert facts["pack f_typo"] == "1.2 failed"


def test_without_sdk_packs_are_listed_but_not_loaded(environment):
    done = run_module("torch_musa", "packs", "--json", **{**environment, "MUSA_HOME": "/nonexistent/musa"})
    rows = ours(json.loads(done.stdout))
    assert {row["status"] for row in rows} == {"found"} and len(rows) == len(BAD) + 2


def test_an_order_of_providers_may_name_packs_that_are_not_in_use(environment):
    code = """
    import torch
    print(torch.ones(3, device="musa").sum().item())
    print(torch.musa.ops.explain("aten::sum.dim_IntList")["provider"])
    """
    settings = {
        "TORCH_MUSA_OPS": "mudnn,b_raises,host",
        "TORCH_MUSA_DISABLE_PACKS": "mudnn, a_first, z_last",
    }
    assert run_code(code, **settings, **environment) == "3.0\nhost\n"


def test_an_order_of_providers_that_names_no_installed_pack_is_refused(environment):
    code = """
    import torch
    from musa_runtime.errors import UnknownProviderError
    try:
        torch.ones(3, device="musa")
    except UnknownProviderError as error:
        print("there is no provider 'cudnn'" in str(error))
    """
    settings = {"TORCH_MUSA_OPS": "cudnn,host", "TORCH_MUSA_DISABLE_PACKS": "a_first, z_last"}
    assert run_code(code, **settings, **environment) == "True\n"
