# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every entry of docs/guide/faq.md quotes the message of a program; this file has the programs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.harness import pages
from tests.harness.subprocesses import run_python
from tests.plugins.packs import write_pack

pytestmark = pytest.mark.once

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "faq.md"
STRICT = {"MUSA_EMULATOR_MEMORY": "strict"}
FORK = """
x = torch.ones(1, device="musa")
child = os.fork()
if child == 0:
    try:
        torch.ones(1, device="musa")
    except RuntimeError as error:
        print(error, file=sys.stderr, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""
CAPTURE = """
x = torch.ones(3, device="musa")
with torch.musa.graph(torch.musa.MUSAGraph()):
    x.nonzero()
"""
PORT = """
import socket
listener = socket.socket()
listener.bind(("", 0))
listener.listen()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(listener.getsockname()[1]))
torch.distributed.init_process_group("mccl", rank=0, world_size=1)
"""
# Without the autoload, the version of torch can be changed before torch_musa reads it.
OTHER_TORCH = """
torch.__version__ = "2.99.0"
import torch_musa
torch.ones(1, device="musa")
"""
# A pack whose library calls a function that does not exist.
LIBRARY = (
    "void _ZN2at6Tensor12of_other_torchEv(void);\nvoid use(void) { _ZN2at6Tensor12of_other_torchEv(); }\n"
)
PACK = """
from musa_runtime.hookspecs import hookimpl
@hookimpl
def musa_libraries(): return [{library!r}]
"""
EIGENVALUES = 'torch.linalg.eig(torch.eye(3, device="musa"))'
ONES = 'torch.ones(1, device="musa")'
# The environment and the program of each message.
PROGRAMS = {
    "no-musa-sdk-was-found": ({"MUSA_HOME": "/nowhere"}, ONES),
    "no-musa-device-is-visible": ({"MUSA_EMULATOR_DEVICES": "0", "MUSA_VISIBLE_DEVICES": None}, ONES),
    "a-wheel-for-another-torch": ({"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, OTHER_TORCH),
    "undefined-symbol": ({"TORCH_MUSA_STRICT": "1"}, ONES),
    "device-index-out-of-range": ({"MUSA_EMULATOR_DEVICES": "2"}, "torch.musa.set_device(99)"),
    "out-of-memory": ({"MUSA_EMULATOR_MEMORY_LIMIT": "256M"}, 'torch.empty(1 << 30, device="musa")'),
    "a-setting-of-the-allocator-is-refused": ({"PYTORCH_ALLOC_CONF": "expandable_segment:True"}, ONES),
    "a-slow-operator-or-an-operator-that-copies": (STRICT, EIGENVALUES),
    "an-operator-that-copies-is-an-error": ({**STRICT, "TORCH_MUSA_FALLBACK": "error"}, EIGENVALUES),
    "unknown-provider": ({"TORCH_MUSA_OPS": "mudn"}, ONES),
    "bfloat16-is-not-supported": (
        {"MUSA_EMULATOR_ARCH": "mp_21"},
        'torch.autocast("musa", dtype=torch.bfloat16)',
    ),
    "an-operator-is-not-implemented-for-a-dtype": (
        {},
        'x = torch.ones(2, device="musa").to(torch.float8_e4m3fn)\nx + x',
    ),
    "tensors-on-different-devices": ({}, f"{ONES} + torch.ones(1)"),
    "the-device-in-a-forked-process": ({}, FORK),
    "an-operator-cannot-be-captured": ({}, CAPTURE),
    "the-port-is-in-use": ({"TORCHELASTIC_USE_AGENT_STORE": None}, PORT),
}


def messages(text: str) -> list[str]:
    """The quoted messages of the page."""
    return [block.text for block in pages.code_blocks(text) if block.language == "text"]


def quotes(message: str, output: str) -> bool:
    """Whether the output contains the message, in which `…` matches any text."""
    parts = [re.escape(" ".join(part.split())) for part in message.split("…")]
    return re.search(".*?".join(parts), " ".join(output.split())) is not None


def test_every_message_has_a_program():
    text = PAGE.read_text(encoding="utf-8")
    assert len(messages(text)) == len(PROGRAMS) == len(re.findall("(?m)^## ", text))


def write_broken_pack(folder: Path) -> None:
    """Installs the pack "mine" into the folder, with a library that cannot be loaded."""
    library = folder / "libmine.so"
    (folder / "mine.c").write_text(LIBRARY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "mine.c"], check=True)
    write_pack(folder, "mine", PACK.format(library=str(library)))


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_prints_the_message(musa, name, tmp_path):
    environment, program = PROGRAMS[name]
    if name == "undefined-symbol":
        write_broken_pack(tmp_path)
        environment = {**environment, "PYTHONPATH": str(tmp_path)}
    unset = dict.fromkeys(("TORCH_MUSA_OPS", "TORCH_MUSA_FALLBACK", "MUSA_EMULATOR_MEMORY"))
    done = run_python("-c", f"import os, sys, torch\n{program}", **{**unset, **environment})
    quoted = messages(PAGE.read_text(encoding="utf-8"))
    assert any(quotes(message, done.stderr) for message in quoted), f"the page does not quote\n{done.stderr}"


def test_another_message_is_noticed():
    output = "Error: 3 of 4 ranks\nFix: wait\n"
    assert quotes("3 of … ranks\n  Fix: wait", output)
    assert not quotes("3 of … ranks\nFix: restart", output)
    assert not quotes("3 of 5 ranks", output)
