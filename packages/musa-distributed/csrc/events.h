// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Events of finished calls are used again, because creating and destroying one takes as long as recording it.
#pragma once

#include <c10/musa/MUSAEvent.h>

#include <memory>

namespace c10d::mccl {

// Returns an event that goes back to the pool with its last owner. Like a new one it must be recorded before it is queried.
std::shared_ptr<c10::musa::MUSAEvent> pooled_event(c10::DeviceIndex device, bool timing);
// Returns an event of its own, for a graph that is being captured: the graph refers to it.
std::shared_ptr<c10::musa::MUSAEvent> own_event(bool timing);

} // namespace c10d::mccl
