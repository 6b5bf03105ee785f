// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels are not compiled while the program runs: there is no NVRTC.
#pragma once
