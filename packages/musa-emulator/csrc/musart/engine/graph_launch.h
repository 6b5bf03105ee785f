// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Launches of executable graphs into streams.
#pragma once

#include "engine/state.h"

namespace musa_emulator {

// During a capture of the stream, the graph becomes a child of the captured one.
MUSA_ENGINE musaError_t launch_graph(musaGraphExec_t exec, Stream& stream);

} // namespace musa_emulator
