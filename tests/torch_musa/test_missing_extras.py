# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Without an extra, a program that needs it prints the name of the wheel and the command that installs it."""

import json

import pytest

from tests.harness.installations import FAMILY, Installation
from torch_musa import extras

pytestmark = pytest.mark.once

CORE = {"torch-musa", "musa-runtime", "musa-emulator"}
# Extras that need no program of their own: sets of other extras, for vllm with the plugin that vLLM loads.
SETS = {"all", "mccl", "vllm"}
AUTOCAST = "with torch.autocast('musa', dtype=torch.float16): pass"
ON_COPIES = "torch.ones(4, 4, device='musa') @ torch.ones(4, 4, device='musa')"
# As torchvision's C++ library, which has no wheel for every torch, defines its operators.
TORCHVISION = """
library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.impl("nms", lambda dets, scores, iou_threshold: scores.argsort(), "CPU")
"""
SCALED = """
scaler = torch.amp.GradScaler("musa")
weight = torch.nn.Parameter(torch.ones(1, device="musa"))
optimizer = torch.optim.SGD([weight], lr=0.1)
scaler.scale(weight.sum()).backward()
scaler.step(optimizer)
scaler.update()
"""
GROUP = """
store = torch.distributed.HashStore()
torch.distributed.init_process_group("mccl", store=store, rank=0, world_size=1)
"""
# For each extra: programs, and whether each raises. Others warn.
PROGRAMS = {
    "amp": [
        (AUTOCAST, True),
        ("torch.musa.amp.GradScaler()", True),
        (SCALED, False),
    ],
    "as-cuda": [("import os, subprocess, sys; from torch_musa import script_runner; "
                 "script_runner.explain_unknown(['--as-cuda', 'x.py'])", True)],
    "compat": [("import torch_musa.optim", True), ("import torch_musa.utils.simple_porting", True)],
    "compile": [("torch.compile(lambda x: x.sum(0) + 1)(torch.ones(4, device='musa'))", True)],
    "distributed": [
        (GROUP, True),
        ("torch.musa.mccl", True),
        ("import torch.musa.nccl", True),
    ],
    "emulator": [("torch.ones(1, device='musa')", True)],
    "math": [("torch.fft.rfft(torch.ones(8, device='musa'))", False),
             ("torch.eye(3, device='musa').to_sparse_csr()", False)],
    "mudnn": [(ON_COPIES, False)],
    "port": [("import torch_musa.utils.cpp_extension", True)],
    "ported": [(ON_COPIES, False), ("torch.special.airy_ai(torch.ones(4, device='musa').half())", True)],
    "serving": [("import torch.musa.serving", True)],
    "telemetry": [("torch.musa.utilization()", True)],
    "vision": [(TORCHVISION + "torch.ops.torchvision.nms(torch.ones(3, 4, device='musa'), "
                "torch.ones(3, device='musa'), 0.5)", False)],
}  # fmt: skip
RUN = """
import json, sys, warnings
warnings.simplefilter("always")
if {hidden!r}:
    sys.modules["pymtml"] = None
import torch
found = []
for text in json.loads({texts!r}):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            exec(text)
            error = ""
        except Exception as raised:
            error = str(raised)
    found.append([error, [str(each.message) for each in told]])
print(json.dumps(found))
"""


@pytest.mark.parametrize("extra", PROGRAMS)
def test_the_wheel_and_the_command_are_named(extra, shared_packages, package_server, tmp_path):
    present = CORE - {"musa-emulator"} if extra == "emulator" else CORE
    installation = Installation(tmp_path, shared_packages, tmp_path, tuple(set(FAMILY) - present))
    environment = installation.environment
    texts = json.dumps([text for text, _ in PROGRAMS[extra]])
    code = installation.code(environment, RUN.format(texts=texts, hidden=extra == "telemetry"))
    done = package_server.run(code, environment, cwd=str(installation.prefix))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for (text, raises), (error, warned) in zip(PROGRAMS[extra], found, strict=True):
        assert bool(error) == raises, (text, error, warned)
        # torch prints warnings of operators that are called through torch.ops to stderr.
        told = error if raises else "\n".join([*warned, done.stderr])
        assert names_the_wheel(told, extra), (text, told)


def names_the_wheel(text, extra):
    """Whether a message names a distribution of the extra, also in a command after Fix:."""
    wheels = extras.installs()[extra]
    before, fix, after = text.partition("Fix: ")
    return (
        bool(fix)
        and any(wheel in before + after and wheel in after for wheel in wheels)
        and "install" in after
    )


def test_every_extra_has_a_program():
    assert set(PROGRAMS) | SETS == set(extras.installs())


@pytest.mark.parametrize(
    "text",
    ["", "musa-amp is missing", "Fix: pip install musa-other", "musa-amp is missing. Fix: see the manual"],
)
def test_a_message_without_the_wheel_or_the_command_is_noticed(text):
    assert not names_the_wheel(text, "amp")


def test_a_variable_that_has_no_effect_is_reported_at_import(shared_packages, package_server, tmp_path):
    installation = Installation(tmp_path, shared_packages, tmp_path, ("musa-as-cuda",))
    for value, expected in (("1", True), ("0", False)):
        environment = {**installation.environment, "TORCH_MUSA_AS_CUDA": value}
        code = installation.code(environment, "import torch\n")
        done = package_server.run(code, environment, cwd=str(installation.prefix))
        assert done.returncode == 0
        assert ("TORCH_MUSA_AS_CUDA has no effect: it needs musa-as-cuda" in done.stderr) == expected
