# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The example with --amp reads as well as in float32."""

import pytest

from tests.examples.test_train_digits import train

pytestmark = pytest.mark.once


def test_mixed_precision_reaches_the_accuracy_of_float32(tmp_path):
    reached = {amp: train(tmp_path / amp, "--amp", amp)["accuracy"] for amp in ("off", "bf16", "fp16")}
    assert reached["off"] >= 0.97
    # Half a point is two images of the test set.
    assert reached["bf16"] == pytest.approx(reached["off"], abs=0.005)
    assert reached["fp16"] == pytest.approx(reached["off"], abs=0.005)
