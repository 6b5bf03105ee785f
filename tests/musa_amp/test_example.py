# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The example reaches the same accuracy with --amp as in float32."""

import pytest

from tests.examples.test_train_digits import train
from tests.harness.parts import sample

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def epochs(pytestconfig):
    """The example's own number of epochs with --full; a third of it is enough for its accuracy."""
    return () if pytestconfig.getoption("--full") else ("--epochs", "5")


@pytest.fixture(scope="module")
def in_float32(epochs, tmp_path_factory):
    return train(tmp_path_factory.mktemp("float32"), "--amp", "off", *epochs)["accuracy"]


# float16 is sampled first, because only float16 needs the scaler.
@pytest.mark.parametrize("amp", sample(("fp16", "bf16"), 2))
def test_mixed_precision_reaches_the_accuracy_of_float32(amp, in_float32, epochs, tmp_path):
    assert in_float32 >= 0.97
    # Half a percentage point is two images of the test set. A higher accuracy is no failure.
    assert train(tmp_path, "--amp", amp, *epochs)["accuracy"] >= in_float32 - 0.005
