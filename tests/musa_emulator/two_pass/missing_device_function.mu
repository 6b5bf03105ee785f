// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A device function of CUDA that MUSA is not known to have.
__global__ void kernel(unsigned* x) { x[0] = __reduce_add_sync(0xffffffffu, x[threadIdx.x]); }
