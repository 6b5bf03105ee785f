# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Operators that are computed on copies in host memory if the host cannot address device memory.

`MUSA_EMULATOR_MEMORY=strict python -m tests.conformance.host_copies [EVERY]` calls every operator of torch's
database, or the EVERY-th ones, on musa as reach.py does (plain, gradient, in place, out=; five dtypes), in
the default order of providers. It prints the operators that are computed on copies and are not in
`host_copies.json`; without EVERY, it then writes a new list.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import torch

from tests.conformance import reach
from tests.harness.device import host_can_address_device_memory

LIST = Path(__file__).with_name("host_copies.json")
# The first pattern that an operator's name matches gives its reason.
REASONS = {
    r"_?linalg_eig": (
        "torch.cuda computes it on the host too, except for large matrices, which MAGMA or cuSOLVER gets"
    ),
    r"linalg_lstsq": (
        "the drivers gelsy, gelss and gelsd of LAPACK; torch.cuda has gels alone, and refuses these"
    ),
}


def reason(op: str) -> str | None:
    """The reason why an operator is computed on copies; None if no pattern matches."""
    name = op.removeprefix("aten::")
    return next((text for pattern, text in REASONS.items() if re.match(pattern, name)), None)


def listed() -> list[str]:
    return json.loads(LIST.read_text(encoding="utf-8"))


def main() -> None:
    warnings.simplefilter("ignore")
    torch.musa.init()
    if host_can_address_device_memory():
        raise SystemExit(
            "the host can address this device's memory, so nothing is copied.\n"
            "Fix: MUSA_EMULATOR_MEMORY=strict python -m tests.conformance.host_copies"
        )
    reach.record(every=int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    found = {row["op"]: row["count"] for row in torch.musa.ops.fallback_report()}
    print(f"{len(found)} operators were computed on copies, in {sum(found.values())} calls")
    print("not listed:", *sorted(found.keys() - set(listed())))
    if len(sys.argv) == 1:
        LIST.write_text(json.dumps(sorted(found), indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
