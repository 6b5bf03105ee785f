# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The headers of the runtime include the headers of torch that the headers of torch.cuda include."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch.utils.cpp_extension

from musa_port.engine import Engine
from musa_port.rules import load
from musa_runtime import config

pytestmark = pytest.mark.once

TORCH = Path(torch.__file__).parent / "include"
OURS = Path(config.include_dir())
# Headers of torch that ours need not include, by the header of torch.cuda that includes them.
NOT_PROMISED = {
    ("c10/cuda/CUDAFunctions.h", "c10/core/impl/GPUTrace.h"): "torch's hooks of Python",
    ("c10/cuda/CUDAEvent.h", "c10/core/impl/GPUTrace.h"): "torch's hooks of Python",
    ("c10/cuda/CUDAEvent.h", "c10/core/alignment.h"): "private members",
    ("c10/cuda/CUDAAllocatorConfig.h", "c10/util/Deprecated.h"): "deprecated members",
    ("c10/cuda/CUDAAllocatorConfig.h", "c10/util/env.h"): "private members",
    ("c10/cuda/CUDACachingAllocator.h", "c10/core/AllocatorConfig.h"): "MUSAAllocatorConfig.h has ours",
    ("c10/cuda/CUDACachingAllocator.h", "c10/util/Registry.h"): "observers, which we do not have",
    ("ATen/cuda/CUDAGraph.h", "c10/util/flat_hash_map.h"): "private members",
    ("ATen/cuda/CUDAGeneratorImpl.h", "c10/util/flat_hash_map.h"): "private members",
    (
        "ATen/cuda/CUDAGeneratorImpl.h",
        "ATen/Context.h",
    ): "costs each kernel half a second; CUDAContext.h has it",
}
ENGINE = Engine(load("torch"))


def torch_includes(header: str) -> list[str]:
    """The headers of torch, and not of CUDA, that a header of torch includes itself."""
    found = re.findall(
        r'^\s*#include\s*[<"]((?:ATen|c10|torch)/[^>"]+)[>"]', (TORCH / header).read_text(), re.M
    )
    return [name for name in found if "cuda" not in name.lower()]


def pairs() -> list[tuple[str, str]]:
    """Headers of torch.cuda, each with the path of our header after a port, if it exists."""
    names = [
        path.relative_to(TORCH).as_posix() for folder in ("ATen/cuda", "c10/cuda") for path in
        sorted((TORCH / folder).glob("*.h"))
    ]  # fmt: skip
    return [(name, ENGINE.path(name)) for name in names if (OURS / ENGINE.path(name)).is_file()]


def test_our_header_includes_the_headers_that_the_header_of_cuda_includes(tmp_path: Path) -> None:
    known = pairs()
    assert len(known) > 15
    folders = [*torch.utils.cpp_extension.include_paths(), str(OURS), f"{config.musa_home()}/include"]
    flags = ["-std=c++20", *(f"-I{folder}" for folder in folders)]
    missing = {}
    sources = []
    for number, (_, ours) in enumerate(known):
        source = tmp_path / f"{number}.cpp"
        source.write_text(f"#include <{ours}>\n")
        sources.append(str(source))
    done = subprocess.run(["g++", "-M", *flags, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rules = re.split(r"^\d+\.o:", done.stdout, flags=re.M)[1:]
    assert len(rules) == len(known)
    for (cuda, ours), rule in zip(known, rules, strict=True):
        reached = {
            Path(word).relative_to(TORCH).as_posix() for word in rule.split() if word.startswith(str(TORCH))
        }
        for header in torch_includes(cuda):
            if header not in reached and (cuda, header) not in NOT_PROMISED:
                missing.setdefault(ours, []).append(header)
    assert not missing, "\n".join(f"{name}: {headers}" for name, headers in missing.items())
