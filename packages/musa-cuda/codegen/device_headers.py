# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The SDK's headers as nvcc reads them: over CUDA's vector types and qualifiers, under other names."""

from __future__ import annotations

import re
from pathlib import Path

# CUDA has files of these names, which nvcc includes by itself.
RENAMED = {
    "driver_types.h": "musa_driver_types.h",
    "library_types.h": "musa_library_types.h",
    "host_defines.h": "musa_host_defines.h",
    "vector_types.h": "musa_host_defines.h",
    "vector_functions.h": "musa_host_defines.h",
}
# Headers that a kernel may include and that CUDA does not have. The others of the SDK (half types, vector
# types, cooperative groups, constants) are in mcc/include by hand, or are CUDA's.
TAKEN = (
    "driver_types.h",
    "library_types.h",
    "muComplex.h",
    "murand.h",
    "murand_distributions.h",
    "murand_kernel.h",
    "murand_philox4x32_10.h",
    "murand_xorwow.h",
    "musa.h",
    "musa_device_runtime_api.h",
    "musa_occupancy.h",
    "musa_profiler_api.h",
    "musa_runtime.h",
    "musa_runtime_api.h",
    "musa_texture_types.h",
)


# The text of headers, and what replaces it.
REPLACED = {
    # CUDA's generator takes the fast functions; with them normal numbers are the same ones.
    "murand_distributions.h": (
        ("length * sinf(v), length * cosf(v)", "length * __sinf(v), length * __cosf(v)"),
    ),
    "murand_kernel.h": (
        # nvcc makes one instruction of both halves of a product, and two or three of a product of 64 bits.
        ("const uint64_t first = uint64_t{0xD2511F53u} * counter.x;", ""),
        ("const uint64_t second = uint64_t{0xCD9E8D57u} * counter.z;", ""),
        ("static_cast<unsigned>(first >> 32)", "__umulhi(0xD2511F53u, counter.x)"),
        ("static_cast<unsigned>(second >> 32)", "__umulhi(0xCD9E8D57u, counter.z)"),
        ("static_cast<unsigned>(first)", "0xD2511F53u * counter.x"),
        ("static_cast<unsigned>(second)", "0xCD9E8D57u * counter.z"),
    ),
}


def convert(name: str, text: str) -> str:
    """The header as it is for nvcc."""
    for old, new in RENAMED.items():
        text = re.sub(rf'(#\s*include\s+)"{old}"', rf'\1"{new}"', text)
    # Programs test the names of CUDA's guards, which CUDA's own headers define.
    text = re.sub(
        r"^#define (__(?:DRIVER_TYPES|HOST_DEFINES|VECTOR_TYPES)_H__)\b",
        r"#define MUSA_CUDA\1",
        text,
        flags=re.M,
    )
    for old, new in REPLACED.get(name, ()):
        if old not in text:
            raise ValueError(f"{name} of the SDK no longer has {old}")
        text = text.replace(old, new)
    if name == "library_types.h":
        text, count = re.subn(
            r"typedef enum libraryPropertyType_t.*?libraryPropertyType_t;",
            "#include <library_types.h>",
            text,
            flags=re.S,
        )
        if count != 1:
            raise ValueError("library_types.h of the SDK no longer has the enumeration that CUDA has too")
    return text


def write(headers: Path, target: Path, *others: Path) -> None:
    """Writes the converted headers of a folder, and other headers, into a folder."""
    for name, source in [
        *((name, headers / name) for name in TAKEN),
        *((path.name, path) for path in others),
    ]:
        text = source.read_text(encoding="utf-8")
        (target / RENAMED.get(name, name)).write_text(convert(name, text), encoding="utf-8")
