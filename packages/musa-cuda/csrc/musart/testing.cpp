// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The emulator's C API for tests, so that tests of faults and leaks run on a GPU. What puts work of the host on a stream
// (musaEmulatorLaunchTask, musaEmulatorRegisterKernel) has no equal; the harness finds an emulator by musaEmulatorFailCall.
#include <cuda_runtime_api.h>
#include <musa_emulator.h>

#include "support/hooks.h"

using musa_cuda::Kind;

extern "C" {
int musa_cuda_fail(const char* name, unsigned long long n, int code);
int musa_cuda_fault_pending();
void musa_cuda_clear_faults(bool lost_devices_too);
unsigned long long musa_cuda_calls(const char* name);
size_t musa_cuda_live(Kind kind);
size_t musa_cuda_busy_streams();
size_t musa_cuda_memory(int device, bool bytes);

musaError_t musaEmulatorFailNth(const char* api, unsigned long long n, musaError_t code) {
  return api == nullptr ? musaErrorInvalidValue : static_cast<musaError_t>(musa_cuda_fail(api, n, code));
}
musaError_t musaEmulatorFailNext(const char* api, musaError_t code) { return musaEmulatorFailNth(api, 1, code); }
musaError_t musaEmulatorFailCall(unsigned long long n, musaError_t code) {
  return static_cast<musaError_t>(musa_cuda_fail(nullptr, n, code));
}
int musaEmulatorFaultPending(void) { return musa_cuda_fault_pending(); }
void musaEmulatorClearFaults(void) { musa_cuda_clear_faults(false); }
unsigned long long musaEmulatorCallCount(void) { return musa_cuda_calls(nullptr); }
unsigned long long musaEmulatorApiCallCount(const char* api) { return api != nullptr ? musa_cuda_calls(api) : 0; }
size_t musaEmulatorLiveAllocations(int device) { return device < 0 ? 0 : musa_cuda_memory(device, false); }
size_t musaEmulatorLiveBytes(int device) { return device < 0 ? 0 : musa_cuda_memory(device, true); }
size_t musaEmulatorLiveHostAllocations(void) { return musa_cuda_memory(-1, false); }
size_t musaEmulatorLiveHostBytes(void) { return musa_cuda_memory(-1, true); }
size_t musaEmulatorLiveStreams(void) { return musa_cuda_live(Kind::Streams); }
size_t musaEmulatorLiveEvents(void) { return musa_cuda_live(Kind::Events); }
size_t musaEmulatorLiveGraphs(void) { return musa_cuda_live(Kind::Graphs); }
size_t musaEmulatorPendingOperations(void) { return musa_cuda_busy_streams(); }
const char* musaEmulatorMode(void) { return "async"; }
const char* musaEmulatorConfigurationError(void) { return nullptr; }
// The templates for variables of kernels call it; nvcc's code makes them known to CUDA itself.
musaError_t musaEmulatorRegisterSymbol(const void*, size_t) { return musaSuccess; }
}
