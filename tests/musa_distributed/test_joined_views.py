# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Lists of tensors that are views of one buffer give the results of separate tensors: see joined_views.py."""

from __future__ import annotations

import pytest

from tests.musa_distributed import joined_views


@pytest.mark.parametrize("name", joined_views.COLLECTIVES)
def test_views_of_one_buffer_equal_separate_tensors(ranks, name):
    assert ranks.run(joined_views.run, name) == [[]] * ranks.size
