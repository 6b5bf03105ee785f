// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Headers of torch that are not ported ask for it, and a CPU wheel has none.
#pragma once

#define AT_CUDNN_ENABLED() false
#define AT_CUSPARSELT_ENABLED() false
#define AT_ROCM_ENABLED() false
#define AT_MAGMA_ENABLED() false
#define NVCC_FLAGS_EXTRA ""
