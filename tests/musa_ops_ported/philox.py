# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The random sequence of torch's CUDA kernels, computed by NumPy from its documentation.

Philox 4x32-10 (Salmon et al., 2011): the key is the seed, the upper half of the counter is the thread's index
and the lower half is offset / 4. Blocks have 256 threads, and there are as many as the device runs at once.
Each thread draws four numbers at a time, for elements one grid size apart.
"""

from __future__ import annotations

import numpy as np

MASK = np.uint64(0xFFFFFFFF)
THREADS = 256


def philox(seed: int, subsequence: np.ndarray, block: int) -> np.ndarray:
    """Returns four 32-bit numbers for each subsequence, of shape (len(subsequence), 4)."""
    n = len(subsequence)
    counter = [
        np.full(n, block & 0xFFFFFFFF, np.uint64),
        np.full(n, block >> 32, np.uint64),
        subsequence.astype(np.uint64) & MASK,
        subsequence.astype(np.uint64) >> np.uint64(32),
    ]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first = counter[0] * np.uint64(0xD2511F53)
        second = counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (second >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]),
            second & MASK,
            (first >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]),
            first & MASK,
        ]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, axis=1).astype(np.uint32)


def elements(
    seed: int, offset: int, count: int, processors: int, threads_per_processor: int, at_once: int = 4
) -> np.ndarray:
    """Returns the four numbers of each element's call and the element's index among them: (count, 5)."""
    blocks = min(-(-count // THREADS), processors * (threads_per_processor // THREADS))
    grid = blocks * THREADS
    rows = np.zeros((count, 5), np.uint64)
    calls = -(-count // (grid * at_once))
    for call in range(calls):
        drawn = philox(seed, np.arange(grid), offset // 4 + call)
        for result in range(at_once):
            at = call * grid * at_once + result * grid + np.arange(grid)
            inside = at < count
            rows[at[inside], :4] = drawn[inside]
            rows[at[inside], 4] = result
    return rows


def calls_offset(count: int, processors: int, threads_per_processor: int, at_once: int = 4) -> int:
    """Returns the increment of the generator's offset by one kernel."""
    blocks = min(-(-count // THREADS), processors * (threads_per_processor // THREADS))
    return ((count - 1) // (blocks * THREADS * at_once) + 1) * 4


def uniform32(bits: np.ndarray) -> np.ndarray:
    """Returns float32 numbers in (0, 1]."""
    return bits.astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)


def uniform53(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    bits = low.astype(np.uint64) ^ (high.astype(np.uint64) << np.uint64(21))
    return bits.astype(np.float64) * 2.0**-53 + 2.0**-54
