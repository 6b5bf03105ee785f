// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A group's access to the store. All groups of a process that use one store share one connection and one thread, because
// rank 0 hosts the store for all ranks and groups of a job.
#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "store_thread.h"

namespace c10d::mccl {

// "mccl/<number of the start>", the first part of keys: torchrun restarts ranks on the same store.
std::string prefix_of_start();

class GroupStore {
 public:
  // Keys of the group have the prefixes of `store`, which is cloned for the thread once for all groups.
  explicit GroupStore(c10::intrusive_ptr<Store> store);

  // As in StoreThread.
  void post(std::function<void(Store&)> access) {
    connection_->thread.post(
        [prefix = prefix_, access = std::move(access)](Store& base) { access(*with_prefix(prefix, base)); });
  }
  template <class Access, class Result = std::invoke_result_t<Access, Store&>>
  std::optional<Result> within(std::chrono::milliseconds limit, Access access) {
    return connection_->thread.within(limit, [prefix = prefix_, access = std::move(access)](Store& base) {
      return access(*with_prefix(prefix, base));
    });
  }

  // Announces to all groups on this store, in all processes, that one of them has failed.
  void announce_failure();
  // Returns the number of announced failures, and asks the store for it at most once per interval, for all groups of the
  // process. Waits briefly; returns the number known if the store does not answer in time. Rethrows the store's exceptions.
  size_t failures(std::chrono::milliseconds interval);

 private:
  struct Connection {
    explicit Connection(c10::intrusive_ptr<Store> base);

    const c10::intrusive_ptr<Store> original; // keeps the address in use, by which the connection is found
    StoreThread thread;

    std::mutex mutex; // guards the fields below
    size_t failures = 0;
    std::chrono::steady_clock::time_point next_query{};
  };

  static c10::intrusive_ptr<Store> with_prefix(const std::string& prefix, Store& base) {
    return c10::make_intrusive<PrefixStore>(prefix, c10::intrusive_ptr<Store>::reclaim_copy(&base));
  }
  static std::shared_ptr<Connection> connection_to(const c10::intrusive_ptr<Store>& base);

  std::string prefix_;
  std::shared_ptr<Connection> connection_;
};

} // namespace c10d::mccl
