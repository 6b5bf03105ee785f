// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Functions that only the emulator has: fault injection and counters for tests, and entry points with which the
// emulated libraries and the kernel compiler enqueue work. Product code must not include this header.
#ifndef MUSA_EMULATOR_H
#define MUSA_EMULATOR_H

#include "driver_types.h"

MUSA_EXTERN_C_BEGIN

// ---- fault injection ------------------------------------------------------------------------------------------
//
// A failing call does nothing and returns `code`, except that a call that releases a resource (musaFree,
// musaStreamDestroy, ...) releases it and then returns `code`, like a driver that reports an earlier failure. If
// `code` is a sticky error on a real device (musaErrorLaunchFailure, musaErrorIllegalAddress, ...), the emulated
// device is lost: later calls return the code until musaDeviceReset() or musaEmulatorReset().

// Makes the next call of `api` fail. Returns musaErrorInvalidValue if `api` is not an entry point.
MUSA_PUBLIC musaError_t musaEmulatorFailNext(const char* api, musaError_t code);
// Makes the n-th call of `api` from now fail; n counts from 1.
MUSA_PUBLIC musaError_t musaEmulatorFailNth(const char* api, unsigned long long n, musaError_t code);
// Makes the n-th call from now of any entry point fail. Error queries (musaGetLastError, ...) neither fail nor count.
MUSA_PUBLIC musaError_t musaEmulatorFailCall(unsigned long long n, musaError_t code);
// Whether a fault set by musaEmulatorFailCall is still pending.
MUSA_PUBLIC int musaEmulatorFaultPending(void);
MUSA_PUBLIC void musaEmulatorClearFaults(void);

// ---- counters ------------------------------------------------------------------------------------------------

// Calls of all entry points since the process started, and calls of one; 0 for an unknown name.
MUSA_PUBLIC unsigned long long musaEmulatorCallCount(void);
MUSA_PUBLIC unsigned long long musaEmulatorApiCallCount(const char* api);
// Device memory that is currently allocated, as a number of allocations and in bytes charged to the device.
MUSA_PUBLIC size_t musaEmulatorLiveAllocations(int device);
MUSA_PUBLIC size_t musaEmulatorLiveBytes(int device);
// Page-locked and managed host memory.
MUSA_PUBLIC size_t musaEmulatorLiveHostAllocations(void);
MUSA_PUBLIC size_t musaEmulatorLiveHostBytes(void);
// Created by the caller and not destroyed yet.
MUSA_PUBLIC size_t musaEmulatorLiveStreams(void);
MUSA_PUBLIC size_t musaEmulatorLiveEvents(void);
MUSA_PUBLIC size_t musaEmulatorLiveGraphs(void);
// Operations submitted to any stream and not finished yet.
MUSA_PUBLIC size_t musaEmulatorPendingOperations(void);

// ---- capabilities ----------------------------------------------------------------------------------------------

// The answer of this SDK to a question that the devices' properties do not answer: 1 yes, 0 no, -1 unknown question.
// torch_musa asks any SDK that exports the function (docs/design/capabilities.md).
// "computes_on_host": the devices compute on the host's processors.
// "lacks_float64": the devices do not compute with float64 (MUSA_EMULATOR_FLOAT64=0).
MUSA_PUBLIC int torch_musa_capability(const char* name);

// ---- configuration --------------------------------------------------------------------------------------------

// "inline", "async" or "lazy".
MUSA_PUBLIC const char* musaEmulatorMode(void);
// The error in the environment's settings, or NULL.
MUSA_PUBLIC const char* musaEmulatorConfigurationError(void);
// Waits for all work, frees every resource of every device, clears faults and lost devices, and reads the environment
// again. Existing handles and device pointers become invalid. No other thread may use the runtime during the call.
MUSA_PUBLIC musaError_t musaEmulatorReset(void);

// ---- enqueueing work --------------------------------------------------------------------------------------------

// Runs on the thread that drives the stream. It may access device memory, and must not wait for streams or events.
// Any result other than musaSuccess is a sticky error of the device.
typedef musaError_t (*musaEmulatorTaskFn)(void* payload);

// Enqueues `fn(payload)` as a kernel: it is ordered, captured into graphs and replayed like one. `destroy`, which may
// be NULL, is called once when neither the stream nor a graph needs the payload any more, also if the call fails.
MUSA_PUBLIC musaError_t musaEmulatorLaunchTask(
    musaStream_t stream, const char* name, musaEmulatorTaskFn fn, void* payload, void (*destroy)(void*));

// Runs all blocks of one launch. `arguments[i]` points to a copy of the i-th argument.
typedef musaError_t (*musaEmulatorKernelEntry)(void** arguments, dim3 grid, dim3 block, size_t sharedBytes);

struct musaEmulatorKernelInfo {
  const char* name;
  musaEmulatorKernelEntry entry;
  const size_t* argumentSizes;  // bytes, `argumentCount` of them
  size_t argumentCount;
  int maxThreadsPerBlock;  // 0: the device's limit
  size_t staticSharedBytes;
};

// Makes `symbol` launchable with musaLaunchKernel. `info` is copied.
MUSA_PUBLIC musaError_t musaEmulatorRegisterKernel(const void* symbol, const struct musaEmulatorKernelInfo* info);
MUSA_PUBLIC musaError_t musaEmulatorUnregisterKernel(const void* symbol);

// Registers a device variable of this size for musaMemcpyToSymbol and similar functions. Called by the templates in
// musa_runtime.h.
MUSA_PUBLIC musaError_t musaEmulatorRegisterSymbol(const void* symbol, size_t bytes);

MUSA_EXTERN_C_END

#endif
