# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The platform class: device, memory, communication and the choice of the other classes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from vllm.logger import init_logger
from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum

from torch_musa import musa

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.config.kernel import IrOpPriorityConfig
    from vllm.utils.argparse_utils import FlexibleArgumentParser
    from vllm.v1.attention.backends.mla.prefill.base import MLAPrefillBackend
    from vllm.v1.attention.backends.mla.prefill.selector import MLAPrefillSelectorConfig
    from vllm.v1.attention.backends.registry import AttentionBackendEnum
    from vllm.v1.attention.selector import AttentionSelectorConfig

# vLLM shows the messages of loggers below its own.
logger = init_logger(f"vllm.{__name__}")


class MusaPlatform(Platform):
    """Moore Threads GPUs, or an implementation of their SDK on another machine."""

    _enum = PlatformEnum.OOT
    device_name = "musa"
    device_type = "musa"
    dispatch_key = "PrivateUse1"
    device_control_env_var = "MUSA_VISIBLE_DEVICES"
    dist_backend = "mccl"

    @classmethod
    def pre_register_and_update(cls, parser: FlexibleArgumentParser | None = None) -> None:
        # Model runner V2 needs Triton's kernels. vLLM chooses it if Triton finds a driver, which may be
        # another device's.
        os.environ.setdefault("VLLM_USE_V2_MODEL_RUNNER", "0")

    @classmethod
    def import_kernels(cls) -> None:
        """Loads no library of vLLM: those of its wheel are for CUDA."""

    @classmethod
    def import_ir_kernels(cls) -> None:
        from . import normalization  # noqa: F401 - registers its functions

    @classmethod
    def register_triton_kernel_overrides(cls) -> None:
        from vllm.triton_utils.dispatcher import register_kernels

        from .kernels import REPLACEMENTS

        register_kernels(REPLACEMENTS)

    @classmethod
    def get_attn_backend_cls(
        cls,
        selected_backend: AttentionBackendEnum,
        attn_selector_config: AttentionSelectorConfig,
        num_heads: int | None = None,
    ) -> str:
        from .attention import PagedBackend
        from .mla import LatentBackend

        backend = LatentBackend if attn_selector_config.use_mla else PagedBackend
        if selected_backend is not None and selected_backend.name != backend.get_name():
            raise ValueError(
                f"The attention backend {selected_backend.name} does not run on musa.\n"
                f"Fix: leave --attention-backend out, or pass {backend.get_name()}."
            )
        reasons = backend.validate_configuration(
            device_capability=cls.get_device_capability(), **attn_selector_config._asdict()
        )
        if reasons:
            raise ValueError(
                f"{backend.get_name()}, the attention backend of musa, does not serve this model: "
                f"{', '.join(reasons)}.\nThe configuration is {attn_selector_config!r}.\n"
                "Fix: choose another --dtype, --kv-cache-dtype or --block-size if one is named above. "
                "Otherwise the model needs an attention that the plug-in does not have."
            )
        return f"{backend.__module__}.{backend.__qualname__}"

    @classmethod
    def get_mla_prefill_backend_cls(
        cls, mla_selector_config: MLAPrefillSelectorConfig
    ) -> type[MLAPrefillBackend]:
        from .mla import LatentPrefill

        return LatentPrefill

    @classmethod
    def get_device_capability(cls, device_id: int = 0) -> DeviceCapability | None:
        """Returns None: vLLM compares capabilities with those of CUDA devices, to choose CUDA's kernels."""
        return None

    @classmethod
    def get_device_name(cls, device_id: int = 0) -> str:
        return musa.get_device_name(device_id)

    @classmethod
    def get_device_uuid(cls, device_id: int = 0) -> str:
        return str(musa.get_device_properties(device_id).uuid)

    @classmethod
    def get_device_total_memory(cls, device_id: int = 0) -> int:
        return musa.get_device_properties(device_id).total_memory

    @classmethod
    def get_current_memory_usage(cls, device: torch.types.Device | None = None) -> float:
        musa.reset_peak_memory_stats(device)
        return musa.max_memory_allocated(device)

    @classmethod
    def num_compute_units(cls, device_id: int = 0) -> int:
        return musa.get_device_properties(device_id).multi_processor_count

    @classmethod
    def set_device(cls, device: torch.device) -> None:
        musa.set_device(device)

    @classmethod
    def manual_seed_all(cls, seed: int) -> None:
        musa.manual_seed_all(seed)

    @classmethod
    def check_if_supports_dtype(cls, dtype: torch.dtype) -> None:
        """Raises ValueError unless the device computes with `dtype`."""
        if dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise ValueError(
                f"{dtype} is not served on musa.\nFix: pass --dtype bfloat16, float16 or float32."
            )

    @classmethod
    def verify_quantization(cls, quant: str) -> None:
        raise ValueError(
            f"Models quantized with {quant!r} are not served on musa: vLLM's kernels for them are for CUDA.\n"
            "Fix: choose weights in bfloat16, float16 or float32."
        )

    @classmethod
    def apply_config_platform_defaults(cls, vllm_config: VllmConfig) -> None:
        from vllm.config.compilation import CompilationMode

        compilation = vllm_config.compilation_config
        if compilation.mode is None:
            # Graphs alone remove the cost of launches. torch.compile takes minutes at each start, so it is a
            # choice.
            compilation.mode = CompilationMode.NONE

    @classmethod
    def check_and_update_config(cls, vllm_config: VllmConfig) -> None:
        from vllm.config.compilation import CUDAGraphMode

        parallel = vllm_config.parallel_config
        if parallel.worker_cls == "auto":
            parallel.worker_cls = "vllm_torch_musa.worker.MusaWorker"
        if vllm_config.use_v2_model_runner:
            raise ValueError(
                "Model runner V2 needs Triton's kernels and does not run on musa.\n"
                "Fix: set VLLM_USE_V2_MODEL_RUNNER=0, or unset it."
            )
        if parallel.enable_dbo:
            raise ValueError("Dual batch overlap uses streams of CUDA.\nFix: leave --enable-dbo out.")
        compilation = vllm_config.compilation_config
        graphs = compilation.cudagraph_mode not in (None, CUDAGraphMode.NONE)
        if graphs and vllm_config.model_config is not None and vllm_config.model_config.is_moe:
            # grouped_mm reads the ends of the groups on the host, which no graph can record.
            logger.info_once(
                "Graphs are off for a model with experts: torch's grouped_mm cannot be recorded."
            )
            compilation.cudagraph_mode = CUDAGraphMode.NONE
        # Both compile Triton's and CUTLASS's kernels before the first request; none of them is called here.
        vllm_config.kernel_config.enable_jit_warmup = False
        vllm_config.kernel_config.enable_cutedsl_warmup = False
        scheduler = vllm_config.scheduler_config
        if scheduler.async_scheduling:
            # The model runner makes a stream of CUDA for it. vLLM switches it on by itself, so this is no
            # error.
            logger.info_once(
                "Asynchronous scheduling is off: vLLM's model runner implements it with CUDA streams."
            )
            scheduler.async_scheduling = False
        # vLLM forks its processes otherwise, and a forked process cannot use a device that its parent has
        # used.
        os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")

    @classmethod
    def get_default_ir_op_priority(cls, vllm_config: VllmConfig) -> IrOpPriorityConfig:
        from vllm.config.kernel import IrOpPriorityConfig

        return IrOpPriorityConfig.with_default(["musa", "native"], gelu_and_mul_sparse=["native"])

    @classmethod
    def get_device_communicator_cls(cls) -> str:
        return "vllm_torch_musa.communicator.MusaCommunicator"

    @classmethod
    def get_static_graph_wrapper_cls(cls) -> str:
        return "vllm_torch_musa.graphs.GraphWrapper"

    @classmethod
    def support_static_graph_mode(cls) -> bool:
        return True

    @classmethod
    def support_hybrid_kv_cache(cls) -> bool:
        return True

    @classmethod
    def check_runner_kv_caches_multi_layer(cls) -> None:
        """Accepts several attention layers of one index: the runner binds the caches by name."""

    @classmethod
    def opaque_attention_op(cls) -> bool:
        return True

    @classmethod
    def is_integrated_gpu(cls, device_id: int = 0) -> bool:
        """Returns False: free memory is the SDK's, also on devices that share the host's memory."""
        return False
