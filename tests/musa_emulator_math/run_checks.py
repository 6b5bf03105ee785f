# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every check of the mathematical libraries. As a module it runs them, and prints their results as JSON."""

from __future__ import annotations

import json
import sys

from tests.musa_emulator_math import checks, matmul_checks, solver_checks, sparse_checks

__all__ = ["CHECKS", "matmul_checks", "solver_checks", "sparse_checks"]
CHECKS = checks.CHECKS

if __name__ == "__main__":
    json.dump(checks.run_all(), sys.stdout)
