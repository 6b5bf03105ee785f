# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""Kernels of bitsandbytes' operators for musa: 8-bit and 32-bit optimizers, LLM.int8, NF4 and FP4.

bitsandbytes calls `register` during its import, by its entry point group `bitsandbytes.backends`. Its
device-independent kernels ("default") serve the other operators. A kernel is registered here if the default
kernel calls `torch.compile`, is inexact, or does not exist.
"""

import torch

from . import int8, optimizers, quantized

_KERNELS = {
    "dequantize_4bit": quantized.dequantize_4bit,
    "dequantize_4bit.out": quantized.dequantize_4bit_out,
    "dequantize_blockwise": quantized.dequantize_blockwise,
    "dequantize_blockwise.out": quantized.dequantize_blockwise_out,
    "gemv_4bit.out": quantized.gemv_4bit_out,
    "int8_double_quant": int8.int8_double_quant,
    "int8_linear_matmul": int8.int8_linear_matmul,
    "int8_linear_matmul.out": int8.int8_linear_matmul_out,
    "optimizer_update_32bit": optimizers.optimizer_update_32bit,
    "optimizer_update_8bit_blockwise": optimizers.optimizer_update_8bit_blockwise,
}


def register():
    """Registers the kernels with the dispatcher if this process has the device "musa".

    Skips operators that the installed bitsandbytes does not define, so that its import does not fail.
    """
    if torch._C._get_privateuse1_backend_name() != "musa":
        return
    for name, kernel in _KERNELS.items():
        packet, _, overload = name.partition(".")
        if hasattr(getattr(torch.ops.bitsandbytes, packet, None), overload or "default"):
            torch.library.register_kernel(f"bitsandbytes::{name}", "musa", kernel)
