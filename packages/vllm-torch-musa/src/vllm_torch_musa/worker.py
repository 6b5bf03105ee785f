# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The worker: the process, or the part of one, that serves one device."""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext

import torch
from vllm.platforms import current_platform
from vllm.utils.mem_utils import MemorySnapshot
from vllm.utils.torch_utils import set_random_seed
from vllm.v1.worker.gpu_worker import Worker, init_worker_distributed_environment
from vllm.v1.worker.utils import request_memory

from torch_musa import musa

from . import layers  # noqa: F401 - registers the layers before the model is built
from .model_runner import MusaModelRunner


class MusaWorker(Worker):
    """vLLM's worker on a musa device."""

    def init_device(self) -> None:
        """Selects the device, joins the process groups and measures the free memory."""
        parallel = self.parallel_config
        if parallel.data_parallel_size > 1 and parallel.distributed_executor_backend not in (
            "ray",
            "external_launcher",
        ):
            replica = parallel.data_parallel_rank_local
            if replica is None:
                replica = parallel.data_parallel_index
            self.local_rank += replica * parallel.world_size
        count = musa.device_count()
        if self.local_rank >= count:
            raise ValueError(
                f"Rank {self.rank} needs the musa device {self.local_rank}, and {count} are visible.\n"
                "Fix: lower --tensor-parallel-size, or make more devices visible with MUSA_VISIBLE_DEVICES."
            )
        index = current_platform.logical_device_id_to_visible_device_id(self.local_rank)
        self.device = torch.device("musa", index)
        musa.set_device(self.device)
        if not hasattr(torch.ops.musa_serving, "paged_attention"):
            from musa_runtime import installation

            raise RuntimeError(
                "The operators of musa-ops-serving are missing, with which the plug-in computes attention.\n"
                "Likely causes, in order: the pack is not installed; it failed to load, which "
                "`python -m torch_musa packs` shows.\n"
                f"Fix: {installation.command('musa-ops-serving')}"
            )
        current_platform.check_if_supports_dtype(self.model_config.dtype)
        # Before the memory is measured, because communicators allocate buffers.
        init_worker_distributed_environment(
            self.vllm_config,
            self.rank,
            self.distributed_init_method,
            self.local_rank,
            current_platform.dist_backend,
        )
        set_random_seed(self.model_config.seed)
        gc.collect()
        musa.empty_cache()
        self.init_snapshot = MemorySnapshot(device=self.device)
        self.requested_memory = request_memory(self.init_snapshot, self.cache_config)
        self._init_workspace_and_model_runner()

    def _make_model_runner(self) -> MusaModelRunner:
        return MusaModelRunner(self.vllm_config, self.device)

    def _maybe_get_memory_pool_context(self, tag: str) -> AbstractContextManager[None]:
        # The pools of vLLM serve its sleep mode, which the platform does not offer.
        return nullcontext()
