// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Between compiled kernels and the engine in libmusart.
#pragma once

#include <driver_types.h>
#include <stddef.h>

// One OS thread runs one block, so what a GPU thread sees of itself is that OS thread's. Found without a call: a library
// that is loaded late may use a little of the memory that the loader keeps for this.
#define MUSA_SIMT_LOCAL extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))

MUSA_SIMT_LOCAL uint3 threadIdx;
MUSA_SIMT_LOCAL uint3 blockIdx;
MUSA_SIMT_LOCAL uint3 blockDim;
MUSA_SIMT_LOCAL uint3 gridDim;
MUSA_SIMT_LOCAL int warpSize;

namespace musa_simt {

// The line of a kernel that a message names.
struct Site {
  const char* file;
  unsigned line;
  const char* what; // __syncthreads, __shfl_down_sync, a variable's name
};

// While this is set, no thread of the block waits and they run in order: the next is found without the engine.
MUSA_SIMT_LOCAL bool in_order;

// A kernel with its arguments: runs threads, from the one that threadIdx names, until next_thread() says that none is left.
using Body = void (*)(void** arguments);

struct KernelInfo {
  const char* signature; // "... [with auto kernel = axpy<float>; ...]"
  const void* symbol;
  Body body;
  const size_t* argument_bytes;
  size_t arguments;
  int max_threads; // of __launch_bounds__; 0: none
  const size_t* argument_alignments;
};

extern "C" {

MUSA_PUBLIC bool musa_simt_next_thread();
MUSA_PUBLIC uint3* musa_simt_index();

enum class Count : int { None, Sum, And, Or };
MUSA_PUBLIC int musa_simt_barrier(const Site* site, Count count, int predicate);

// What a lane gets of the lanes of its warp: `get` after all that `mask` names have given.
enum class Exchange : int { Sync, Index, Up, Down, Xor, Ballot, Any, All, MatchAny, MatchAll };
MUSA_PUBLIC void musa_simt_exchange(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width);
// The same where a mask names lanes of the caller's own 32 alone, also in a wider warp.
MUSA_PUBLIC void musa_simt_exchange_within(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width);
// The same among the lanes that are active: those of the warp that come to this site while all others of the block wait
// or have ended.
MUSA_PUBLIC void musa_simt_converge(
    const Site* site, Exchange kind, const void* give, void* get, size_t bytes, int operand, int width);
// The same for a reduction: `merge` adds the second to the first.
MUSA_PUBLIC void musa_simt_reduce(
    const Site* site, unsigned mask, void* value, size_t bytes, void (*merge)(void* into, const void* value));
MUSA_PUBLIC unsigned musa_simt_lane();
// Ends the calling thread, as if its kernel returned.
[[noreturn]] MUSA_PUBLIC void musa_simt_exit();

// Shared memory of the block: a variable's, by its address as a key, and what the launch asked for.
MUSA_PUBLIC void* musa_simt_shared(const Site* site, const void* key, size_t bytes, size_t alignment);
MUSA_PUBLIC void* musa_simt_dynamic_shared();

// All blocks of a cooperative launch.
MUSA_PUBLIC void musa_simt_grid_barrier(const Site* site);

MUSA_PUBLIC void musa_simt_register(const KernelInfo* kernel);
MUSA_PUBLIC void musa_simt_unregister(const void* symbol);
MUSA_PUBLIC bool musa_simt_is_registered(const void* symbol);
// Whether the caller is a thread of a kernel.
MUSA_PUBLIC bool musa_simt_in_kernel();
// Ends the kernel: the device is lost with musaErrorAssert or musaErrorLaunchFailure. Outside of one, the process.
[[noreturn]] MUSA_PUBLIC void musa_simt_fail(const char* message, const char* file, unsigned line, int assertion);

} // extern "C"

} // namespace musa_simt

#if defined(__SANITIZE_THREAD__) && defined(__MUSACC__)
// Each GPU thread is a thread to the sanitizer, and its index must lie where no other looks.
#define threadIdx (*::musa_simt::musa_simt_index())
#endif
