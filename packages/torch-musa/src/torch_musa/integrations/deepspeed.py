# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""DeepSpeed on musa: importing this module sets DeepSpeed's accelerator.

    import torch_musa.integrations.deepspeed
    engine, optimizer, *_ = deepspeed.initialize(model=model, config=config)

Ranks communicate with the device's default backend. `"Adam"` and `"AdamW"` in a config become `FusedAdam`
with torch's fused kernel.
DeepSpeed's host operators (`CPUAdam` of ZeRO-Offload, asynchronous I/O) are those of its CPU
accelerator; its other CUDA operators do not exist for musa. Raises an ImportError if DeepSpeed is missing.
"""

import functools
import importlib
import importlib.util

import torch

if importlib.util.find_spec("deepspeed") is None:
    raise ImportError(
        "torch_musa.integrations.deepspeed needs DeepSpeed, which is not installed.\n"
        "Fix: pip install deepspeed"
    )

from deepspeed.accelerator import DeepSpeedAccelerator, set_accelerator
from deepspeed.ops.op_builder.builder import OpBuilder

from musa_runtime.installation import command
from torch_musa import extras

__all__ = ["MUSAAccelerator"]

_HOST_OPERATORS = "deepspeed.ops.op_builder.cpu"


def _constructor(dtype):
    """Returns a property whose value DeepSpeed calls with data, as it calls `torch.cuda.FloatTensor`."""
    return property(lambda self: functools.partial(torch.tensor, dtype=dtype, device="musa"))


class MUSAAccelerator(DeepSpeedAccelerator):
    """The device interface of DeepSpeed, see `deepspeed/accelerator/abstract_accelerator.py`."""

    def __init__(self):
        self._name = "musa"
        self._compile_backend = "inductor"

    # A device with streams, on which work is asynchronous.
    def is_synchronized_device(self):
        return False

    use_host_timers = resolves_data_dependency = handles_memory_backpressure = is_synchronized_device

    def device_name(self, device_index=None):
        return "musa" if device_index is None else f"musa:{device_index}"

    def current_device_name(self):
        return f"musa:{torch.musa.current_device()}"

    def on_accelerator(self, tensor):
        return tensor.device.type == "musa"

    device = staticmethod(torch.musa.device)
    set_device = staticmethod(torch.musa.set_device)
    current_device = staticmethod(torch.musa.current_device)
    device_count = staticmethod(torch.musa.device_count)
    is_available = staticmethod(torch.musa.is_available)
    synchronize = staticmethod(torch.musa.synchronize)

    Stream = torch.musa.Stream
    Event = torch.musa.Event
    stream = staticmethod(torch.musa.stream)
    current_stream = staticmethod(torch.musa.current_stream)
    default_stream = staticmethod(torch.musa.default_stream)

    manual_seed = staticmethod(torch.musa.manual_seed)
    manual_seed_all = staticmethod(torch.musa.manual_seed_all)
    initial_seed = staticmethod(torch.musa.initial_seed)

    def random(self):
        return torch.random

    def get_rng_state(self, device_index=None):
        return torch.musa.get_rng_state("musa" if device_index is None else device_index)

    def set_rng_state(self, new_state, device_index=None):
        torch.musa.set_rng_state(new_state, "musa" if device_index is None else device_index)

    def default_generator(self, device_index):
        return torch.musa.default_generators[device_index]

    empty_cache = staticmethod(torch.musa.empty_cache)
    memory_allocated = staticmethod(torch.musa.memory_allocated)
    max_memory_allocated = staticmethod(torch.musa.max_memory_allocated)
    reset_max_memory_allocated = staticmethod(torch.musa.reset_peak_memory_stats)
    memory_reserved = memory_cached = staticmethod(torch.musa.memory_reserved)
    max_memory_reserved = max_memory_cached = staticmethod(torch.musa.max_memory_reserved)
    reset_max_memory_cached = reset_peak_memory_stats = reset_max_memory_allocated
    memory_stats = staticmethod(torch.musa.memory_stats)

    def total_memory(self, device_index=None):
        """Returns the size of device memory in bytes."""
        return torch.musa.mem_get_info(device_index)[1]

    def available_memory(self, device_index=None):
        """Returns the number of free bytes, including those cached by the allocator."""
        cached = torch.musa.memory_reserved(device_index) - torch.musa.memory_allocated(device_index)
        return torch.musa.mem_get_info(device_index)[0] + cached

    def is_bf16_supported(self):
        return torch.musa.is_bf16_supported()

    def is_fp16_supported(self):
        return True

    is_fp64_supported = is_fp16_supported

    def supported_dtypes(self):
        return [torch.float32, torch.float16] + [torch.bfloat16] * self.is_bf16_supported()

    BFloat16Tensor = _constructor(torch.bfloat16)
    ByteTensor = _constructor(torch.uint8)
    DoubleTensor = _constructor(torch.float64)
    FloatTensor = _constructor(torch.float32)
    HalfTensor = _constructor(torch.float16)
    IntTensor = _constructor(torch.int32)
    LongTensor = _constructor(torch.int64)

    def communication_backend_name(self):
        """Returns the default backend of torch.distributed for musa.

        Raises:
            RuntimeError: if there is none.
        """
        try:
            return torch.distributed.get_default_backend_for_device("musa")
        except ValueError as error:
            missing = extras.missing("distributed")
            raise RuntimeError(
                "torch.distributed has no backend for musa, which DeepSpeed needs even for one rank.\n"
                "Likely causes: the pack with the backend is not installed, is disabled, or failed to load.\n"
                f"Fix: {command(*missing) if missing else 'python -m torch_musa packs names the cause'}"
            ) from error

    def is_triton_supported(self):
        return False

    def range_push(self, msg, domain=None, category=None):
        torch.musa.mttx.range_push(msg)

    def range_pop(self, domain=None):
        torch.musa.mttx.range_pop()

    def lazy_call(self, callback):
        # The first use of the device initializes it, so calls need not be postponed.
        callback()

    is_current_stream_capturing = staticmethod(torch.musa.is_current_stream_capturing)

    def create_graph(self):
        return torch.musa.MUSAGraph()

    def capture_to_graph(self, graph, pool=None, stream=None):
        return torch.musa.graph(graph, pool, stream)

    def replay_graph(self, graph):
        graph.replay()

    def op_builder_dir(self):
        return _HOST_OPERATORS

    def create_op_builder(self, class_name):
        """Returns a builder of the named operator, or None for collectives in host memory."""
        return None if class_name == "ShareMemCommBuilder" else self.get_op_builder(class_name)()

    def get_op_builder(self, class_name):
        builders = importlib.import_module(_HOST_OPERATORS)
        return getattr(builders, class_name, builders.NotImplementedBuilder)

    def build_extension(self):
        from torch.utils.cpp_extension import BuildExtension

        return BuildExtension

    def export_envs(self):
        return [self.communication_backend_name().upper(), "MUSA", "LD_LIBRARY", "PATH"]

    def visible_devices_envs(self):
        return ["MUSA_VISIBLE_DEVICES"]

    def set_visible_devices_envs(self, current_env, local_accelerator_ids):
        for name in self.visible_devices_envs():
            current_env[name] = ",".join(map(str, local_accelerator_ids))

    def get_compile_backend(self):
        return self._compile_backend

    def set_compile_backend(self, backend):
        backends = torch._dynamo.list_backends(exclude_tags=())
        if backend not in backends:
            raise ValueError(
                f"{backend!r} is not a backend of torch.compile in this process.\nFix: one of {backends}"
            )
        self._compile_backend = backend


class _FusedAdam:
    """The operator "fused_adam" of DeepSpeed's `FusedAdam`."""

    @staticmethod
    def multi_tensor_adam(
        chunk, overflow, tensors, lr, beta1, beta2, eps, step, decoupled, bias_correction, weight_decay
    ):
        """Performs one step of Adam or AdamW in place, with torch's fused kernel.

        Args:
            chunk, overflow: used by CUDA's kernel only.
            tensors (list): gradients, parameters, means and means of squares, each a list of musa tensors of
                equal dtypes.
            step (int): number of this step, from 1.
            decoupled (int): 1 for AdamW, 0 for Adam with an L2 penalty.
            bias_correction (int): 0 to skip the correction of means that start at zero.

        See `torch.optim.Adam` for the other arguments.
        """
        grads, params, means, squares = tensors
        if bias_correction:
            fused = torch._fused_adamw_ if decoupled else torch._fused_adam_
            steps = [torch.full((), step, dtype=torch.float32, device=p.device) for p in params]
            options = {"beta1": beta1, "beta2": beta2, "lr": lr, "eps": eps, "weight_decay": weight_decay}
            fused(params, grads, means, squares, [], steps, amsgrad=False, maximize=False, **options)
            return
        if weight_decay and decoupled:
            torch._foreach_mul_(params, 1 - lr * weight_decay)
        elif weight_decay:
            grads = torch._foreach_add(grads, params, alpha=weight_decay)
        torch._foreach_lerp_(means, grads, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - beta2)
        roots = torch._foreach_sqrt(squares)
        torch._foreach_add_(roots, eps)
        torch._foreach_addcdiv_(params, means, roots, value=-lr)


def _register():
    set_accelerator(MUSAAccelerator())
    # DeepSpeed selected the builders of its operators for the CPU when it was imported. Its builder
    # of fused_adam would compile code that accesses tensors through host pointers; operators in
    # _loaded_ops are not built.
    OpBuilder._loaded_ops["fused_adam"] = _FusedAdam


_register()
