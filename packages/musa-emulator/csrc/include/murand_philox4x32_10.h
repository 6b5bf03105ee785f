// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The device API is in murand_kernel.h.
#pragma once
