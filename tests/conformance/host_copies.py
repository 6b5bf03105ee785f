# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lists the operators that are computed on copies in host memory if the host cannot address device memory.

`MUSA_EMULATOR_MEMORY=strict python -m tests.conformance.host_copies` calls every operator of torch's database
on musa as reach.py does (plain, gradient, in place, out=; five dtypes), in the default order of providers.
It writes the counts of such calls, each with a reason, to `host_copies.json`.
"""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import torch

from tests.conformance import reach

COUNTS_FILE = Path(__file__).with_name("host_copies.json")
# The first pattern that an operator's name matches gives its reason.
REASONS = {
    r"_linalg_svd|_linalg_eigh|linalg_eig": "no pack has kernels of singular values and eigenvalues",
    r"linalg_lstsq": "least squares by LAPACK's drivers, some of which use singular values",
    r"geqrf|linalg_qr|linalg_householder_product": (
        "LAPACK's roundings decide the results for matrices without full rank, and kernels round otherwise"
    ),
    r"linalg_ldl_": "no pack has kernels of the Bunch-Kaufman decomposition",
    r"linalg_matrix_exp": "no pack has kernels of functions of matrices",
    r"_fft_": "no pack has kernels of Fourier transforms",
    r"_sparse_|sparse_|_to_sparse|_to_dense|is_coalesced": "no pack has kernels of sparse layouts",
    r"_efficientzerotensor|empty_like|fill_|mul\.Scalar|mm$": "no pack has kernels of sparse layouts",
    r"_logcumsumexp": "complex numbers: the kernel takes real ones",
}
NOT_EXAMINED = "not examined: some dtypes or layouts that no kernel of a pack takes"


def reason(op: str) -> str:
    name = op.removeprefix("aten::")
    return next((text for pattern, text in REASONS.items() if re.match(pattern, name)), NOT_EXAMINED)


def counts() -> dict[str, int]:
    """Operators that this process has computed on copies and their calls, the most frequent first."""
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
    rows = {op: {"calls": calls, "reason": reason(op)} for op, calls in found.items()}
    COUNTS_FILE.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} operators were computed on copies, in {sum(found.values())} calls")


if __name__ == "__main__":
    main()
