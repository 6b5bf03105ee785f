# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Assigns a callback id to every entry point without one, in mupti_runtime_cbid.h and mupti_driver_cbid.h.

    python number_callbacks.py [--check]

Programs are compiled with the ids, so existing ids never change and new names are appended; a removed entry
point leaves a gap, also at the end: SIZE is greater than every id that has been assigned. With --check,
nothing is written, and the exit status is 1 if an entry point has no id.
"""

import pathlib
import re
import sys

CSRC = pathlib.Path(__file__).resolve().parents[1]
ENTRY_POINT = re.compile(r'\bapi<"(\w+)"')
DRIVER_ENTRY_POINT = re.compile(r'\bdriver_api<"(\w+)"')
HEADER = """\
// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Numbers of the {what}'s entry points in records and callbacks. Written by number_callbacks.py.
#ifndef MUPTI_{DOMAIN}_CBID_H
#define MUPTI_{DOMAIN}_CBID_H

typedef enum {{
  MUPTI_{DOMAIN}_TRACE_CBID_INVALID = 0,
{rows}
  MUPTI_{DOMAIN}_TRACE_CBID_SIZE = {size},
  MUPTI_{DOMAIN}_TRACE_CBID_FORCE_INT = 0x7fffffff
}} MUpti_{domain}_api_trace_cbid;

#endif
"""


def entry_points(pattern):
    """Sorted names of the entry points in the sources, without the emulator's own, which the SDK lacks."""
    names = set()
    for source in (CSRC / "musart").rglob("*.cpp"), (CSRC / "musa").rglob("*.cpp"):
        for path in source:
            names.update(pattern.findall(path.read_text(encoding="utf-8")))
    return sorted(name for name in names if not name.startswith("musaEmulator"))


def numbered(header, domain):
    """The ids by name, in the order of the ids, and the first that was never assigned."""
    pattern = rf"MUPTI_{domain}_TRACE_CBID_(\w+) = (\d+)"
    rows = re.findall(pattern, header.read_text(encoding="utf-8"))
    ids = {name: int(number) for name, number in sorted(rows, key=lambda row: int(row[1])) if number != "0"}
    return ids, ids.pop("SIZE")


def missing():
    """Yields per domain: header, domain, name of the API, ids by name, the next id, names without an id."""
    for domain, what, pattern in (
        ("RUNTIME", "runtime", ENTRY_POINT),
        ("DRIVER", "driver", DRIVER_ENTRY_POINT),
    ):
        header = CSRC / "include" / f"mupti_{what}_cbid.h"
        known, size = numbered(header, domain)
        yield header, domain, what, known, size, [name for name in entry_points(pattern) if name not in known]


def main():
    check = "--check" in sys.argv[1:]
    absent = 0
    for header, domain, what, known, size, new in missing():
        absent += len(new)
        if check or not new:
            continue
        ids = known | {name: number for number, name in enumerate(new, size)}
        rows = "\n".join(f"  MUPTI_{domain}_TRACE_CBID_{name} = {number}," for name, number in ids.items())
        text = HEADER.format(what=what, DOMAIN=domain, domain=what, rows=rows, size=size + len(new))
        header.write_text(text, encoding="utf-8")
        print(f"{header.name}: {len(new)} added")
    if check and absent:
        sys.exit(f"{absent} entry points have no callback id. Fix: python {pathlib.Path(__file__).name}")


if __name__ == "__main__":
    main()
