# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""A closed list of cases that are known to fail. A case that passes, or fails in another way, is an error."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """The reason for which a case fails.

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
    "test_sentence_transformers.py::test_the_device_is_found_without_an_argument": Known(
        "get_device_name in sentence_transformers.util has a list of cuda, mps, npu, xpu and hpu",
        "ran on the CPU",
        'SentenceTransformer(path, device="musa")',
        "test_sentence_transformers.py::test_embeddings[{}]",
    ),
    "test_torch_geometric.py::test_the_device_is_found_without_a_name": Known(
        "torch_geometric.device has a list of cuda, mps and xpu for 'auto'",
        "ran on the CPU",
        'torch_geometric.device("musa")',
        "test_torch_geometric.py::test_layers[gcn]",
    ),
    "test_stable_baselines3.py::test_the_device_is_found_without_a_name": Known(
        "get_device in stable_baselines3.common.utils has cuda alone for 'auto'",
        "ran on the CPU",
        'PPO("MlpPolicy", env, device="musa")',
        "test_stable_baselines3.py::test_learning[PPO]",
    ),
    "test_accelerate.py::test_kernels_in_a_profile[named]": Known(
        "ProfileKwargs in accelerate.utils.dataclasses has a list of cpu, cuda, hpu, xpu and mtia",
        "Invalid profiler activity: musa",
        "ProfileKwargs()",
        "test_accelerate.py::test_kernels_in_a_profile[default]",
    ),
}
