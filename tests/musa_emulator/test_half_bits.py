# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Half and bfloat16 numbers can be read from memory of other types of their size, as on a GPU."""

from __future__ import annotations

import pytest

from tests.musa_emulator.mcc import program, run

pytestmark = pytest.mark.once


@pytest.mark.parametrize("option", ["-O0", "-O2"])
def test_bits_of_a_class_of_the_program_are_read_as_a_half(option: str) -> None:
    """A compiler that assumes that the types do not alias would, when vectorizing, load before the store."""
    done = run(program("half_bits", option, "-ftree-vectorize"))
    assert (done.returncode, done.stdout) == (0, "0 wrong\n")
