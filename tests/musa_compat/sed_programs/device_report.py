# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""What programs print about the device before they start."""

import torch

assert torch.cuda.is_available() and torch.version.cuda
properties = torch.cuda.get_device_properties(torch.device("cuda"))
assert properties.name == torch.cuda.get_device_name(0)
assert (properties.major, properties.minor) == torch.cuda.get_device_capability()
assert properties.multi_processor_count > 0 and properties.warp_size in (32, 128)
assert properties.total_memory > 0 and properties.max_threads_per_multi_processor > 0
assert properties.shared_memory_per_block > 0 and properties.regs_per_multiprocessor > 0
assert isinstance(torch.cuda.get_arch_list(), list) and isinstance(torch.cuda.get_gencode_flags(), str)
assert isinstance(torch.cuda.is_bf16_supported(), bool) and isinstance(torch.cuda.is_tf32_supported(), bool)
runtime = torch.cuda.cudart()
code = runtime.cudaProfilerStart()
torch.cuda.check_error(code)
runtime.cudaProfilerStop()
assert int(code) == torch.cuda.cudaStatus.SUCCESS
assert torch.cuda.cudart().cudaMemGetInfo(0)[1] == properties.total_memory
for name in ("utilization", "temperature", "power_draw", "clock_rate"):
    try:
        assert getattr(torch.cuda, name)() >= 0
    except (ModuleNotFoundError, RuntimeError) as error:
        assert "ml" in str(error).lower()
assert issubclass(torch.cuda.CudaError, RuntimeError)
assert issubclass(torch.cuda.DeferredCudaCallError, Exception)
assert torch.cuda.AcceleratorError is torch.AcceleratorError
torch.cuda._sleep(10)
torch.cuda.synchronize(device="cuda:0")
assert torch.get_device_module("cuda") is torch.cuda
assert torch.cuda._lazy_init() is None and torch.cuda._initialized
print("done")
