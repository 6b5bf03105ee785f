// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A thread that accesses a store, so that callers can stop waiting for it: if the host of a TCPStore vanishes, an
// access blocks until the kernel drops the connection many minutes later, regardless of the store's timeout.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

namespace c10d::mccl {

class StoreThread {
 public:
  explicit StoreThread(c10::intrusive_ptr<Store> store);
  // Waits briefly for a running access. If it is blocked, the thread is detached and keeps the store alive until the
  // access returns.
  ~StoreThread();
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // Enqueues an access, which must own its captures. Its exceptions become warnings.
  void post(std::function<void(Store&)> access);

  // Enqueues an access and waits for its result; rethrows its exceptions. Returns nullopt if there is no result in
  // time; the access may still run later.
  template <class Access, class Result = std::invoke_result_t<Access, Store&>>
  std::optional<Result> within(std::chrono::milliseconds limit, Access access) {
    auto answer = std::make_shared<Answer<Result>>();
    enqueue([answer, access = std::move(access)](Store& store) {
      std::optional<Result> result;
      std::exception_ptr error;
      try {
        result.emplace(access(store));
      } catch (...) {
        error = std::current_exception();
      }
      const std::lock_guard lock(answer->mutex);
      answer->result = std::move(result);
      answer->error = std::move(error);
      answer->done = true;
      answer->changed.notify_all();
    });
    std::unique_lock lock(answer->mutex);
    answer->changed.wait_for(lock, limit, [&] { return answer->done; });
    if (answer->error != nullptr) {
      std::rethrow_exception(answer->error);
    }
    return std::move(answer->result);
  }

  // Whether an access is running or enqueued.
  bool busy() const;

 private:
  using Job = std::function<void(Store&)>;

  template <class Result>
  struct Answer {
    std::mutex mutex; // guards the fields below
    std::condition_variable changed;
    bool done = false;
    std::optional<Result> result;
    std::exception_ptr error;
  };

  struct State {
    c10::intrusive_ptr<Store> store; // used by the thread only

    std::mutex mutex; // guards the fields below
    std::condition_variable changed;
    std::deque<Job> jobs;
    bool running = false, stopped = false, ended = false;
  };

  void enqueue(Job job);
  static void run(const std::shared_ptr<State>& state);

  const std::shared_ptr<State> state_;
  std::thread thread_;
};

} // namespace c10d::mccl
