// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "communicators.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <numeric>

#include "rendezvous.h"

namespace c10d::mccl {

Communicators::Communicators(
    c10::intrusive_ptr<Store> store, std::shared_ptr<Group> group, c10::intrusive_ptr<const Backend::Options> options,
    bool high_priority)
    : store_(std::move(store)), group_(std::move(group)), options_(std::move(options)), high_priority_(high_priority) {}

std::shared_ptr<Communicator> Communicators::find(const Key& key) const {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(!ended_, group_->description(), " was shut down.");
  const auto found = communicators_.find(key);
  return found != communicators_.end() ? found->second : nullptr;
}

// `name` is the name of the rendezvous, so it consists of what all members know. A count of this rank does not: other
// ranks may have created other communicators. A name may be used again, because the meeting ignores earlier keys.
std::shared_ptr<Communicator> Communicators::find_or_create(
    const Key& key, const std::string& name, const c10::Device& device, int rank, const std::vector<int>& members) {
  if (auto found = find(key)) {
    return found;
  }
  const std::lock_guard creation(creation_);
  if (auto found = find(key)) {
    return found; // created by another thread meanwhile
  }
  auto [created, hosts] = start_communicator(
      {store_, name, group_->description(), static_cast<size_t>(rank), members, options_->timeout, device,
       high_priority_, [group = group_] { group->check(); }});
  group_->add_hosts(hosts);
  group_->add(created);
  const std::lock_guard lock(mutex_);
  if (ended_) {
    created->abort();
    TORCH_CHECK(false, group_->description(), " was shut down.");
  }
  communicators_[key] = created;
  in_order_.push_back(created);
  ++created_;
  return created;
}

std::shared_ptr<Communicator> Communicators::of_all(const c10::Device& device) {
  const Key key{-1, -1, device.index()};
  if (auto found = find(key)) {
    return found;
  }
  std::vector<int> all(static_cast<size_t>(group_->size()));
  std::iota(all.begin(), all.end(), 0);
  return find_or_create(key, "mccl/all", device, group_->rank(), all);
}

std::shared_ptr<Communicator> Communicators::of_pair(int peer, const c10::Device& device) {
  const int own = group_->rank(), low = std::min(own, peer), high = std::max(own, peer);
  const std::vector<int> members = low == high ? std::vector{low} : std::vector{low, high};
  return find_or_create(
      {low, high, device.index()}, c10::str("mccl/pair/", low, ":", high), device, own == low ? 0 : 1, members);
}

bool Communicators::has_all(const c10::Device& device) const { return find({-1, -1, device.index()}) != nullptr; }

void Communicators::end() {
  std::vector<std::shared_ptr<Communicator>> ended; // destroyed without the lock, because that may block
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ended.swap(in_order_);
    communicators_.clear();
  }
  for (const auto& communicator : ended) {
    communicator->end();
  }
}

std::optional<c10::Device> Communicators::device() const {
  const std::lock_guard lock(mutex_);
  return in_order_.empty() ? std::nullopt : std::optional(in_order_.front()->device);
}

size_t Communicators::created() const {
  const std::lock_guard lock(mutex_);
  return created_;
}

} // namespace c10d::mccl
