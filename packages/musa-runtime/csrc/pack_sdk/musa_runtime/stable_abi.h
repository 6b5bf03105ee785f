/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) torch_musa contributors */
#pragma once

#include <stdint.h>

/* The C interface by which a pack declares kernels over torch's stable ABI (torch/csrc/stable). Such a library uses no C++
 * type of torch or of the runtime, so one binary serves every minor of torch. C++ packs include musa_runtime/stable_pack.h,
 * which fills in these structs from the types of the kernels. */

#ifdef __cplusplus
extern "C" {
#endif

#define MUSA_STABLE_API __attribute__((visibility("default")))

/* The number of this interface. The runtime compares it before it runs any code of the declaration. */
#define MUSA_STABLE_ABI 1

/* A boxed kernel as TORCH_BOX makes it. `stack` has room for the larger number of values. The function takes ownership of
 * the inputs and writes the outputs to the beginning of the stack. */
typedef void (*MusaStableFunction)(uint64_t* stack, uint64_t num_inputs, uint64_t num_outputs);

typedef struct MusaStableKernel {
  const char* op; /* "aten::relu", "aten::add.Tensor" */
  /* The types that the kernel converts to and from, as a schema without a name: "(Tensor a, float b) -> Tensor". The names
   * of the arguments are not compared. */
  const char* signature;
  MusaStableFunction kernel;
  /* The kernel's inputs, and one bool as output: whether the kernel serves them. NULL: it serves every call. */
  MusaStableFunction served;
} MusaStableKernel;

typedef struct MusaStableDeclaration MusaStableDeclaration;

/* The layout of the first field never changes; the others belong to the number in it. */
typedef struct MusaStablePack {
  uint32_t abi; /* MUSA_STABLE_ABI */
  const char* provider; /* the short name, as users write it in TORCH_MUSA_OPS */
  uint64_t torch_built; /* TORCH_ABI_VERSION of the headers that the pack was compiled with */
  uint64_t torch_needed; /* TORCH_TARGET_VERSION: the oldest torch that has all functions which the pack calls */
  void (*declare)(MusaStableDeclaration* declaration); /* calls musa_stable_impl for each kernel */
} MusaStablePack;

/* Adds all kernels of a pack to the op registry and returns 1, or none, records why, and returns 0. Never throws. */
MUSA_STABLE_API int musa_stable_pack(const MusaStablePack* pack);

/* Adds a kernel to the declaration that runs. The strings are copied. Never throws. */
MUSA_STABLE_API void musa_stable_impl(MusaStableDeclaration* declaration, const MusaStableKernel* kernel);

/* The functions below return NULL, or on failure a message, which stays valid until the thread's next call of one of them.
 * If the kernel then raises a std::runtime_error with that message, the caller of the operator gets the original error, for
 * example torch.OutOfMemoryError. */

/* Writes the current stream (a musaStream_t) of a device; -1 for the current device. */
MUSA_STABLE_API const char* musa_stable_current_stream(int32_t device_index, void** stream);

/* Writes an AtenTensorHandle, which the caller owns, of an uninitialized contiguous tensor with the given sizes, and with the
 * dtype and the device of `like`. */
struct AtenTensorOpaque;
MUSA_STABLE_API const char* musa_stable_new_empty(
    struct AtenTensorOpaque* like, int64_t dimensions, const int64_t* sizes, struct AtenTensorOpaque** made);

#ifdef __cplusplus
} /* extern "C" */
#endif
