// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Memory and events shared between processes.
#pragma once

#include <memory>

#include "engine/state.h"

namespace musa_emulator {

// The shared page of an event, with counters that only grow. The event is complete when `completed` reaches the
// target.
struct InterprocessEvent;

musaError_t create_interprocess(std::shared_ptr<InterprocessEvent>* shared);
musaError_t export_interprocess(const InterprocessEvent& shared, int device, musaIpcEventHandle_t* handle);
musaError_t import_interprocess(const musaIpcEventHandle_t& handle, std::shared_ptr<InterprocessEvent>* shared);
uint64_t begin_interprocess_record(InterprocessEvent& shared);
void finish_interprocess_record(InterprocessEvent& shared, uint64_t target);
uint64_t interprocess_recorded(const InterprocessEvent& shared);
// Also true if the process that recorded last has exited, because its work cannot finish any more.
bool interprocess_reached(const InterprocessEvent& shared, uint64_t target);
// Blocks the calling thread. Returns early if the process exits.
void wait_interprocess(const InterprocessEvent& shared, uint64_t target);

MUSA_ENGINE musaError_t export_memory(void* pointer, musaIpcMemHandle_t* handle);
MUSA_ENGINE musaError_t import_memory(int device, const musaIpcMemHandle_t& handle, void** pointer);
MUSA_ENGINE musaError_t close_memory(void* pointer);

} // namespace musa_emulator
