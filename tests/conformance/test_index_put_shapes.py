# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Values of a wrong shape are refused by index_put_ with the CPU's text: indices, masks, accumulation."""

from __future__ import annotations

import pytest
import torch

ROW, BOTH, MASK, ROWS_OF_MASK = "row", "row and column", "mask", "mask of rows"
INDICES = {
    ROW: (torch.tensor([0, 1]),),
    BOTH: (torch.tensor([0, 1]), torch.tensor([1, 2])),
    MASK: (torch.arange(12).view(4, 3) % 5 == 0,),
    ROWS_OF_MASK: (torch.tensor([True, False, True, True]),),
}


def refusal(device: str, indices: tuple, shape: tuple, accumulate: bool) -> str:
    x, values = torch.zeros(4, 3, device=device), torch.ones(shape, device=device)
    with pytest.raises(RuntimeError) as caught:
        x.index_put_(tuple(index.to(device) for index in indices), values, accumulate=accumulate)
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("shape", [(5,), (2, 2), (4, 3, 2)])
@pytest.mark.parametrize("indices", INDICES)
def test_the_text(device: str, indices: str, shape: tuple, accumulate: bool) -> None:
    expected = refusal("cpu", INDICES[indices], shape, accumulate)
    assert refusal(device, INDICES[indices], shape, accumulate).startswith(expected)
