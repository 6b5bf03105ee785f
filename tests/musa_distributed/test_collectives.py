# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Every collective, with every dtype and layout, compared with Gloo on CPU tensors: see collectives.py."""

from __future__ import annotations

import pytest

from tests.musa_distributed import collectives


@pytest.mark.parametrize("wait", [False, True], ids=["blocking", "async"])
@pytest.mark.parametrize("name", collectives.COLLECTIVES)
def test_equals_gloo(ranks, name, wait):
    done = ranks.run(collectives.run, name, wait)
    assert min(done) >= 40
