// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Runs a call as a task on the emulator's stream, and injects faults. Included by support/call.h only.
#pragma once

#include <ATen/Parallel.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/api.h"
#include "engine/operation.h"
#include "engine/stream.h"
#include "support/call.h"

namespace musa_emulator::dnn {

// A workspace that the caller passes for the duration of a task. It is filled with a pattern before the task and
// checked afterwards: if it was overwritten, its maintainer freed it before the stream had finished the task. Enabled
// by MUDNN_EMULATOR_CHECK_WORKSPACE=1 or, if that is not set, by strict device memory, because it takes time.
bool checks_workspace();
struct WorkArea {
  unsigned char* data;
  size_t bytes;
  void poison() const;
  void check() const; // throws
};

class Call final : public Checks {
 public:
  using Checks::Checks;

  // Enqueues task() on the handle's stream. It may run later and on another thread, so it must own copies of its
  // operands.
  template <class Task>
  Status enqueue(Task&& task) {
    Stream* const stream = stream_of_handle();
    if (stream == nullptr) {
      return status_;
    }
    TaskOf<std::decay_t<Task>&> launch(name_, kCallersThread, task); // in place; copied if the task has to wait
    return launch_now(*stream, launch)
        ? Status::SUCCESS
        : submit(
              *stream,
              std::make_shared<TaskOf<std::decay_t<Task>>>(name_, at::get_num_threads(), std::forward<Task>(task)));
  }
  // The same for a task that takes about a microsecond, throws no exception, and calls neither the runtime nor torch's
  // dispatcher: it needs none of torch's thread-local modes, and may run with the engine's lock held.
  template <class Task>
  Status enqueue_brief(Task&& task) {
    Stream* const stream = stream_of_handle();
    if (stream == nullptr) {
      return status_;
    }
    return run_brief_now(*stream, task) ? Status::SUCCESS : submit_brief(*stream, std::forward<Task>(task));
  }
  // The same if a task that owns its operands is expensive to create: `borrowing` runs immediately or not at all; in
  // the latter case, the task that own() returns is enqueued.
  template <class Task, class Own>
  Status enqueue_brief(Task&& borrowing, Own&& own) {
    Stream* const stream = stream_of_handle();
    if (stream == nullptr) {
      return status_;
    }
    return run_brief_now(*stream, borrowing) ? Status::SUCCESS : submit_brief(*stream, own());
  }
  // The same, and waits for the stream.
  template <class Task>
  Status run_and_wait(Task&& task) {
    const Status status = enqueue(std::forward<Task>(task));
    return status == Status::SUCCESS ? wait() : status;
  }

  // The same with a workspace of `bytes` from the caller. If `optional`, the maintainer may be empty.
  template <class Task>
  Status enqueue(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, Task&& task, bool optional = false) {
    const musa::dnn::MemoryHandler memory = take(maintainer, bytes, optional);
    if (status_ != Status::SUCCESS) {
      return status_;
    }
    if (memory == nullptr || !checks_workspace()) {
      return enqueue(std::forward<Task>(task));
    }
    const WorkArea area{static_cast<unsigned char*>(memory.get()), bytes};
    return enqueue([area, task = std::forward<Task>(task)]() mutable {
      area.poison();
      task();
      area.check();
    });
  }

  template <class Task>
  Status run_and_wait(const musa::dnn::MemoryMaintainer& maintainer, size_t bytes, Task&& task) {
    const Status status = enqueue(maintainer, bytes, std::forward<Task>(task));
    return status == Status::SUCCESS ? wait() : status;
  }

 private:
  // Number of threads: the task runs on the caller's thread and keeps its number
  static constexpr int kCallersThread = 0;

  // Runs the task with the caller's number of threads, and without the thread-local modes of the thread that runs it
  // (autograd, autocast and others).
  static musaError_t guarded(const char* name, int threads, void (*run)(void*), void* task);

  template <class Task>
  class TaskOf final : public Launch {
   public:
    template <class From>
    TaskOf(const char* name, int threads, From&& task)
        : name_(name), threads_(threads), task_(std::forward<From>(task)) {}
    musaError_t run() override {
      return guarded(
          name_, threads_, [](void* task) { (*static_cast<std::remove_reference_t<Task>*>(task))(); }, &task_);
    }
    const char* name() const override { return name_; }

   private:
    const char* name_;
    const int threads_;
    Task task_;
  };

  template <class Task>
  class BriefTaskOf final : public Launch {
   public:
    template <class From>
    BriefTaskOf(const char* name, From&& task) : name_(name), task_(std::forward<From>(task)) {}
    musaError_t run() override {
      task_();
      return musaSuccess;
    }
    const char* name() const override { return name_; }

   private:
    const char* name_;
    Task task_;
  };

  template <class Task>
  bool run_brief_now(Stream& stream, Task& task) const {
    BriefTaskOf<Task&> launch(name_, task); // in place; copied if the task has to wait
    return launch_brief_now(stream, launch);
  }
  template <class Task>
  Status submit_brief(Stream& stream, Task&& task) const {
    return submit(stream, std::make_shared<BriefTaskOf<std::decay_t<Task>>>(name_, std::forward<Task>(task)));
  }

  Stream* stream_of_handle(); // nullptr if the call fails
  static Status submit(Stream& stream, std::shared_ptr<Launch> task);
  Status wait();
};

template <ApiName Name, class Body>
Status call(const Handle& handle, std::initializer_list<const Tensor*> tensors, Body&& body) {
  Status status = Status::SUCCESS;
  const musaError_t error = api<Name>([&] {
    Call call(Name.text, handle, tensors);
    if (logs_calls()) [[unlikely]] {
      call.log();
    }
    status = call.accept_operands() ? body(call) : call.status();
    return musaSuccess; // a failed check is not an error of the runtime
  });
  return error == musaSuccess ? status : status_of(error);
}

} // namespace musa_emulator::dnn
