// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Exports the parts of the engine that libmusart uses. The engine is in libmusa, so that driver and runtime share one
// state.
#pragma once

#define MUSA_ENGINE __attribute__((visibility("default")))
