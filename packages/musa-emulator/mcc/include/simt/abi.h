// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The interface between compiled kernels and the engine in libmusart.
#pragma once

#include <driver_types.h>
#include <stddef.h>

// One OS thread runs one block, so the built-in variables of a GPU thread are thread-local. They are accessed without
// a call: a library loaded at run time may use some of the static TLS space.
#define MUSA_SIMT_LOCAL extern __thread __attribute__((tls_model("initial-exec"), visibility("default")))

MUSA_SIMT_LOCAL uint3 threadIdx;
MUSA_SIMT_LOCAL uint3 blockIdx;
MUSA_SIMT_LOCAL uint3 blockDim;
MUSA_SIMT_LOCAL uint3 gridDim;
MUSA_SIMT_LOCAL int warpSize;

namespace musa_simt {

// A source location for messages.
struct Site {
  const char* file;
  unsigned line;
  const char* what; // __syncthreads, __shfl_down_sync, a variable's name
};

// True while no thread of the block has waited and threads run in order: the next thread is then found without the
// engine.
MUSA_SIMT_LOCAL bool in_order;

// A kernel with its arguments: runs threads, starting with threadIdx, until next_thread() returns false.
using Body = void (*)(void** arguments);

struct KernelInfo {
  const char* signature; // "... [with auto kernel = axpy<float>; ...]"
  const void* symbol;
  Body body;
  const size_t* argument_bytes;
  size_t arguments;
  int max_threads; // from __launch_bounds__; 0: none
  const size_t* argument_alignments;
};

extern "C" {

MUSA_PUBLIC bool musa_simt_next_thread();
MUSA_PUBLIC uint3* musa_simt_index();

enum class Count : int { None, Sum, And, Or };
MUSA_PUBLIC int musa_simt_barrier(const Site* site, Count count, int predicate);

// An operation between the lanes of a warp: `get` is written after all lanes in `mask` have arrived.
enum class Exchange : int { Sync, Index, Up, Down, Xor, Ballot, Any, All, MatchAny, MatchAll };
MUSA_PUBLIC void musa_simt_exchange(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width);
// As musa_simt_exchange, but the mask selects lanes only in the caller's group of 32, even in a wider warp.
MUSA_PUBLIC void musa_simt_exchange_within(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width);
// As musa_simt_exchange, among the active lanes: those of the warp that reach this site while all other threads of
// the block wait or have ended.
MUSA_PUBLIC void musa_simt_converge(
    const Site* site, Exchange kind, const void* give, void* get, size_t bytes, int operand, int width);
// A reduction: `merge` combines the second value into the first.
MUSA_PUBLIC void musa_simt_reduce(
    const Site* site, unsigned mask, void* value, size_t bytes, void (*merge)(void* into, const void* value));
MUSA_PUBLIC unsigned musa_simt_lane();
// Ends the calling thread, as if the kernel returned.
[[noreturn]] MUSA_PUBLIC void musa_simt_exit();

// Shared memory of the block: a variable, with the address of `key` as its id, and dynamic shared memory.
MUSA_PUBLIC void* musa_simt_shared(const Site* site, const void* key, size_t bytes, size_t alignment);
MUSA_PUBLIC void* musa_simt_dynamic_shared();

// A barrier for all blocks of a cooperative launch.
MUSA_PUBLIC void musa_simt_grid_barrier(const Site* site);

MUSA_PUBLIC void musa_simt_register(const KernelInfo* kernel);
MUSA_PUBLIC void musa_simt_unregister(const void* symbol);
MUSA_PUBLIC bool musa_simt_is_registered(const void* symbol);
// Whether a kernel's thread is the caller.
MUSA_PUBLIC bool musa_simt_in_kernel();
// Ends the kernel with the sticky error musaErrorAssert or musaErrorLaunchFailure. Outside a kernel, terminates the
// process.
[[noreturn]] MUSA_PUBLIC void musa_simt_fail(const char* message, const char* file, unsigned line, int assertion);

} // extern "C"

} // namespace musa_simt

#if defined(__SANITIZE_THREAD__) && defined(__MUSACC__)
// The sanitizer treats each GPU thread as a thread, so each needs its own index variable.
#define threadIdx (*::musa_simt::musa_simt_index())
#endif
