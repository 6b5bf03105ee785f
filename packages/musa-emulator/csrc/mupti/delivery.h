// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// From the engine's collection into the caller's buffers.
#pragma once

#include <vector>

#include "engine/activity.h"
#include "mupti_activity.h"

namespace musa_emulator::mupti {

// A record of any kind, and its length.
union Record {
  MUpti_Activity head;
  MUpti_ActivityAPI call;
  MUpti_ActivityKernel4 kernel;
  MUpti_ActivityMemcpy copy;
  MUpti_ActivityMemcpy2 peer_copy;
  MUpti_ActivityMemset fill;
  MUpti_ActivitySynchronization synchronization;
  MUpti_ActivityExternalCorrelation external;
  MUpti_ActivityOverhead overhead;
};
size_t record_size(MUpti_ActivityKind kind); // 0 for a kind without records
Record make_record(const Activity& activity, bool concurrent_kernels);

// The number of an entry point; 0 for a name without one.
MUpti_CallbackId callback_id(const char* name);

// Fills buffers with everything collected. Calls the callbacks, so no lock may be held.
void deliver();

} // namespace musa_emulator::mupti
