# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The rows of serving: a short run, and operators that disagree with their compositions."""

from dataclasses import replace

import pytest
import torch

from benchmarks import serving
from benchmarks.measure import Effort, Pair

pytestmark = [pytest.mark.once, pytest.mark.needs("musa-ops-serving")]
DEVICES = torch.device("musa"), torch.device("cpu")


def test_a_quick_run_measures_each_operator():
    rows = list(serving.measure_all(*DEVICES, Effort(1, 0), quick=True))
    assert len(rows) == len(list(serving.cases(True, DEVICES[1])))
    assert all("serving" in row.served for row in rows)
    assert "of the bandwidth" in rows[0].name and "of the bandwidth" not in rows[1].name


def test_an_operator_that_disagrees_is_not_timed(monkeypatch):
    case = next(serving.layers(2, 8, torch.float32))
    wrong = replace(case, composition=lambda *tensors: case.composition(*tensors) * 1.1)
    monkeypatch.setattr(serving, "cases", lambda quick, place: [wrong])
    with pytest.raises(RuntimeError, match="disagree"):
        list(serving.measure_all(*DEVICES, Effort(1, 0), quick=True))


def test_the_fraction_is_that_of_the_bytes_that_have_to_be_read(monkeypatch):
    monkeypatch.setattr(serving, "bandwidth", lambda device: 1000.0)
    case = serving.attention(1, 16, 8, 2, 1, torch.float32, DEVICES[1])
    assert case.bytes == 2 * 16 * 2 * 128 * 4
    pair = Pair(case.bytes / 500, 1.0, 1.0, (1.0, 1.0))  # half of the bandwidth
    assert serving.title(case, pair, DEVICES[0]).endswith("(0.50 of the bandwidth)")
