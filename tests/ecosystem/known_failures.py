# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Cases that are known to fail: a closed list. A case that passes, or fails otherwise, is an error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """Why a case fails.

    Attributes:
        reason (str): the cause, with the place in the package.
        match (str): part of the failure's text.
        one_liner (str): the line that users write instead.
        cure (str): the case that shows that this line works.
    """

    reason: str
    match: str
    one_liner: str
    cure: str


_OFFLOADED = Known(
    "transformers.cache_utils calls torch.cuda.default_stream for offloaded caches on every device, "
    "the CPU too",
    "Torch not compiled with CUDA enabled",
    'cache_implementation="static", or no such argument',
    "test_transformers_serving.py::test_generate[static cache]",
)

KNOWN_FAILURES: dict[str, Known] = {
    "test_transformers_serving.py::test_offloaded_cache[offloaded]": _OFFLOADED,
    "test_transformers_serving.py::test_offloaded_cache[offloaded_static]": _OFFLOADED,
    "test_transformers_serving.py::test_continuous_batching_is_sized_by_the_memory_of_the_device": Known(
        "get_device_and_memory_breakdown in transformers.generation.continuous_batching.utils has a list of "
        "cuda, xpu and mps, and takes the host's memory for any other device",
        "sized by the memory of cpu",
        "continuous_batching_config=ContinuousBatchingConfig(num_blocks=..., max_batch_tokens=...)",
        "test_transformers_serving.py::test_continuous_batching",
    ),
}
