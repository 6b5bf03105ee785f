# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Set-up compiles the pack's kernels with precompiled headers."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PACK = Path(__file__).resolve().parents[2] / "packages" / "musa-ops-ported"


def test_kernels_read_the_headers_of_torch_in_precompiled_form():
    """Without them the build takes twice as long but succeeds."""
    # Wheels for older systems are built without them, in separate folders.
    files = [file for file in PACK.glob("build/*/build.ninja") if not file.parent.name.endswith("-manylinux")]
    files.sort(key=lambda path: path.stat().st_mtime)
    assert files, "the pack was not built from this checkout; run: python3 tools/dev.py setup"
    commands = [
        line for line in files[-1].read_text().splitlines() if " -c " in line and "/csrc/kernels/" in line
    ]
    assert commands
    assert [line for line in commands if "-include-pch" not in line] == []
