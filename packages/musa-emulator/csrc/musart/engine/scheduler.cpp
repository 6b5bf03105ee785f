// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Runs the work of streams. A stream is a queue in which at most one operation runs at a time, after its fences are
// reached. The mode determines the thread:
//
//   inline  the submitting thread, immediately; if the operation depends on unfinished work of another thread, the
// thread
//           that finishes that work
//   async   the stream's worker thread
//   lazy    a thread that waits for the operation or polls it, and only as much as needed
//
// Fences only refer to work submitted earlier, so following them always ends at work that can run.
#include <algorithm>
#include <chrono>

#include "engine/activity.h"
#include "engine/api.h"
#include "engine/capture.h"
#include "engine/device.h"
#include "engine/event.h"
#include "engine/execution.h"
#include "engine/graph.h"
#include "engine/interprocess.h"
#include "engine/stream.h"

namespace musa_emulator {
namespace {

// Limit of pending operations per stream, like a device's launch queue: a thread that launches faster than the work
// runs is blocked. Without a limit, a loop that never synchronizes would queue seconds of work.
constexpr uint64_t kQueueDepth = 1024;

bool ready(const Task& task) {
  return std::all_of(task.after.begin(), task.after.end(), [](const Fence& fence) { return fence.reached(); });
}

// Whether the work may block until other ranks or processes act. A thread that these may need must not wait in it.
bool waits_for_others(const Operation& operation) {
  if (const auto* wait = std::get_if<InterprocessWaitOperation>(&operation)) {
    return !interprocess_reached(*wait->shared, wait->target);
  }
  if (const auto* kernel = std::get_if<KernelOperation>(&operation)) {
    return kernel->launch->waits_for_others();
  }
  const auto* graph = std::get_if<GraphOperation>(&operation);
  return graph != nullptr && graph->run->waits_for_others;
}

void wake_blocked_workers(Engine& state) {
  if (state.blocked_workers == 0) {
    return;
  }
  for (const auto& device : state.devices) {
    for (Stream* stream : device->streams) {
      if (stream->worker_blocked) {
        stream->wake.notify_one();
      }
    }
  }
}

// Only written with the lock held, so no atomic addition is needed.
void count_blocking(Device& device, int change) {
  const uint64_t pending = device.pending_blocking.load(std::memory_order_relaxed);
  device.pending_blocking.store(pending + static_cast<uint64_t>(change), std::memory_order_release);
}

// Updates the state after an operation on `stream` has finished.
void finish(Stream& stream, musaError_t status) {
  Engine& state = engine();
  if (status != musaSuccess) {
    lose_device(*stream.device, status);
  }
  stream.running = false;
  if (stream.blocking()) {
    count_blocking(*stream.device, -1);
  }
  stream.completed.store(stream.completed.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (state.waiting != 0) {
    state.progress.notify_all();
  }
  wake_blocked_workers(state);
  if (stream.magic.load(std::memory_order_relaxed) == Stream::kDead && stream.idle() && !stream.handed_to_worker) {
    recycle_stream(stream);
  }
}

musaError_t execute_traced(const Stream& stream, const Operation& operation, uint32_t correlation) {
  if (!tracing()) [[likely]] {
    return execute(operation);
  }
  const int64_t start = activity_clock();
  const musaError_t status = execute(operation);
  note_operation(stream, operation, correlation, start);
  return status;
}

// Whether the operation counts for the device's utilisation. Waits and host functions leave the device idle.
bool occupies_device(const Operation& operation) {
  return std::holds_alternative<CopyOperation>(operation) || std::holds_alternative<FillOperation>(operation) ||
      std::holds_alternative<KernelOperation>(operation) || std::holds_alternative<GraphOperation>(operation);
}

// Runs one operation, which the caller has checked to be startable. The lock is released while user code runs. That
// includes the destruction of the operation, because a launch's payload may call the runtime when it is destroyed.
void run(Stream& stream, Operation operation, uint32_t correlation, Lock& lock) {
  musaError_t status = musaSuccess;
  // A lost device runs no more work, but callbacks are still called with the error.
  const bool skip = stream.device->lost.load(std::memory_order_relaxed) != musaSuccess &&
      !std::holds_alternative<CallbackOperation>(operation);
  const bool counted = !skip && occupies_device(operation);
  stream.running = true;
  if (counted) {
    stream.device->usage.begin_operation();
  }
  if (const auto* record = std::get_if<RecordOperation>(&operation)) {
    finish_record(*record);
  } else if (is_brief(operation)) {
    status = skip ? musaSuccess : execute_traced(stream, operation, correlation);
  } else {
    lock.unlock();
    if (!skip) {
      status = execute_traced(stream, operation, correlation);
    } else if (const auto* graph = std::get_if<GraphOperation>(&operation)) {
      execute_graph(*graph->run, /*lost=*/true);
    }
    operation = EmptyOperation{};
    lock.lock();
  }
  if (counted) {
    stream.device->usage.end_operation();
  }
  finish(stream, status);
}

bool can_start(const Stream& stream) { return !stream.running && !stream.queue.empty() && ready(stream.queue.front()); }

void run_first(Stream& stream, Lock& lock) {
  Task task = std::move(stream.queue.front());
  stream.queue.pop_front();
  engine().queued.fetch_sub(1, std::memory_order_relaxed);
  run(stream, std::move(task.operation), task.correlation, lock);
}

void drain_others(Lock& lock);

void worker(Stream& stream) {
  Engine& state = engine();
  Lock lock(state.mutex);
  while (!state.stopping) {
    if ((stream.handed_to_worker || state.config.mode == Mode::Async) && can_start(stream)) {
      run_first(stream, lock);
      if (state.config.mode == Mode::Inline) {
        drain_others(lock); // no other thread may run them
      }
      continue;
    }
    if (stream.handed_to_worker && stream.queue.empty()) {
      // The worker was needed for one wait. It is kept, because the stream is likely to wait again and starting a
      // thread is slow.
      stream.handed_to_worker = false;
      if (stream.magic.load() == Stream::kDead && stream.idle()) {
        recycle_stream(stream);
      }
      state.progress.notify_all();
    }
    stream.worker_blocked = !stream.queue.empty();
    state.blocked_workers += stream.worker_blocked;
    stream.wake.wait(lock);
    state.blocked_workers -= stream.worker_blocked;
    stream.worker_blocked = false;
  }
  stream.worker_alive = false;
  state.progress.notify_all();
}

void wake_worker(Stream& stream) {
  if (stream.worker_alive) {
    stream.wake.notify_one();
    return;
  }
  std::thread(worker, std::ref(stream)).detach();
  stream.worker_alive = true;
}

// Inline mode: the worker runs the stream's work until the queue is empty.
void hand_to_worker(Stream& stream) {
  stream.handed_to_worker = true;
  wake_worker(stream);
}

// Inline mode: runs all operations of this stream that can start.
void drain(Stream& stream, Lock& lock) {
  while (!stream.handed_to_worker && can_start(stream)) {
    if (waits_for_others(stream.queue.front().operation)) {
      hand_to_worker(stream); // blocking the caller could block the ranks or processes that it waits for
      return;
    }
    run_first(stream, lock);
  }
}

// Inline mode: runs work on other streams that became ready by the operations that this thread finished.
void drain_others(Lock& lock) {
  Engine& state = engine();
  bool progressed = true;
  while (progressed && state.queued.load(std::memory_order_relaxed) != 0) {
    progressed = false;
    for (size_t d = 0; d < state.devices.size(); ++d) {
      for (size_t s = 0; s < state.devices[d]->streams.size(); ++s) {
        Stream& stream = *state.devices[d]->streams[s];
        if (!stream.handed_to_worker && can_start(stream)) {
          drain(stream, lock);
          progressed = true;
        }
      }
    }
  }
}

// Runs one operation that the fence depends on. Returns false if another thread is running it.
bool help(const Fence& fence, bool may_block, Lock& lock) {
  Stream* stream = fence.stream;
  while (true) {
    if (stream->running || stream->handed_to_worker || stream->queue.empty()) {
      return false;
    }
    const Task& first = stream->queue.front();
    const auto unreached =
        std::find_if(first.after.begin(), first.after.end(), [](const Fence& f) { return !f.reached(); });
    if (unreached == first.after.end()) {
      break;
    }
    stream = unreached->stream;
  }
  if (waits_for_others(stream->queue.front().operation)) {
    if (!may_block) {
      return false;
    }
    if (engine().config.mode == Mode::Inline) {
      hand_to_worker(*stream); // it may depend on another stream of this thread
      return false;
    }
  }
  run_first(*stream, lock);
  return true;
}

// Adds the fences that the default-stream rules require for an operation on `stream`.
void add_implicit_fences(const Stream& stream, std::vector<Fence>& after) {
  const Device& device = *stream.device;
  if (device.pending_blocking.load(std::memory_order_acquire) == 0) {
    return;
  }
  const auto add = [&after](Stream& other) {
    if (!other.idle()) {
      after.push_back({&other, other.submitted.load(std::memory_order_relaxed)});
    }
  };
  if (stream.legacy) {
    for (Stream* other : device.streams) {
      if (other != &stream && other->blocking()) {
        add(*other);
      }
    }
  } else if (stream.blocking()) {
    add(*device.legacy);
  }
}

} // namespace

void submit_locked(Stream& stream, Operation operation, std::vector<Fence> after, Lock& lock) {
  Engine& state = engine();
  add_implicit_fences(stream, after);
  // Fences on the stream itself are redundant, because it runs in order. Such a fence may even be for the submitted
  // operation, if a graph waits for an event that it records.
  std::erase_if(after, [&stream](const Fence& fence) { return fence.reached() || fence.stream == &stream; });
  const bool was_idle = stream.idle();
  stream.submitted.store(stream.submitted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (stream.blocking()) {
    count_blocking(*stream.device, 1);
  }
  const Mode mode = state.config.mode;
  if (mode == Mode::Inline && was_idle && after.empty() && !waits_for_others(operation)) {
    run(stream, std::move(operation), current_correlation(), lock);
  } else {
    stream.queue.push_back({std::move(operation), std::move(after), current_correlation()});
    state.queued.fetch_add(1, std::memory_order_relaxed);
    if (mode == Mode::Async) {
      wake_worker(stream);
    } else if (mode == Mode::Lazy && waits_for_others(stream.queue.back().operation)) {
      // Other processes may wait for this operation before any thread of this process does.
      drive({&stream, stream.submitted.load(std::memory_order_relaxed)});
    }
  }
  if (mode == Mode::Inline && state.queued.load(std::memory_order_relaxed) != 0) {
    drain(stream, lock);
    drain_others(lock);
  }
}

musaError_t submit(Stream& stream, Operation operation, std::vector<Fence> after) {
  Engine& state = engine();
  Lock lock(state.mutex);
  if (state.active_captures.load(std::memory_order_relaxed) != 0) {
    if (stream.capture.load(std::memory_order_relaxed) != nullptr) {
      return capture_operation(stream, std::move(operation));
    }
    if (const musaError_t status = forbid_implicit_dependency(stream); status != musaSuccess) {
      return status;
    }
  }
  if (const musaError_t lost = stream.device->lost.load(std::memory_order_relaxed); lost != musaSuccess) {
    return lost;
  }
  const bool wait = state.config.launch_blocking && std::holds_alternative<KernelOperation>(operation) &&
      !waits_for_others(operation) && thread_state().running == ThreadState::Running::Nothing;
  submit_locked(stream, std::move(operation), std::move(after), lock);
  const uint64_t submitted = stream.submitted.load(std::memory_order_relaxed);
  if (wait) {
    return wait_for({&stream, submitted}, lock);
  }
  if (stream.queue.size() > kQueueDepth && thread_state().running == ThreadState::Running::Nothing) {
    return wait_for({&stream, submitted - kQueueDepth}, lock);
  }
  return musaSuccess;
}

namespace {

// Calls `run(lock)` if the calling thread may run the launch now, or submits the launch if `submits`. Returns whether
// one of them was done.
template <class Run>
bool run_or_submit(Stream& stream, Launch& launch, bool submits, Run&& run) {
  Engine& state = engine();
  if (state.config.mode != Mode::Inline) {
    return false;
  }
  Lock lock(state.mutex);
  if (!may_run_now(state, stream)) {
    return false;
  }
  if (submits) [[unlikely]] {
    // The launch is not owned: the operation has finished when this returns.
    const std::shared_ptr<Launch> borrowed(std::shared_ptr<void>(), &launch);
    submit_locked(stream, KernelOperation{borrowed}, {}, lock);
  } else {
    run(lock);
  }
  return true;
}

} // namespace

bool launch_now(Stream& stream, Launch& launch) {
  return run_or_submit(stream, launch, tracing() || launch.waits_for_others(), [&](Lock& lock) {
    stream.submitted.store(stream.submitted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (stream.blocking()) {
      count_blocking(*stream.device, 1);
    }
    stream.running = true;
    stream.device->usage.begin_operation();
    lock.unlock();
    const musaError_t status = execute(launch);
    lock.lock();
    stream.device->usage.end_operation();
    finish(stream, status);
    if (engine().queued.load(std::memory_order_relaxed) != 0) {
      drain(stream, lock);
      drain_others(lock);
    }
  });
}

bool launch_brief_now(Stream& stream, Launch& launch) {
  return run_or_submit(stream, launch, tracing(), [&](Lock&) {
    stream.device->usage.begin_operation();
    const musaError_t status = execute(launch);
    stream.device->usage.end_operation();
    if (status != musaSuccess) [[unlikely]] {
      lose_device(*stream.device, status);
    }
    count_done(stream);
  });
}

std::vector<Fence> fences_of(Stream& stream) {
  std::vector<Fence> fences;
  add_implicit_fences(stream, fences);
  if (!stream.legacy) {
    fences.clear(); // only the default stream includes other streams
  }
  fences.push_back({&stream, stream.submitted.load(std::memory_order_relaxed)});
  return fences;
}

musaError_t wait_for(const Fence& fence, Lock& lock) {
  Engine& state = engine();
  while (!fence.reached() && !state.stopping) {
    if (state.config.mode != Mode::Async && help(fence, /*may_block=*/true, lock)) {
      if (state.config.mode == Mode::Inline) {
        drain_others(lock);
      }
      continue;
    }
    if (fence.reached()) {
      break;
    }
    ++state.waiting;
    state.progress.wait(lock);
    --state.waiting;
  }
  return fence.stream->device->lost.load();
}

void nudge(const Fence& fence, Lock& lock) {
  if (engine().config.mode == Mode::Lazy && thread_state().running == ThreadState::Running::Nothing) {
    help(fence, /*may_block=*/false, lock);
  }
}

void drive(const Fence& fence) {
  Stream& stream = *fence.stream;
  stream.driven_to = std::max(stream.driven_to, fence.sequence);
  if (fence.reached() || stream.driven) {
    return;
  }
  stream.driven = true;
  ++engine().drivers;
  std::thread([&stream] {
    Engine& state = engine();
    Lock lock(state.mutex);
    for (Fence next{&stream, stream.driven_to}; !next.reached() && !state.stopping; next.sequence = stream.driven_to) {
      wait_for(next, lock);
    }
    stream.driven = false;
    --state.drivers;
    state.progress.notify_all();
  }).detach();
}

musaError_t may_wait() {
  return thread_state().running == ThreadState::Running::Nothing ? musaSuccess : musaErrorNotPermitted;
}

void stop_workers() {
  Engine& state = engine();
  Lock lock(state.mutex);
  state.stopping = true;
  const auto any_alive = [&state] {
    if (state.drivers != 0) {
      return true;
    }
    for (const auto& device : state.devices) {
      for (const Stream* stream : device->streams) {
        if (stream->worker_alive) {
          return true;
        }
      }
    }
    return std::any_of(
        state.free_streams.begin(), state.free_streams.end(), [](const Stream* s) { return s->worker_alive; });
  };
  for (const auto& device : state.devices) {
    for (Stream* stream : device->streams) {
      stream->wake.notify_all();
    }
  }
  for (Stream* stream : state.free_streams) {
    stream->wake.notify_all();
  }
  state.progress.notify_all();
  // An operation that never ends must not block process exit; it would not on a device.
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(2);
  ++state.waiting;
  while (any_alive() && state.progress.wait_until(lock, deadline) != std::cv_status::timeout) {}
  --state.waiting;
}

} // namespace musa_emulator
