// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "group_store.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace c10d::mccl {
namespace {

constexpr std::chrono::milliseconds kQueryLimit{1000};

// torch's class has no function that returns it.
struct WithPrefix : PrefixStore {
  static const std::string& of(const PrefixStore& store) { return store.*(&WithPrefix::prefix_); }
};

std::string announcements() { return prefix_of_start() + "/failures"; }
std::string announcement(size_t number) { return c10::str(announcements(), "/", number); }

} // namespace

std::string prefix_of_start() {
  const char* const start = std::getenv("TORCHELASTIC_RESTART_COUNT");
  return c10::str("mccl/", start != nullptr ? start : "0");
}

GroupStore::GroupStore(c10::intrusive_ptr<Store> store) {
  while (const auto* outer = dynamic_cast<const PrefixStore*>(store.get())) {
    const std::string& prefix = WithPrefix::of(*outer);
    prefix_ = prefix_.empty() ? prefix : c10::str(prefix, "/", prefix_);
    store = const_cast<PrefixStore*>(outer)->getUnderlyingStore();
  }
  connection_ = connection_to(store);
}

GroupStore::Connection::Connection(c10::intrusive_ptr<Store> base)
    : original(std::move(base)), thread(original->clone()) {}

std::shared_ptr<GroupStore::Connection> GroupStore::connection_to(const c10::intrusive_ptr<Store>& base) {
  static std::mutex& mutex = *new std::mutex(); // guards made
  static auto& made = *new std::map<const Store*, std::weak_ptr<Connection>>();
  const std::lock_guard lock(mutex);
  std::weak_ptr<Connection>& known = made[base.get()];
  auto connection = known.lock();
  if (connection == nullptr) {
    connection = std::make_shared<Connection>(base);
    known = connection;
  }
  std::erase_if(made, [](const auto& entry) { return entry.second.expired(); });
  return connection;
}

void GroupStore::announce_failure() {
  connection_->thread.post([](Store& base) {
    const auto number = static_cast<size_t>(base.add(announcements(), 1));
    base.set(announcement(number - 1), std::vector<uint8_t>{1});
  });
}

size_t GroupStore::failures(std::chrono::milliseconds interval) {
  size_t known = 0;
  {
    const auto now = std::chrono::steady_clock::now();
    const std::lock_guard lock(connection_->mutex);
    known = connection_->failures;
    if (now < connection_->next_query) {
      return known;
    }
    connection_->next_query = now + interval;
  }
  if (connection_->thread.busy()) {
    return known; // blocked; pending calls are left to their timeout
  }
  const auto found = connection_->thread.within(kQueryLimit, [known](Store& base) {
    size_t number = known;
    while (base.check({announcement(number)})) {
      ++number;
    }
    return number;
  });
  const std::lock_guard lock(connection_->mutex);
  connection_->failures = std::max(connection_->failures, found.value_or(known));
  return connection_->failures;
}

} // namespace c10d::mccl
