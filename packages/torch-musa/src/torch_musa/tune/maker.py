# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Tensors with reproducible contents."""

from __future__ import annotations

import functools
import math

import torch

_BLOCK = 1 << 20  # elements drawn on the CPU; larger tensors repeat them


@functools.cache
def _drawn() -> torch.Tensor:
    """Returns numbers uniform in [0, 1), drawn once, because drawing takes longer than most calls."""
    return torch.rand(2 * _BLOCK, generator=torch.Generator().manual_seed(0))


class Maker:
    """Makes the operands of one call.

    Args:
        numel (int): number of elements of the largest operand, approximately.
        dtype (torch.dtype): dtype of the values.
        device (str): device of the tensors.
    """

    def __init__(self, numel: int, dtype: torch.dtype, device: str) -> None:
        self.numel = numel
        self.dtype = dtype
        self.device = device
        self._offset = 0

    def side(self, matrices: int = 1) -> int:
        """Side of square matrices that have `numel` elements together."""
        return max(4, math.isqrt(self.numel // matrices) // 4 * 4)

    @property
    def square(self) -> tuple[int, int]:
        """Shape of a square matrix of `numel` elements."""
        return self.side(), self.side()

    @property
    def image(self) -> tuple[int, int, int, int]:
        """Shape (N, C, H, W) of `numel` elements, with an even H = W."""
        count, channels = (1, 4) if self.numel < 10**5 else (4, 16) if self.numel < 10**7 else (16, 64)
        side = max(4, math.isqrt(self.numel // (count * channels)) // 2 * 2)
        return count, channels, side, side

    @property
    def heads(self) -> tuple[int, int, int, int]:
        """Shape (N, heads, length, width) of the queries of attention."""
        count, heads, width = (1, 2, 16) if self.numel < 10**5 else (4, 8, 64)
        return count, heads, max(8, self.numel // (count * heads * width)), width

    def values(
        self, *shape: int, low: float = -1.0, high: float = 1.0, dtype: torch.dtype | None = None
    ) -> torch.Tensor:
        """A tensor of the dtype: uniform in [low, high); integers from 1 to 9."""
        dtype = dtype or self.dtype
        if dtype.is_complex:
            part = dtype.to_real()
            return torch.complex(
                self.values(*shape, low=low, high=high, dtype=part),
                self.values(*shape, low=low, high=high, dtype=part),
            )
        block = self._uniform(shape)
        block = block * (high - low) + low if dtype.is_floating_point else block * 9 + 1
        return self._shaped(block.to(dtype), shape)

    def unit(self, *shape: int, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Values from 0.1 to 0.9: probabilities and variances."""
        return self.values(*shape, low=0.1, high=0.9, dtype=dtype)

    def statistics(self, *shape: int) -> torch.Tensor:
        """Values from 0.1 to 0.9 in float32: means and reciprocal deviations, which norms keep in float32."""
        return self.unit(*shape, dtype=torch.float32)

    def index(self, *shape: int, high: int) -> torch.Tensor:
        """int64 indices from 0 to high - 1."""
        # In float64, because float32 rounds products with a large bound up to the bound.
        return self._shaped((self._uniform(shape).to(torch.float64) * high).to(torch.int64), shape)

    def permutation(self, count: int) -> torch.Tensor:
        """The indices from 0 to count - 1 in random order, each once."""
        return torch.randperm(count, generator=torch.Generator().manual_seed(0)).to(self.device)

    def mask(self, *shape: int) -> torch.Tensor:
        """A bool tensor of which half is True."""
        return self.index(*shape, high=2).to(torch.bool)

    def definite(self) -> torch.Tensor:
        """Symmetric positive definite matrices (N, 32, 32)."""
        count = max(1, self.numel // 1024)
        matrices = self.values(count, 32, 32)
        return (matrices + matrices.mT) / 2 + 32 * torch.eye(32, dtype=self.dtype, device=self.device)

    def _uniform(self, shape: tuple[int, ...]) -> torch.Tensor:
        """Returns numbers for a tensor of a shape, others at each call."""
        count = min(math.prod(shape), _BLOCK)
        start, self._offset = self._offset, (self._offset + 7919) % _BLOCK
        return _drawn()[start : start + count]

    def _shaped(self, block: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        numel = math.prod(shape)
        block = block.to(self.device)
        if block.numel() < numel:
            block = block.repeat(-(-numel // block.numel()))[:numel]
        return block.reshape(shape)
