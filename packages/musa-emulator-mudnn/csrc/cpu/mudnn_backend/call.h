// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A call as a task of the emulator's stream, and the frame that injects faults. Included by support/call.h alone.
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

// Memory that the caller lends for the time of a task: filled with a pattern before it, and looked at after it. Whoever
// else wrote there meanwhile had the memory too early: its maintainer does not give it back in the stream's order.
// Only where MUDNN_EMULATOR_CHECK_WORKSPACE=1 or, without that, device memory is strict: it takes time.
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

  // Puts task() on the handle's stream. It runs later, perhaps on another thread: it must own copies of what it needs.
  template <class Task>
  Status enqueue(Task&& task) {
    Stream* const stream = stream_of_handle();
    if (stream == nullptr) {
      return status_;
    }
    TaskOf<std::decay_t<Task>&> launch(name_, kCallersThread, task); // in place; a task that has to wait gets a copy of its own
    return launch_now(*stream, launch)
        ? Status::SUCCESS
        : submit(
              *stream,
              std::make_shared<TaskOf<std::decay_t<Task>>>(name_, at::get_num_threads(), std::forward<Task>(task)));
  }
  // The same for a task that calls nothing of the runtime's nor through torch's dispatcher, throws nothing, and takes about a
  // microsecond: it needs no modes of torch set, and may run with the engine's lock held.
  template <class Task>
  Status enqueue_brief(Task&& task) {
    Stream* const stream = stream_of_handle();
    if (stream == nullptr) {
      return status_;
    }
    return run_brief_now(*stream, task) ? Status::SUCCESS : submit_brief(*stream, std::forward<Task>(task));
  }
  // The same where a task that owns its operands takes time to make: `borrowing` runs at once or not at all, and else the task
  // that own() makes is enqueued.
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

  // The same with memory from the caller, `bytes` of it. Where the operation may do without a maintainer, `optional`.
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
  static constexpr int kCallersThread = 0; // a number of threads: the task runs on the thread of its caller, whatever that has

  // Runs the task with as many threads as its caller computes with, and past the modes of the thread that runs it
  // (autograd, autocast, and so on).
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
    BriefTaskOf<Task&> launch(name_, task); // in place; a task that has to wait gets a copy of its own
    return launch_brief_now(stream, launch);
  }
  template <class Task>
  Status submit_brief(Stream& stream, Task&& task) const {
    return submit(stream, std::make_shared<BriefTaskOf<std::decay_t<Task>>>(name_, std::forward<Task>(task)));
  }

  Stream* stream_of_handle(); // null after a refusal
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
    return musaSuccess; // a refusal is no error of the runtime
  });
  return error == musaSuccess ? status : status_of(error);
}

} // namespace musa_emulator::dnn
