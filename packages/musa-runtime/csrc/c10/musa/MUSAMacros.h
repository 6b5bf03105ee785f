// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Everything is compiled with hidden visibility; libmusa_runtime.so exports only symbols with one of these macros. Their
// names are those that text-porting C10_CUDA_API, TORCH_CUDA_CPP_API and TORCH_CUDA_CU_API yields.
#define C10_MUSA_API __attribute__((visibility("default")))
#define TORCH_MUSA_CPP_API C10_MUSA_API
#define TORCH_MUSA_CU_API C10_MUSA_API

// CUDA sources name guards and streams in at::cuda as well as in c10::cuda.
namespace c10::musa {}
namespace at::musa {
using namespace c10::musa;
}

// Larger than any board; sizes the per-device tables that must exist before the device count is known.
#define C10_COMPILE_TIME_MAX_MUSA_DEVICES 64
