// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Generators within kernels are in murand_kernel.h; those that the host calls are not emulated.
#pragma once
