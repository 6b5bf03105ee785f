// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// Included by ahead-of-time compiled models before any other header of torch. Inductor derives this path from the
// device's name, and precompiles the header.
//
// A model contains torch's model container, whose device code is selected by macros that cover only torch's own
// devices. This header selects the branch for CUDA, and defines CUDA's names as functions of libmusa_aoti.so until
// the end of this file. That branch keeps constants in device memory, marks a model instance as free with an event,
// and supports constants on the CPU and constants folded at run time. The container is created for device
// "cuda:<index>", whose device type is musa's.
#include <musa_compile/host_kernel.h>
// Without USE_CUDA this header includes no CUDA header and defines the stream type as void*.
#include <torch/csrc/inductor/aoti_runtime/device_utils.h>

#ifdef USE_CUDA
#error "A model for musa is compiled without USE_CUDA."
#endif

namespace musa_compile {

// The device of the model's constants, set in the model's constructor. Each loaded package is a separate shared
// library.
inline int32_t device_of_constants = 0;

inline AOTITorchError current_device(int32_t* device) {
  const AOTITorchError error = aoti_torch_musa_current_device(device);
  device_of_constants = *device;
  return error;
}

inline AOTITorchError set_device(int32_t device) {
  device_of_constants = device;
  return aoti_torch_musa_set_device(device);
}

inline AOTITorchError allocate_constants(void** pointer, size_t bytes) {
  return aoti_torch_musa_malloc(pointer, bytes, device_of_constants);
}

// Returns kNotReady while the event is pending.
constexpr AOTITorchError kNotReady = -1;
inline AOTITorchError query_event(void* event) {
  int32_t done = 0;
  const AOTITorchError error = aoti_torch_musa_event_query(event, &done);
  return error != AOTI_TORCH_SUCCESS || done != 0 ? error : kNotReady;
}

} // namespace musa_compile

#define USE_CUDA 1
#define AOTI_RUNTIME_CUDA_CHECK(EXPR) AOTI_TORCH_ERROR_CODE_CHECK(EXPR)
#define aoti_torch_device_type_cuda aoti_torch_device_type_privateuse1
#define cudaStream_t void*
#define cudaEvent_t void*
#define cudaMemcpyKind int
#define cudaMemcpyHostToDevice 0
#define cudaMemcpyDefault 0
#define cudaSuccess AOTI_TORCH_SUCCESS
#define cudaErrorNotReady ::musa_compile::kNotReady
#define cudaGetLastError() AOTI_TORCH_FAILURE
#define cudaGetErrorString(error) "the message of the musa runtime is above"
#define cudaGetDevice(device) ::musa_compile::current_device(device)
#define cudaSetDevice(device) ::musa_compile::set_device(device)
#define cudaMalloc(pointer, bytes) ::musa_compile::allocate_constants(pointer, bytes)
#define cudaFree(pointer) aoti_torch_musa_free(pointer)
#define cudaMemcpy(target, source, bytes, kind) (static_cast<void>(kind), aoti_torch_musa_memcpy(target, source, bytes))
#define cudaEventCreate(event) aoti_torch_musa_event_create(event)
#define cudaEventDestroy(event) aoti_torch_musa_event_destroy(event)
#define cudaEventRecord(event, stream) aoti_torch_musa_event_record(event, stream)
#define cudaEventQuery(event) ::musa_compile::query_event(event)
#define cudaEventSynchronize(event) aoti_torch_musa_event_synchronize(event)
// Kernels are linked into the model, so no module is ever loaded.
#define CUmodule void*
#define CUDA_SUCCESS 0
#define cuModuleUnload(module) (static_cast<void>(module), CUDA_SUCCESS)
#define cuGetErrorString(error, text) static_cast<void>(error)

// Includes aoti_runtime/model_base.h and model.h.
#include <torch/csrc/inductor/aoti_runtime/model_container.h>

#undef USE_CUDA
#undef AOTI_RUNTIME_CUDA_CHECK
#undef aoti_torch_device_type_cuda
#undef cudaStream_t
#undef cudaEvent_t
#undef cudaMemcpyKind
#undef cudaMemcpyHostToDevice
#undef cudaMemcpyDefault
#undef cudaSuccess
#undef cudaErrorNotReady
#undef cudaGetLastError
#undef cudaGetErrorString
#undef cudaGetDevice
#undef cudaSetDevice
#undef cudaMalloc
#undef cudaFree
#undef cudaMemcpy
#undef cudaEventCreate
#undef cudaEventDestroy
#undef cudaEventRecord
#undef cudaEventQuery
#undef cudaEventSynchronize
#undef CUmodule
#undef CUDA_SUCCESS
#undef cuModuleUnload
#undef cuGetErrorString

#include <torch/csrc/inductor/aoti_include/common.h>
// For constants and operators on the CPU. Must follow torch's container, because torch's CPU header would include
// that.
#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>
