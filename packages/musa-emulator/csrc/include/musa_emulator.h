// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// What only the emulator has: fault injection and accounting for tests, and the entry points through which the
// emulated libraries and the kernel compiler put work on a stream. Product code must not include this header.
#ifndef MUSA_EMULATOR_H
#define MUSA_EMULATOR_H

#include "driver_types.h"

MUSA_EXTERN_C_BEGIN

// ---- fault injection ------------------------------------------------------------------------------------------
//
// A failing call does nothing and returns `code`, except that a call that releases a resource (musaFree,
// musaStreamDestroy, ...) releases it and then returns `code`, as a driver that reports an earlier failure does.
// A `code` that loses a real device (musaErrorLaunchFailure, musaErrorIllegalAddress, ...) loses the emulated one:
// later calls return it until musaDeviceReset() or musaEmulatorReset().

// The next call of `api` fails. musaErrorInvalidValue for a name that is not an entry point.
MUSA_PUBLIC musaError_t musaEmulatorFailNext(const char* api, musaError_t code);
// The n-th call of `api` from now fails; n counts from 1.
MUSA_PUBLIC musaError_t musaEmulatorFailNth(const char* api, unsigned long long n, musaError_t code);
// The n-th call from now of any entry point fails. Error queries (musaGetLastError, ...) neither fail nor count.
MUSA_PUBLIC musaError_t musaEmulatorFailCall(unsigned long long n, musaError_t code);
// Whether a fault set by musaEmulatorFailCall has not been reached yet.
MUSA_PUBLIC int musaEmulatorFaultPending(void);
MUSA_PUBLIC void musaEmulatorClearFaults(void);

// ---- accounting -----------------------------------------------------------------------------------------------

// Calls of all entry points since the process began, and of one; 0 for an unknown name.
MUSA_PUBLIC unsigned long long musaEmulatorCallCount(void);
MUSA_PUBLIC unsigned long long musaEmulatorApiCallCount(const char* api);
// Device memory that is allocated now, in allocations and in bytes as charged against the device.
MUSA_PUBLIC size_t musaEmulatorLiveAllocations(int device);
MUSA_PUBLIC size_t musaEmulatorLiveBytes(int device);
// Page-locked and managed host memory.
MUSA_PUBLIC size_t musaEmulatorLiveHostAllocations(void);
MUSA_PUBLIC size_t musaEmulatorLiveHostBytes(void);
// Created by the caller and not yet destroyed.
MUSA_PUBLIC size_t musaEmulatorLiveStreams(void);
MUSA_PUBLIC size_t musaEmulatorLiveEvents(void);
MUSA_PUBLIC size_t musaEmulatorLiveGraphs(void);
// Operations submitted to any stream and not finished.
MUSA_PUBLIC size_t musaEmulatorPendingOperations(void);

// ---- configuration --------------------------------------------------------------------------------------------

// "inline", "async" or "lazy".
MUSA_PUBLIC const char* musaEmulatorMode(void);
// Why the environment's settings were refused, or NULL.
MUSA_PUBLIC const char* musaEmulatorConfigurationError(void);
// Waits for all work, releases every resource of every device, clears faults and lost devices, and reads the
// environment again. Handles and device pointers from before are invalid. No other thread may be using the runtime.
MUSA_PUBLIC musaError_t musaEmulatorReset(void);

// ---- work on a stream -----------------------------------------------------------------------------------------

// Runs on the thread that drives the stream, may touch device memory, must not wait for streams or events.
// A result other than musaSuccess loses the device.
typedef musaError_t (*musaEmulatorTaskFn)(void* payload);

// Enqueues `fn(payload)` as a kernel: it is ordered, captured into graphs and replayed like one. `destroy`, which
// may be NULL, runs once when neither the stream nor a graph needs the payload any more, also when the call fails.
MUSA_PUBLIC musaError_t musaEmulatorLaunchTask(
    musaStream_t stream, const char* name, musaEmulatorTaskFn fn, void* payload, void (*destroy)(void*));

// Runs one launch: all blocks of the grid. `arguments[i]` points to a copy of the i-th argument.
typedef musaError_t (*musaEmulatorKernelEntry)(void** arguments, dim3 grid, dim3 block, size_t sharedBytes);

struct musaEmulatorKernelInfo {
  const char* name;
  musaEmulatorKernelEntry entry;
  const size_t* argumentSizes;  // bytes, `argumentCount` of them
  size_t argumentCount;
  int maxThreadsPerBlock;  // 0: the device's limit
  size_t staticSharedBytes;
};

// Makes `symbol` launchable through musaLaunchKernel. `info` is copied.
MUSA_PUBLIC musaError_t musaEmulatorRegisterKernel(const void* symbol, const struct musaEmulatorKernelInfo* info);
MUSA_PUBLIC musaError_t musaEmulatorUnregisterKernel(const void* symbol);

// Makes a variable of kernels, of this size, known to musaMemcpyToSymbol and its relatives. The templates in musa_runtime.h
// call it.
MUSA_PUBLIC musaError_t musaEmulatorRegisterSymbol(const void* symbol, size_t bytes);

MUSA_EXTERN_C_END

#endif
