// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Pools of torch.cuda's allocator. Its headers are CUDA's and do not go together with the SDK's: hence no type of either here.
#pragma once

namespace musa_emulator::dnn {

// From begin to end, torch.cuda's allocator serves the stream from the pool of a capture. It does not know of a capture that
// torch.cuda has not begun: it would give the graph's scratch memory to later work, and free it when its cache is emptied.
// When the graph and all that was instantiated from it are destroyed, a later capture gives the pool back.
//
// graph: the cudaGraph_t that is captured into. It keeps the pool; null, or without CUDA's user objects, the pool stays
// for good.
void begin_pool(int device, unsigned long long capture, void* stream, void* graph);
void end_pool(int device, unsigned long long capture);

} // namespace musa_emulator::dnn
