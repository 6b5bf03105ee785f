# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The judgement of the soak of a server. The soak itself: `python tests/vllm_torch_musa/programs/soak.py`."""

import pytest

from tests.vllm_torch_musa.programs.soak import FEWEST_READINGS, SLACK, Reading, growth, violations

pytestmark = pytest.mark.once

FLAT = [Reading(100 << 20, 60 + turn % 3, 40) for turn in range(30)]


def test_a_flat_run_has_no_violation():
    assert violations(growth(FLAT)) == []


@pytest.mark.parametrize("name", SLACK._fields)
def test_a_resource_that_grows_by_a_little_in_each_round_is_named(name):
    step = getattr(SLACK, name) // 8 + 1
    leaking = [
        reading._replace(**{name: getattr(reading, name) + turn * step}) for turn, reading in enumerate(FLAT)
    ]
    (line,) = violations(growth(leaking))
    assert line.startswith(f"{name} grew by")


def test_too_few_readings_are_refused():
    with pytest.raises(ValueError, match="say nothing"):
        growth(FLAT[: FEWEST_READINGS - 1])
