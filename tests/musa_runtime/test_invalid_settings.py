# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Each variable of docs/guide/environment.md works as documented, or its invalid values are refused by name.

Every variable meets wrong words, other spellings, numbers out of range, spaces, an empty value and bytes that
are not UTF-8. By default each variable meets two of them.
"""

import re
from pathlib import Path

import pytest

from tests.harness.subprocesses import run_forked, run_python

pytestmark = pytest.mark.once

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "environment.md"
ROW = re.compile(r"^\| (`[A-Z][A-Z0-9_]+`(?:, `[A-Z][A-Z0-9_]+`)*) \|", re.MULTILINE)
GARBAGE = ("nonsense", "", "TRUE", "-1", "99999999999999999999", " ", "\udcff", "0x1", "1;2", "1 ")

# Reads the variables of the device, the packs, the allocator and the emulator.
DEVICE = """
import torch
x = torch.rand(4, 4, device="musa", requires_grad=True)
i = torch.tensor([1], device="musa")
y = torch.nn.functional.embedding(i, x @ x)
y.sum().backward()
torch.empty(2, pin_memory=True)
torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4, device="musa"), torch.ones(1, 1, 2, 2, device="musa"))
torch.topk(x.detach(), 2)
torch.ops.aten.special_airy_ai(x.detach())
from torch_musa.debug.reproducer import rank_of_process
rank_of_process()
print("worked", torch.musa.memory_allocated() >= 0)
"""
GROUP = """
import os, tempfile, torch
import torch.distributed as dist
os.environ.update(RANK="0", WORLD_SIZE="1")
store = dist.FileStore(tempfile.mktemp(), 1)
dist.init_process_group("mccl", store=store, rank=0, world_size=1, device_id=torch.device("musa:0"))
x = torch.ones(2, device="musa")
dist.all_reduce(x)
torch.musa.synchronize()
print("worked", x.tolist())
dist.destroy_process_group()
"""
FLAG = r"[01]?"
NUMBER = r"\d{0,9}|"
WORD = r"(?i:[01]|y|yes|n|no|t|true|f|false)?"
# Documented values by program and variable. Others are refused, with the variable's name and "Fix:".
DOCUMENTED = {
    DEVICE: {
        "MUSA_VISIBLE_DEVICES": r"(?!)",
        "MUSA_LAUNCH_BLOCKING": FLAG,
        "TORCH_MUSA_OPS": r"\s*",
        "TORCH_MUSA_OPS_FILE": r"(none)?",
        "TORCH_MUSA_FALLBACK": r"(allow|warn|error)?",
        "TORCH_MUSA_FLOAT64": FLAG,
        "TORCH_MUSA_CHECK_INDICES": FLAG,
        "TORCH_MUSA_BACKWARD_THREADS": FLAG,
        "MUDNN_LOG_LEVEL": "",
        "TORCH_MUSA_DISABLE_PACKS": r"[\s,]*",
        "TORCH_MUSA_AS_CUDA": FLAG,
        "TORCH_MUSA_STRICT": FLAG,
        "TORCH_MUSA_TRACE_PACKS": FLAG,
        "TORCH_MUSA_TOP": FLAG,
        "PYTORCH_ALLOC_CONF": r"\s*",
        "PYTORCH_MUSA_ALLOC_CONF": r"\s*",
        "PYTORCH_CUDA_ALLOC_CONF": r"\s*",
        "PYTORCH_NO_MUSA_MEMORY_CACHING": FLAG,
        "RANK": r".*",  # read only if WORLD_SIZE is 2 or more
        "WORLD_SIZE": r"[01]?",
        "MUSA_EMULATOR_DEVICES": r"\d?",
        "MUSA_EMULATOR_ARCH": r"",
        "MUSA_EMULATOR_MODE": r"",
        "MUSA_EMULATOR_MEMORY": r"",
        "MUSA_EMULATOR_MEMORY_LIMIT": r"",
        "MUSA_EMULATOR_POISON": FLAG,
        "MUSA_EMULATOR_FLOAT64": FLAG,
        "MUSA_EMULATOR_VIRTUAL_MEMORY": FLAG,
        "MUSA_EMULATOR_FAIL": r"",
        "MUSA_EMULATOR_SCHEDULE": r"",
        "MUSA_EMULATOR_MACHINE": r"[A-Za-z0-9._-]{0,64}",
        "MUSA_EMULATOR_THREADS": r"\d?",
        "MUDNN_EMULATOR_CHECK_WORKSPACE": FLAG,
    },
    GROUP: {
        "TORCH_MCCL_ASYNC_ERROR_HANDLING": r"[0-3]?",
        "TORCH_MCCL_COORD_CHECK_MILSEC": NUMBER,
        "TORCH_MCCL_WAIT_TIMEOUT_DUMP_MILSEC": NUMBER,
        "TORCH_MCCL_HEARTBEAT_TIMEOUT_SEC": NUMBER,
        "TORCH_FR_BUFFER_SIZE": NUMBER,
        "TORCH_MCCL_TRACE_BUFFER_SIZE": NUMBER,
        **dict.fromkeys(
            (
                *("TORCH_MCCL_BLOCKING_WAIT", "TORCH_MCCL_PROPAGATE_ERROR", "TORCH_MCCL_DUMP_ON_TIMEOUT"),
                *("TORCH_FR_CPP_STACK", "TORCH_MCCL_TRACE_CPP_STACK", "TORCH_MCCL_ENABLE_TIMING"),
                *("TORCH_MCCL_DESYNC_DEBUG", "TORCH_MCCL_NAN_CHECK", "TORCH_MCCL_HIGH_PRIORITY"),
                *("TORCH_MCCL_AVOID_RECORD_STREAMS", "TORCH_MCCL_ENABLE_MONITORING"),
            ),
            WORD,
        ),
        "MCCL_DEBUG": "",
        "MCCL_SOCKET_IFNAME": "",
        "MUSA_EMULATOR_MCCL_FAULT": "",
    },
}
# Paths and commands of other programs: any value may be right, and a wrong one is named when it is used.
FREE = {
    *("MUSA_HOME", "PYTORCH_MCC", "PYTORCH_REPO_PATH", "CXX", "CC", "MUSA_HOST_CXX", "MUSA_HOST_CC"),
    *("MUSA_EMULATOR_CLANG", "MUSA_NVCC", "XDG_CONFIG_HOME"),
}
# Read by torch, by a compiler, or by builds, tested in tests/musa_port and tests/musa_cuda; set by launchers.
ELSEWHERE = {
    *("TORCH_DEVICE_BACKEND_AUTOLOAD", "TORCH_MUSA_ARCH_LIST", "MAX_JOBS", "MUSA_CUDA_ARCH", "LOCAL_RANK"),
    "TORCH_USE_MUSA_DOUBLE_CAST",  # of the vendor's package; tests/musa_compat
    *("VLLM_USE_V2_MODEL_RUNNER", "VLLM_WORKER_MULTIPROC_METHOD"),  # read by vLLM; tests/vllm_torch_musa
}


def cases():
    names = [(program, name) for program, rows in DOCUMENTED.items() for name in rows]
    for number, (program, name) in enumerate(names):
        chosen = {number % len(GARBAGE), (number + 6) % len(GARBAGE)}
        for index, value in enumerate(GARBAGE):
            marks = () if index in chosen else pytest.mark.full
            yield pytest.param(program, name, value, marks=marks, id=f"{name}={ascii(value)[1:-1]}")


def test_every_variable_of_the_guide_is_in_a_list():
    rows = ROW.findall(GUIDE.read_text(encoding="utf-8"))
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    tested = {name for rows in DOCUMENTED.values() for name in rows}
    assert listed == tested | FREE | ELSEWHERE
    assert not tested & (FREE | ELSEWHERE)


@pytest.mark.needs("musa-ops-mudnn", "musa-ops-ported", "musa-as-cuda", "musa-distributed")
@pytest.mark.parametrize("program, name, value", cases())
def test_a_value_works_as_documented_or_is_refused_by_name(program, name, value):
    # The emulator reads its variables while torch_musa is loaded, which the server of forks has done.
    done = run_forked(program, **{name: value})
    text = done.stdout + done.stderr
    assert "UnicodeDecodeError" not in text and done.returncode in (0, 1), text
    if re.fullmatch(DOCUMENTED[program][name], value):
        assert done.returncode == 0 and "worked" in done.stdout, text
    else:
        assert name in text and "Fix:" in text, text or f"{name}={value!r} was ignored"
        assert len([line for line in text.splitlines() if name in line]) < 20


@pytest.mark.needs("musa-ops-mudnn", "musa-as-cuda", "musa-ops-vision")
def test_a_valid_value_is_not_refused():
    settings = {
        "TORCH_MUSA_STRICT": "0",
        "TORCH_MUSA_DISABLE_PACKS": "as_cuda, vision",
        "MUDNN_LOG_LEVEL": "error",
    }
    done = run_forked(DEVICE, **settings)
    assert done.returncode == 0 and "Fix:" not in done.stderr, done.stderr


@pytest.mark.parametrize("value", ["nonsense", "0", "-1", "\udcff", "1.5", " "])
def test_the_number_of_compilers_is_checked(value, tmp_path, monkeypatch):
    from musa_runtime import switches
    from musa_runtime.errors import SettingError

    monkeypatch.setenv("MAX_JOBS", value)
    with pytest.raises(SettingError, match=r"MAX_JOBS.*\nFix: "):
        switches.count("MAX_JOBS", 0, least=1)


@pytest.mark.parametrize("value", ["nonsense", "8.0+PTX", "\udcff"])
def test_architectures_are_checked(value):
    code = "from musa_runtime import mcc, sdk\nprint(mcc.offload_flags(sdk.resolve().home + '/bin/mcc'))"
    done = run_python("-c", code, TORCH_MUSA_ARCH_LIST=value)
    assert done.returncode == 1 and "TORCH_MUSA_ARCH_LIST" in done.stderr and "Fix:" in done.stderr
