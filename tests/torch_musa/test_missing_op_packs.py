# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""An error of torch's CPU kernel for a dtype that a pack would serve names the packs that are missing."""

import json
from importlib import metadata

import pytest

from tests.harness.installations import FAMILY, Installation
from torch_musa import extras

pytestmark = pytest.mark.once

CORE = {"torch-musa", "musa-runtime", "musa-emulator"}
# The demo's packages, and the core alone.
MISSING = {
    "without ported": {"musa-ops-ported"},
    "core": set(FAMILY) - CORE - {"musa-ops-host"},
}
# Calls that no CPU kernel of torch serves for the dtype: name, dtype, program.
CALLS = [
    ("histc", "int32", "torch.histc(x, 4, 0, 3)"),
    ("erfinv_", "int32", "x.erfinv_()"),
    ("special_airy_ai", "float16", "torch.special.airy_ai(x)"),
    ("special_i1", "float16", "torch.special.i1(x)"),
    ("linalg_inv_ex", "float16", "torch.linalg.inv(x)"),
    ("_linalg_svd", "bfloat16", "torch.linalg.svdvals(x)"),
    ("_fft_r2c", "float16", "torch.fft.rfft(x)"),
    ("linalg_lu_factor_ex", "float16", "torch.linalg.lu_factor(x)"),
    (
        "segment_reduce",
        "int32",
        "torch.segment_reduce(x, 'sum', lengths=torch.tensor([2, 2], device='musa'))",
    ),
]
PROGRAM = """
import json, torch, warnings
warnings.simplefilter("ignore")
found = {{}}
for name, dtype, text in json.loads({calls!r}):
    x = torch.ones(4, 4, dtype=getattr(torch, dtype), device="musa")
    try:
        eval(text)
        found[name] = ""
    except Exception as error:
        found[name] = type(error).__name__ + ": " + str(error)
print(json.dumps(found))
"""


def errors(installation, package_server, folder, **environment):
    known = {**installation.environment, **environment}
    code = installation.code(known, PROGRAM.format(calls=json.dumps(CALLS)))
    done = package_server.run(code, known, cwd=str(folder))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("provider", ["host", "host-copy"])
@pytest.mark.parametrize("name", MISSING)
def test_the_missing_packs_and_their_command_are_named(
    name, provider, shared_packages, package_server, tmp_path
):
    installation = Installation(tmp_path, shared_packages, tmp_path, tuple(MISSING[name]))
    found = errors(installation, package_server, tmp_path, TORCH_MUSA_OPS=provider)
    assert sum("not implemented for" in text for text in found.values()) > 4
    for op, text in found.items():
        if "not implemented for" in text:
            fix = text.split("Fix: ")[1]
            assert text.startswith("NotImplementedError"), op
            assert f"(provider '{provider}')" in text and "musa-ops-ported" in fix, (op, text)
            assert ("musa-ops-mudnn" in fix) == (name == "core"), (op, text)
            assert "vision" not in text and "amp" not in fix.split("musa-")[1], (op, text)


def test_a_pack_that_is_switched_off_is_named(shared_packages, package_server, tmp_path):
    installation = Installation(tmp_path, shared_packages, tmp_path)
    found = errors(
        installation, package_server, tmp_path, TORCH_MUSA_DISABLE_PACKS="ported", TORCH_MUSA_OPS="host"
    )
    text = found["histc"]
    assert "TORCH_MUSA_DISABLE_PACKS switches off 'ported'" in text and "remove it from that variable" in text


def test_nothing_is_missing(shared_packages, package_server, tmp_path):
    installation = Installation(tmp_path, shared_packages, tmp_path)
    served = errors(installation, package_server, tmp_path)
    assert served["histc"] == ""
    found = errors(installation, package_server, tmp_path, TORCH_MUSA_OPS="host")
    assert "Fix: convert the operands to a dtype" in found["histc"] and "musa-ops" not in found["histc"]


def test_every_op_pack_is_listed():
    points = metadata.entry_points(group="torch_musa.op_packs")
    listed = {entry.name.partition(".")[0] for entry in points}
    packs = {
        entry.name
        for entry in metadata.entry_points(group="torch_musa.plugins.v2")
        if entry.dist.name.startswith("musa-ops-")
    }
    # musa-ops-host is for the emulator, with whose extra it is installed.
    assert "host" in packs and packs - {"host"} <= listed <= set(extras.installs())
