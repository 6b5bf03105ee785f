# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The dynamic symbols of a 64-bit little-endian ELF library (System V gABI, chapters 4 and 5)."""

from __future__ import annotations

import struct
from pathlib import Path

_SECTION_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
_UNDEFINED = 0  # SHN_UNDEF


def undefined_symbols(path: Path) -> set[str]:
    """Names of the symbols that the library at `path` imports from other libraries.

    Raises:
        ValueError: the file is no 64-bit little-endian ELF file, or has no dynamic symbols.
    """
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
    (sections_at,) = struct.unpack_from("<Q", data, 0x28)
    section_size, section_count = struct.unpack_from("<HH", data, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_at + index * section_size)
        for index in range(section_count)
    ]
    names = set()
    found = False
    for _, kind, _, _, offset, size, link, _, _, entry_size in sections:
        if kind != _SECTION_DYNAMIC_SYMBOLS:
            continue
        found = True
        strings_at, strings_size = sections[link][4], sections[link][5]
        strings = data[strings_at : strings_at + strings_size]
        for position in range(offset, offset + size, entry_size):
            name_at, _, _, section, _, _ = struct.unpack_from("<IBBHQQ", data, position)
            if section == _UNDEFINED and name_at:
                names.add(strings[name_at : strings.index(b"\0", name_at)].decode())
    if not found:
        raise ValueError(f"{path} has no dynamic symbols")
    return names
