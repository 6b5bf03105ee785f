// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "process_group.h"

#include <ATen/Context.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <map>

#include "errors.h"
#include "poller.h"

namespace c10d {

using namespace mccl;

namespace {

std::string library_version() {
  int version = 0;
  MCCL_CHECK(mcclGetVersion(&version));
  return c10::str(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// Returns a store with a prefix for the group's threads. The prefix differs from that of earlier groups of the same
// name, in this process or before torchrun restarted it.
c10::intrusive_ptr<Store> store_of_threads(const c10::intrusive_ptr<Store>& store, const std::string& group) {
  static std::mutex mutex;
  static auto& made = *new std::map<std::string, int>();
  const std::lock_guard lock(mutex);
  const std::string prefix = c10::str(prefix_of_start(), "/", made[group]++);
  return c10::make_intrusive<PrefixStore>(prefix, store);
}

// Creates a group of some ranks of `parent` (`members` are their ranks there), with the options `wanted`, or those of
// `parent` if it is null.
c10::intrusive_ptr<ProcessGroupMCCL> make_child(
    const ProcessGroupMCCL& parent, const ProcessGroupMCCL::Options& inherited, const c10::intrusive_ptr<Store>& store,
    int rank, int size, const c10::intrusive_ptr<Backend::Options>& wanted, const std::vector<int64_t>& members) {
  const auto* ours = dynamic_cast<const ProcessGroupMCCL::Options*>(wanted.get());
  auto options = c10::make_intrusive<ProcessGroupMCCL::Options>(ours != nullptr ? *ours : inherited);
  if (wanted) {
    options->timeout = wanted->timeout;
    options->group_name = wanted->group_name;
    options->group_desc = wanted->group_desc;
  }
  options->global_ranks_in_group.clear();
  for (const int64_t member : members) {
    const auto index = static_cast<size_t>(member);
    options->global_ranks_in_group.push_back(
        index < inherited.global_ranks_in_group.size() ? inherited.global_ranks_in_group[index]
                                                       : static_cast<uint64_t>(member));
  }
  auto made = c10::make_intrusive<ProcessGroupMCCL>(store, rank, size, options);
  if (const auto device = parent.getBoundDeviceId()) {
    made->setBoundDeviceId(device);
    made->eagerConnectSingleDevice(*device);
  }
  return made;
}

} // namespace

ProcessGroupMCCL::Options::Options(bool high_priority)
    : Backend::Options("mccl", std::chrono::minutes(10)), is_high_priority_stream(high_priority) {}

ProcessGroupMCCL::ProcessGroupMCCL(
    c10::intrusive_ptr<Store> store, int rank, int size, c10::intrusive_ptr<Options> options)
    : Backend(rank, size),
      store_(std::move(store)),
      options_(c10::make_intrusive<Options>(*options)),
      group_(
          std::make_shared<Group>(
              store_of_threads(store_, options_->group_name), rank, size, Settings::from_environment())),
      communicators(
          std::make_shared<Communicators>(
              store_, group_, options_, group_->settings().high_priority || options_->is_high_priority_stream)) {
  init();
  name_group(*group_, *this, *options_);
  Recorder::instance().set_library_version(library_version());
  Poller::instance().add(group_);
  launcher_ = std::make_unique<Launcher>(*this, options_, group_->settings(), group_, communicators);
}

ProcessGroupMCCL::~ProcessGroupMCCL() {
  try {
    shutdown();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    TORCH_WARN("A process group ended with an error: ", what.substr(0, what.find('\n')));
  }
}

void ProcessGroupMCCL::eagerConnectSingleDevice(at::Device device) {
  group_->check();
  communicators->of_all(device);
}

// ---- coalescing

void ProcessGroupMCCL::startCoalescing() { launcher_->start_coalescing(); }

c10::intrusive_ptr<Work> ProcessGroupMCCL::endCoalescing() { return launcher_->end_coalescing(); }

// ---- other groups

c10::intrusive_ptr<Backend> ProcessGroupMCCL::split(
    const c10::intrusive_ptr<Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Backend::Options>& options) {
  ++splits;
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  if (own == ranks.end()) {
    return nullptr;
  }
  const auto rank = static_cast<int>(own - ranks.begin());
  const auto size = static_cast<int>(ranks.size());
  return make_child(*this, *options_, store, rank, size, options, {ranks.begin(), ranks.end()});
}

c10::intrusive_ptr<Backend> ProcessGroupMCCL::merge(
    const c10::intrusive_ptr<Store>& store, const c10::intrusive_ptr<Backend::Options>& options, const int& rank,
    const int& size) {
  return make_child(*this, *options_, store, rank, size, options, {});
}

c10::intrusive_ptr<Backend> ProcessGroupMCCL::shrink(
    const std::vector<int64_t>& ranks_to_exclude, int flags, const c10::intrusive_ptr<Backend::Options>& options) {
  std::vector<int64_t> left;
  for (int64_t rank = 0; rank < size_; ++rank) {
    if (std::find(ranks_to_exclude.begin(), ranks_to_exclude.end(), rank) == ranks_to_exclude.end()) {
      left.push_back(rank);
    }
  }
  const auto own = std::find(left.begin(), left.end(), rank_);
  TORCH_CHECK_VALUE(
      own != left.end(), group_->description(),
      " is one of the ranks to exclude; only the remaining ranks call shrink.");
  if (flags == 1) {
    group_->abort("was shrunk, and its pending calls were aborted");
  }
  // Named after its ranks: a rank that is excluded once may be in the next group that is made from this one.
  auto store = c10::make_intrusive<PrefixStore>(c10::str("mccl/shrunk/", c10::Join(",", left)), store_);
  const auto rank = static_cast<int>(own - left.begin()), size = static_cast<int>(left.size());
  return make_child(*this, *options_, store, rank, size, options, left);
}

// ---- the rest

void ProcessGroupMCCL::setTimeout(std::chrono::milliseconds timeout) { options_->timeout = timeout; }

uint64_t ProcessGroupMCCL::getSequenceNumberForGroup() { return launcher_->collectives(); }

void ProcessGroupMCCL::setGroupUid(const std::string& uid) {
  Backend::setGroupUid(uid);
  name_group(*group_, *this, *options_);
}

void ProcessGroupMCCL::enableCollectivesTiming() { launcher_->enable_timing(); }

void ProcessGroupMCCL::registerOnCompletionHook(std::function<void(std::shared_ptr<WorkInfo>)>&& hook) {
  TORCH_CHECK(onCompletionHook_ == nullptr, group_->description(), " already has a completion hook.");
  onCompletionHook_ = std::move(hook);
  enableCollectivesTiming();
  group_->set_on_completion([this](const Launched& launched, std::optional<float> milliseconds) {
    const auto now = std::chrono::steady_clock::now();
    onCompletionHook_(
        std::make_shared<WorkInfo>(
            launched.type, launched.seq(), now - launched.age(), now,
            std::chrono::duration<float, std::milli>(milliseconds.value_or(0))));
  });
}

void ProcessGroupMCCL::waitForPendingWorks() {
  Poller::instance().kick(*group_);
  group_->drain(options_->timeout);
}

ErrorType ProcessGroupMCCL::getError() { return group_->error(); }

void ProcessGroupMCCL::abort() {
  group_->abort("was aborted by the program");
  communicators->end();
}

void ProcessGroupMCCL::shutdown() {
  if (launcher_->closed()) {
    return;
  }
  launcher_->close();
  std::exception_ptr error;
  if (group_->failure() == nullptr) {
    try {
      Poller::instance().kick(*group_);
      group_->drain(options_->timeout);
    } catch (...) {
      error = std::current_exception();
      group_->abort("was shut down with pending calls");
    }
  }
  Poller::instance().remove(*group_);
  communicators->end();
  group_->free_operands();
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

} // namespace c10d
