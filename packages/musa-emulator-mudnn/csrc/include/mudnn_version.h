// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The version of muDNN that this library emulates. Build scripts parse these lines: one macro per line, one digit each.
#pragma once

#define MUDNN_VERSION_MAJOR 3
#define MUDNN_VERSION_MINOR 1
#define MUDNN_VERSION_PATCH 0

#define MUDNN_VERSION (MUDNN_VERSION_MAJOR * 1000 + MUDNN_VERSION_MINOR * 100 + MUDNN_VERSION_PATCH)
