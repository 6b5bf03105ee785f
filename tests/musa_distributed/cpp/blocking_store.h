// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A store that can stop answering, like a TCPStore whose host is unreachable.
#pragma once

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include <condition_variable>
#include <mutex>

namespace c10d::mccl {

class BlockingStore : public HashStore {
 public:
  ~BlockingStore() override { release(); }
  void block() {
    const std::lock_guard lock(mutex_);
    blocked_ = true;
  }
  void release() {
    const std::lock_guard lock(mutex_);
    blocked_ = false;
    changed_.notify_all();
  }

  c10::intrusive_ptr<Store> clone() override { return c10::intrusive_ptr<Store>::reclaim_copy(this); }
  bool check(const std::vector<std::string>& keys) override {
    wait();
    return HashStore::check(keys);
  }
  void set(const std::string& key, const std::vector<uint8_t>& value) override {
    wait();
    HashStore::set(key, value);
  }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !blocked_; });
  }

  std::mutex mutex_; // guards the members below
  std::condition_variable changed_;
  bool blocked_ = false;
};

} // namespace c10d::mccl
