# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Translates options of nvcc to those of mcc, which is based on clang."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

# Options specific to nvcc: NVIDIA's architectures, tool chain, reports. Pairs also consume the next
# word.
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
# The C++ standard of torch's headers.
NEEDED_STANDARD = 20
_YEARS = {"0x": 11, "1y": 14, "1z": 17, "2a": 20, "2b": 23, "2c": 26}


@dataclass
class Options:
    """Options for mcc, and dropped options of nvcc."""

    kept: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def of_nvcc(options: list[str]) -> Options:
    """Returns the options of mcc that correspond to nvcc's.

    Options for NVIDIA's architectures and nvcc's tool chain are dropped. Host compiler options
    (`-Xcompiler`) become options of mcc. Standards below `NEEDED_STANDARD` are raised to it.
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
    """Returns the option, with a C++ standard older than `NEEDED_STANDARD` raised to it."""
    match = re.fullmatch(r"-std=(c|gnu)\+\+(\d\w)", option)
    if match is None:
        return option
    year = _YEARS.get(match[2]) or int(match[2])
    return option if NEEDED_STANDARD <= year < 98 else f"-std={match[1]}++{NEEDED_STANDARD}"
