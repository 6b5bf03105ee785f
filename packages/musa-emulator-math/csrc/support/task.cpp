// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/task.h"

#include <ATen/Parallel.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "musa_emulator.h"
#include "musa_runtime.h"

namespace musa_emulator::math {
namespace {

// All dispatch keys except the CPU kernels', to exclude modes of the thread that runs the task.
const c10::DispatchKeySet above_backends = c10::DispatchKeySet(c10::DispatchKeySet::FULL)
                                               .remove(c10::DispatchKey::Dense)
                                               .remove(c10::DispatchKey::BackendSelect);

struct Payload {
  const char* name;
  std::function<void()> task;
  int threads = at::get_num_threads(); // of the caller: it determines how sums are split, and so their last bits
};

musaError_t run(void* pointer) {
  const Payload& payload = *static_cast<Payload*>(pointer);
  const int before = at::get_num_threads();
  if (before != payload.threads) {
    at::set_num_threads(payload.threads);
  }
  musaError_t status = musaSuccess;
  try {
    const c10::impl::ExcludeDispatchKeyGuard exclude(above_backends);
    const at::NoGradGuard no_grad;
    payload.task();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "musa-emulator: %s failed: %s\n", payload.name, error.what());
    status = musaErrorLaunchFailure;
  }
  if (before != payload.threads) {
    at::set_num_threads(before);
  }
  return status;
}

} // namespace

musaError_t enqueue(musaStream_t stream, const char* name, std::function<void()> task) {
  auto* payload = new Payload{name, std::move(task)};
  return musaEmulatorLaunchTask(
      stream, name, run, payload, [](void* pointer) { delete static_cast<Payload*>(pointer); });
}

musaError_t enqueue_and_wait(musaStream_t stream, const char* name, std::function<void()> task) {
  const musaError_t status = enqueue(stream, name, std::move(task));
  return status == musaSuccess ? musaStreamSynchronize(stream) : status;
}

} // namespace musa_emulator::math
