// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// From the engine's collection into the caller's buffers.
#pragma once

#include "activity_buffers.h"
#include "engine/activity.h"
#include "mupti_callbacks.h"

namespace musa_emulator::mupti {

mupti_buffers::Record make_record(const Activity& activity, bool concurrent_kernels);

// The number of an entry point; 0 for a name without one.
MUpti_CallbackId callback_id(const char* name);

// Fills buffers with everything collected. Calls the callbacks, so no lock may be held.
void deliver();

} // namespace musa_emulator::mupti
