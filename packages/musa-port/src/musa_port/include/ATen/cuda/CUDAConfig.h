// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Included by torch's headers that are not ported; CPU wheels do not contain it.
#pragma once

#define AT_CUDNN_ENABLED() false
#define AT_CUSPARSELT_ENABLED() false
#define AT_ROCM_ENABLED() false
#define AT_MAGMA_ENABLED() false
#define NVCC_FLAGS_EXTRA ""
