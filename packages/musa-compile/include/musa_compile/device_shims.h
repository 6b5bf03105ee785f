// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

// C functions of libmusa_aoti.so for C++ wrappers and ahead-of-time compiled models, in addition to operator_shims.h.
// They are the same for every supported torch version; models compiled with an older version of this header keep
// working.

extern "C" {

// Waits for the current stream of the device, so that a kernel on the calling thread may access device memory.
// `start` receives the kernel's start time if kernels are traced, otherwise -1. Fails during graph capture.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_begin_host_kernel(int32_t device, int64_t* start);

// Reports the kernel to the profiler. Call it only if `start` is not -1.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_end_host_kernel(int64_t start, const char* name, int32_t device);

// Device memory for constants. aoti_torch_musa_free synchronizes with the device first.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_malloc(void** pointer, size_t bytes, int32_t device);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_free(void* pointer);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_memcpy(void* target, const void* source, size_t bytes);

AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_current_device(int32_t* device);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_set_device(int32_t device);

// Events. `stream` may be nullptr for the current stream. `done` receives 1 or 0.
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_event_create(void** event);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_event_destroy(void* event);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_event_record(void* event, void* stream);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_event_query(void* event, int32_t* done);
AOTI_TORCH_EXPORT AOTITorchError aoti_torch_musa_event_synchronize(void* event);

} // extern "C"
