// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Events.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

MUSA_ENGINE musaError_t create_event(Device& device, unsigned flags, Event** event);
MUSA_ENGINE musaError_t destroy_event(Event* event);
// Returns nullptr if the handle is not alive.
MUSA_ENGINE Event* resolve_event(musaEvent_t handle);

MUSA_ENGINE musaError_t record_event(Event& event, Stream& stream, unsigned flags);
MUSA_ENGINE musaError_t wait_event(Stream& stream, Event& event, unsigned flags);
MUSA_ENGINE musaError_t query_event(Event& event);
MUSA_ENGINE musaError_t synchronize_event(Event& event);
MUSA_ENGINE musaError_t elapsed_time(Event& start, Event& end, float* milliseconds);

// The lock must be held. begin_record() binds the event to the next operation of `stream`; finish_record() is called
// when that operation runs.
MUSA_ENGINE musaError_t export_event(Event& event, musaIpcEventHandle_t* handle);
MUSA_ENGINE musaError_t import_event(Device& device, const musaIpcEventHandle_t& handle, Event** event);

RecordOperation begin_record(Event& event, Stream& stream);
void finish_record(const RecordOperation& record);
void release_all_events();

} // namespace musa_emulator
