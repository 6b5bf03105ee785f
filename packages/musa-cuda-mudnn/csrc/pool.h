// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Pools of torch.cuda's allocator. CUDA's headers conflict with the SDK's, so this header uses types of neither.
#pragma once

namespace musa_emulator::dnn {

// Between begin_pool and end_pool, torch.cuda's allocator serves the stream from a pool of the capture. Otherwise the
// allocator, which tracks only torch.cuda's own captures, would reuse the graph's scratch memory for later work and
// free it in empty_cache(). After the graph and its instances are destroyed, a later capture releases the pool.
//
// graph: the graph being captured, which keeps the pool alive.
void begin_pool(int device, unsigned long long capture, void* stream, void* graph);
void end_pool(int device, unsigned long long capture);

} // namespace musa_emulator::dnn
