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

std::shared_ptr<Communicator> Communicators::make(
    const std::string& key, const std::string& where, const c10::Device& device, int rank, std::vector<int> members) {
  auto [made, places] = start_communicator(
      {store_, where, group_->who(), static_cast<size_t>(rank), std::move(members), options_->timeout, device, high_priority_,
       [group = group_] { group->check(); }});
  group_->add_places(places);
  group_->add(made);
  communicators_[key] = made;
  in_order_.push_back(made);
  ++made_;
  return made;
}

std::shared_ptr<Communicator> Communicators::of_all(const c10::Device& device) {
  const std::string key = std::to_string(device.index());
  const auto found = communicators_.find(key);
  if (found != communicators_.end()) {
    return found->second;
  }
  std::vector<int> all(static_cast<size_t>(group_->size()));
  std::iota(all.begin(), all.end(), 0);
  return make(key, c10::str("mccl/comm/", made_), device, group_->rank(), std::move(all));
}

std::shared_ptr<Communicator> Communicators::of_pair(int peer, const c10::Device& device) {
  const int low = std::min(group_->rank(), peer), high = std::max(group_->rank(), peer);
  const std::string key = c10::str(low, ":", high);
  const auto found = communicators_.find(key);
  return found != communicators_.end()
      ? found->second
      : make(key, "mccl/pair/" + key, device, group_->rank() == low ? 0 : 1, {low, high});
}

void Communicators::end() {
  for (const auto& communicator : in_order_) {
    communicator->end();
  }
  in_order_.clear();
  communicators_.clear();
}

std::optional<c10::Device> Communicators::device() const {
  return communicators_.empty() ? std::nullopt : std::optional(communicators_.begin()->second->device);
}

} // namespace c10d::mccl
