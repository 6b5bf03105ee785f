# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Which operators are computed on copies in host memory where the host cannot address device memory.

`MUSA_EMULATOR_MEMORY=strict python -m tests.conformance.host_copies` calls every operator of torch's database
on musa as reach.py does (plain, gradient, in place, out=; five dtypes), in the default order of providers.
It writes the counts of such calls to `host_copies.json`.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import torch

from tests.conformance import reach

COUNTS_FILE = Path(__file__).with_name("host_copies.json")


def counts() -> dict[str, int]:
    """Operators that this process has computed on copies, the most frequent first."""
    rows = sorted(torch.musa.ops.fallback_report(), key=lambda row: (-row["count"], row["op"]))
    return {row["op"]: row["count"] for row in rows}


def main() -> None:
    warnings.simplefilter("ignore")
    torch.musa.init()
    if torch.musa.get_device_properties(0).is_integrated:
        raise SystemExit(
            "the host can address this device's memory, so nothing is copied.\n"
            "Fix: MUSA_EMULATOR_MEMORY=strict python -m tests.conformance.host_copies"
        )
    reach.record()
    found = counts()
    COUNTS_FILE.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
    print(f"{len(found)} operators were computed on copies, in {sum(found.values())} calls")


if __name__ == "__main__":
    main()
