// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "store_thread.h"

#include <c10/util/Exception.h>
#include <pthread.h>

namespace c10d::mccl {
namespace {

constexpr std::chrono::milliseconds kEndLimit{1000};

} // namespace

StoreThread::StoreThread(c10::intrusive_ptr<Store> store) : state_(std::make_shared<State>()) {
  state_->store = std::move(store);
  thread_ = std::thread([state = state_] { run(state); });
}

StoreThread::~StoreThread() {
  std::unique_lock lock(state_->mutex);
  state_->stopped = true;
  state_->jobs.clear();
  state_->changed.notify_all();
  const bool ended = state_->changed.wait_for(lock, kEndLimit, [this] { return state_->ended; });
  lock.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void StoreThread::post(std::function<void(Store&)> access) {
  enqueue([access = std::move(access)](Store& store) {
    try {
      access(store);
    } catch (const std::exception& error) {
      TORCH_WARN("The store of a process group could not be accessed: ", error.what());
    }
  });
}

bool StoreThread::busy() const {
  const std::lock_guard lock(state_->mutex);
  return state_->running || !state_->jobs.empty();
}

void StoreThread::enqueue(Job job) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(std::move(job));
  }
  state_->changed.notify_all();
}

void StoreThread::run(const std::shared_ptr<State>& state) {
  pthread_setname_np(pthread_self(), "mccl_store");
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->stopped || !state->jobs.empty(); });
    if (state->stopped) {
      break;
    }
    {
      const Job job = std::move(state->jobs.front());
      state->jobs.pop_front();
      state->running = true;
      lock.unlock();
      job(*state->store);
    } // the job's captures are destroyed before the thread counts as idle
    lock.lock();
    state->running = false;
  }
  auto store = std::move(state->store);
  lock.unlock();
  store.reset(); // closes a connection, which may block, so the lock is not held
  lock.lock();
  state->ended = true;
  state->changed.notify_all();
}

} // namespace c10d::mccl
