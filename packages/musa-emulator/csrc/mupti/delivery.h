// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Converts the engine's activities to records in the caller's buffers.
#pragma once

#include "activity_buffers.h"
#include "engine/activity.h"
#include "mupti_callbacks.h"

namespace musa_emulator::mupti {

mupti_buffers::Record make_record(const Activity& activity, bool concurrent_kernels);

// Returns the callback id of an entry point, or 0 if it has none.
MUpti_CallbackId callback_id(const char* name);

// Delivers all collected records. Calls the buffer callbacks, so no lock may be held.
void deliver();

} // namespace musa_emulator::mupti
