// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A call on a GPU. torch's operators enqueue kernels on the handle's stream themselves, so a task is a function that
// is called immediately. Include support/call.h instead of this header.
#pragma once

#include <cstddef>
#include <utility>

#include "support/call.h"
#include "support/hooks.h"

namespace musa_emulator {

// The name of an entry point, for call counts and injected faults.
template <size_t N>
struct ApiName {
  char text[N];
  constexpr ApiName(const char (&literal)[N]) {
    for (size_t i = 0; i < N; ++i) {
      text[i] = literal[i];
    }
  }
};

namespace dnn {

class Call final : public Checks {
 public:
  Call(const char* name, const Handle& handle, std::initializer_list<const Tensor*> tensors);

  template <class Task>
  Status enqueue(Task&& task) {
    return run([](void* own) { (*static_cast<std::remove_reference_t<Task>*>(own))(); }, &task);
  }
  template <class Task>
  Status enqueue_brief(Task&& task) {
    return enqueue(std::forward<Task>(task));
  }
  template <class Task, class Own>
  Status enqueue_brief(Task&& borrowing, Own&& /*own*/) {
    return enqueue(std::forward<Task>(borrowing));
  }
  // A task that reads results on the host synchronizes itself.
  template <class Task>
  Status run_and_wait(Task&& task) {
    return enqueue(std::forward<Task>(task));
  }
  // Takes the caller's workspace, as the interface requires, but does not use it: torch's functions take scratch
  // memory from torch's allocator.
  template <class Task>
  Status enqueue(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, Task&& task, bool optional = false) {
    const musa::dnn::MemoryHandler memory = take(maintainer, bytes, optional);
    return status_ != Status::SUCCESS ? status_ : enqueue(std::forward<Task>(task));
  }
  template <class Task>
  Status run_and_wait(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, Task&& task) {
    return enqueue(maintainer, bytes, std::forward<Task>(task));
  }

 private:
  // Runs the task with the handle's device and stream as torch.cuda's current ones, and without torch's modes.
  Status run(void (*task)(void*), void* own);
};

template <ApiName Name>
struct EntryPoint {
  static inline constexpr ApiName name = Name;
  static inline musa_cuda::Entry entry{name.text, musa_cuda::kCall};
  static inline musa_cuda::Entry* const list[] = {&entry};
  static inline const musa_cuda::Registration registration{list};
};

template <ApiName Name, class Body>
Status call(const Handle& handle, std::initializer_list<const Tensor*> tensors, Body&& body) {
  (void)&EntryPoint<Name>::registration; // instantiates the registration
  Status status = Status::SUCCESS;
  const auto error = musa_cuda::call<musaError_t, musa_cuda::Errors::Stay>(EntryPoint<Name>::entry, [&] {
    Call call(EntryPoint<Name>::name.text, handle, tensors);
    if (logs_calls()) {
      call.log();
    }
    status = call.accept_operands() ? body(call) : call.status();
    return musaSuccess; // a refused call is not a runtime error
  });
  return error == musaSuccess ? status : status_of(error);
}

} // namespace dnn
} // namespace musa_emulator
