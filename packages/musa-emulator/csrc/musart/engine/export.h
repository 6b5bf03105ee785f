// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Marks what libmusart uses of the engine, which lives in libmusa so that driver and runtime share one state.
#pragma once

#define MUSA_ENGINE __attribute__((visibility("default")))
