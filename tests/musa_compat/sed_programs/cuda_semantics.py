# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
"""The blocks of the notes on CUDA semantics: devices, precision, memory, plans, allocators and capture."""

import torch

cuda = torch.device("cuda")
cuda0 = torch.device("cuda:0")
last = torch.device(f"cuda:{torch.cuda.device_count() - 1}")
x = torch.tensor([1.0, 2.0], device=cuda0)
y = torch.tensor([1.0, 2.0]).cuda()
with torch.cuda.device(last):
    a = torch.tensor([1.0, 2.0], device=cuda)
    b = torch.tensor([1.0, 2.0]).cuda()
    b2 = torch.tensor([1.0, 2.0]).to(device=cuda)
    c = a + b
    z = x + y
assert c.device == last and z.device == cuda0 and b2.device == last
with torch.cuda.device_of(z):
    assert torch.cuda.current_device() == 0

torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
assert torch.get_float32_matmul_precision() == "high"
torch.backends.cuda.matmul.fp32_precision = "ieee"
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_fp16_accumulation = False
assert torch.backends.cuda.is_built()
a_full = torch.randn(32, 32, dtype=torch.double, device="cuda")
torch.testing.assert_close((a_full.float() @ a_full.float()).double(), a_full @ a_full, rtol=1e-3, atol=1e-3)

plans = torch.backends.cuda.cufft_plan_cache
plans.max_size = 10
torch.fft.fft(torch.randn(16, device="cuda"))
assert plans.max_size == 10 and plans[0].size >= 0
plans.clear()
with torch.cuda.device(0):
    assert torch.backends.cuda.cufft_plan_cache.size == 0
assert torch.backends.cuda.preferred_linalg_library() is not None
torch.backends.cuda.preferred_blas_library("default")

torch.cuda.init()
torch.cuda.ipc_collect()
assert torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork()
assert isinstance(torch.cuda.get_allocator_backend(), str)
try:
    torch.cuda.memory.CUDAPluggableAllocator("alloc.so", "my_malloc", "my_free")
except (OSError, RuntimeError) as error:
    assert "alloc.so" in str(error)
torch.cuda.memory._set_allocator_settings("expandable_segments:False")
torch.cuda.set_sync_debug_mode("default")
assert torch.cuda.get_sync_debug_mode() == 0

net = torch.nn.Linear(2, 2).to(device=cuda)
for parameter in net.parameters():
    assert parameter.is_cuda and parameter.device.type == "cuda"
x_gpu = torch.ones(2, 3, device=cuda)
assert x_gpu.new_full([2, 2], fill_value=0.3).device == x_gpu.device
assert torch.zeros_like(x_gpu).is_cuda and x_gpu.get_device() == 0
assert torch.cuda.can_device_access_peer(0, torch.cuda.device_count() - 1) in (True, False)
assert torch.tensor([1.0, 2.0]).cuda().device == cuda0
print("done")
