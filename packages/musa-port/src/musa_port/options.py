# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Options of nvcc as those of mcc, which is based on clang."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# nvcc's own: architectures of NVIDIA's GPUs, parts of its tool chain, reports. Pairs take the next word.
_DROPPED_PAIRS = frozenset(
    [
        *["-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code"],
        *["-t", "--threads", "-Xptxas", "--ptxas-options", "-Xcudafe", "--cudafe-options", "-Xfatbin"],
        *["-Xnvlink", "--nvlink-options", "-cudart", "--cudart", "--relocatable-device-code"],
        *["-diag-suppress", "--diag-suppress", "-diag-error", "--diag-error", "-diag-warn", "--diag-warn"],
        *["-ccbin", "--compiler-bindir", "-maxrregcount", "--maxrregcount"],
    ]
)
_DROPPED = re.compile(
    r"--?expt-(?:relaxed-constexpr|extended-lambda)|--?extended-lambda|--?generate-line-info|-lineinfo|-line-info"
    r"|--?res(?:ource)?-usage|--?use_fast_math|-ftz=.*|-prec-(?:div|sqrt)=.*|-fmad=.*|--?split-compile=.*|-G|--device-debug"
    r"|-forward-unknown-to-(?:host-compiler|host-linker|device-linker)|--?keep|--?disable-warnings-for-.*"
    r"|-rdc=.*|-static-global-template-stub=.*|--?device-entity-has-hidden-visibility=.*|--?source-in-ptx|-t\d+"
)
# What torch's headers are written in.
NEEDED_STANDARD = 20
_YEARS = {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}


@dataclass
class Options:
    """Options for mcc, and those of nvcc that have no meaning for it."""

    kept: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def of_nvcc(options: list[str]) -> Options:
    """Options for mcc that have the meaning of nvcc's.

    Options that choose architectures of NVIDIA or belong to nvcc's tool chain are dropped. Options of the
    host's compiler (`-Xcompiler`) become options of mcc. Standards below `NEEDED_STANDARD` are raised.
    """
    result = Options()
    words = iter(options)
    for word in words:
        name, _, value = word.partition("=")
        if name in ("-Xcompiler", "--compiler-options"):
            value = value or next(words, "")
            result.kept += [option for option in value.split(",") if option]
        elif name in ("-std", "--std"):
            result.kept.append(raised(f"-std={value or next(words, '')}"))
        elif name in _DROPPED_PAIRS:
            result.dropped.append(word if value else f"{word} {next(words, '')}")
        elif _DROPPED.fullmatch(word):
            result.dropped.append(word)
        else:
            result.kept.append(word)
    return result


def raised(option: str) -> str:
    """The option; if it selects a standard of C++ older than torch's headers need, that standard instead."""
    match = re.fullmatch(r"-std=(c|gnu)\+\+(\d\w)", option)
    if match is None:
        return option
    year = _YEARS.get(match[2]) or int(match[2])
    return option if NEEDED_STANDARD <= year < 98 else f"-std={match[1]}++{NEEDED_STANDARD}"
