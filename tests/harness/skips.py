# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The list of allowed skips, and the check that makes every other skip a failure.

A skip hides a promise that is not tested, so each needs a reason. With MUSA_TESTS_NO_SKIP=1 (set in CI) only
the reasons listed here may skip: they are permanent properties of the environment, not defects to fix.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
from pathlib import Path

import pytest

PERMANENT_REASONS = {
    "host-addressable": "the host cannot address device memory in this memory mode",
    "float64": "the device does not compute with float64",
    "emulator": "steers the SDK through the emulator's C API; the loaded SDK is not the emulator",
    "several-hosts": "makes hosts of namespaces, which needs root and a kernel that permits them",
    "sdk-programs": "MUSA_SDK_PROGRAMS names no folder with public programs (tests/sdk_programs/README.md)",
    "extensions": "the folder in MUSA_CUDA_EXTENSIONS has no sources of this extension",
    "ccache": "ccache is not installed; builds do not require it",
    "torch": "this minor of torch is older",
    "devices": "needs more devices than this machine has",
    "gpu": "needs an NVIDIA GPU, a CUDA build of torch and musa-cuda as the SDK: python3 tools/dev.py gpu",
    "cuda-toolkit": "needs a CUDA 13 toolkit",
    "torchvision": "torchvision is not installed; the tests do not require it",
    "timm": "timm is not installed; the tests do not require it",
    "triton": "Triton is not installed; the tests do not require it",
    "vllm": "vLLM has an environment of its own, which does not exist: nox -s vllm",
    "manual": "the tools of the manual are not installed: python3 tools/dev.py docs",
    "glibc-tools": "needs a tool of this operating system's developer package",
}


def skip_permanently(key: str, detail: str = "") -> None:
    """Skip the running test for a reason listed in PERMANENT_REASONS; any other key is an error."""
    pytest.skip(PERMANENT_REASONS[key] + (f": {detail}" if detail else ""))


def needs_torch(minor: str, what: str) -> None:
    """Skip the running test with an older minor of torch, which does not have `what`.

    `minor` is the oldest, as "2.13", that was seen to have it.
    """
    installed = importlib.metadata.version("torch")
    if tuple(map(int, installed.split(".")[:2])) < tuple(map(int, minor.split("."))):
        skip_permanently("torch", f"{what} was seen with {minor} and is missing in {installed}")


def needs_devices(count: int) -> None:
    """Skip the running test if the SDK has fewer devices. The emulator has as many as are configured."""
    home = os.environ.get("MUSA_HOME")
    version = Path(home) / "version.json" if home else None
    if version is None or not version.is_file() or "musa_emulator" in json.loads(version.read_text()):
        return
    import torch  # suites that do not use torch must not pay for importing it

    if torch.musa.device_count() < count:
        skip_permanently("devices", f"{count} are needed, and there are {torch.musa.device_count()}")


def objection_to(reason: str) -> str | None:
    """The objection to a skip for `reason`, or None if it is allowed."""
    reason = reason.removeprefix("Skipped: ").strip()
    if reason in ("", "Skipped", "unconditional skip"):
        return "a skip must say why: pytest.skip('what is missing, and what provides it')"
    permanent = any(reason.startswith(allowed) for allowed in PERMANENT_REASONS.values())
    if os.environ.get("MUSA_TESTS_NO_SKIP") == "1" and not permanent:
        return (
            f"skipped with MUSA_TESTS_NO_SKIP=1: {reason}. Provide what the test needs, or, if the reason is "
            "a permanent property of the environment, list it in tests/harness/skips.py"
        )
    return None
