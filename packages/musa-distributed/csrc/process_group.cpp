// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "process_group.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/isnan.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/util/StringUtil.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <numeric>

#include "call_range.h"
#include "errors.h"
#include "rendezvous.h"

namespace c10d {

using namespace mccl;
using c10::musa::MUSAStream;

namespace {

// Whether a graph is being made of what is put on the stream.
bool captures(const MUSAStream& stream) {
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(stream.stream(), &status));
  return status != musaStreamCaptureStatusNone;
}

// Of the process: ends it once a group's watchdog hangs, as it does when the device's driver does not return.
HeartbeatMonitor& heartbeat() {
  static HeartbeatMonitor& monitor = *new HeartbeatMonitor(std::chrono::seconds(1), [](const std::string& name) {
    std::cerr << "The watchdog " << name
              << " of a process group does not come back: the device or the store does not answer.\nThe process ends. "
                 "TORCH_MCCL_HEARTBEAT_TIMEOUT_SEC says how long it may take; TORCH_MCCL_ENABLE_MONITORING=0 switches this off."
              << std::endl;
    std::abort();
  });
  return monitor;
}

std::string library_version() {
  int version = 0;
  MCCL_CHECK(mcclGetVersion(&version));
  return c10::str(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

// Where the group's threads write in the store: apart from those of a group of this name that was there before, in this process
// or before torchrun started it again.
c10::intrusive_ptr<Store> store_of_threads(const c10::intrusive_ptr<Store>& store, const std::string& group) {
  static std::mutex mutex;
  static auto& made = *new std::map<std::string, int>();
  const char* const start = std::getenv("TORCHELASTIC_RESTART_COUNT");
  const std::lock_guard lock(mutex);
  const std::string prefix = c10::str("mccl/", start != nullptr ? start : "0", "/", made[group]++);
  return c10::make_intrusive<PrefixStore>(prefix, store->clone());
}

std::string describe_tensors(const std::vector<at::Tensor>& tensors) {
  constexpr size_t kShown = 4;
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    text += c10::str(i == 0 ? "" : ", ", tensors[i].scalar_type(), tensors[i].sizes());
  }
  const size_t more = tensors.size() > kShown ? tensors.size() - kShown : 0;
  return tensors.empty() ? "nothing" : more == 0 ? text : c10::str(text, " and ", more, " more");
}

} // namespace

ProcessGroupMCCL::Options::Options(bool high_priority)
    : Backend::Options("mccl", std::chrono::minutes(10)), is_high_priority_stream(high_priority) {}

ProcessGroupMCCL::ProcessGroupMCCL(
    c10::intrusive_ptr<Store> store, int rank, int size, c10::intrusive_ptr<Options> options)
    : Backend(rank, size),
      store_(std::move(store)),
      options_(c10::make_intrusive<Options>(*options)),
      settings_(Settings::from_environment()),
      timing_(settings_.timing),
      group_(std::make_shared<Group>(store_of_threads(store_, options_->group_name), rank, size, settings_)) {
  init();
  name_group();
  Recorder::instance().set_library_version(library_version());
  watchdog_ = std::make_unique<Watchdog>(
      c10::str("mccl_watch_", group_->number()), [group = group_.get()] { return group->look(); },
      [group = group_.get()](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const std::exception& known) {
          group->fail(ErrorType::COMM_ERROR, nullptr, c10::str("is no longer watched: ", known.what()));
        }
      });
  if (settings_.monitoring) {
    heartbeat().add(*watchdog_, settings_.heartbeat_timeout);
  }
}

ProcessGroupMCCL::~ProcessGroupMCCL() {
  try {
    shutdown();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    TORCH_WARN("A process group ended with an error: ", what.substr(0, what.find('\n')));
  }
}

// ---- communicators

std::shared_ptr<Communicator> ProcessGroupMCCL::make_communicator(
    const std::string& key, const std::string& where, const c10::Device& device, int rank, std::vector<int> members) {
  auto [made, places] = start_communicator(
      {store_, where, group_->who(), static_cast<size_t>(rank), std::move(members), options_->timeout, device,
       settings_.high_priority || options_->is_high_priority_stream, [group = group_] { group->check(); }});
  group_->add_places(places);
  group_->add(made);
  communicators_[key] = made;
  ++communicators_made_;
  return made;
}

std::shared_ptr<Communicator> ProcessGroupMCCL::communicator(const c10::Device& device) {
  const std::string key = std::to_string(device.index());
  const auto found = communicators_.find(key);
  if (found != communicators_.end()) {
    return found->second;
  }
  std::vector<int> all(static_cast<size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return make_communicator(key, c10::str("mccl/comm/", communicators_made_), device, rank_, std::move(all));
}

// The communicator for the request, and the peer's rank in it.
std::shared_ptr<Communicator> ProcessGroupMCCL::communicator_for(const Request& request, int* peer) {
  *peer = request.peer;
  // A send that needs no third rank must not wait for one. Groups that are bound to a device have all met already.
  if (!isP2POp(request.type) || getBoundDeviceId().has_value()) {
    return communicator(request.device);
  }
  const int low = std::min(rank_, request.peer), high = std::max(rank_, request.peer);
  const int own = rank_ == low ? 0 : 1;
  *peer = 1 - own;
  const std::string key = c10::str(low, ":", high);
  const auto found = communicators_.find(key);
  return found != communicators_.end() ? found->second
                                       : make_communicator(key, "mccl/pair/" + key, request.device, own, {low, high});
}

void ProcessGroupMCCL::eagerConnectSingleDevice(at::Device device) {
  group_->check();
  communicator(device);
}

// ---- calls

std::string ProcessGroupMCCL::describe(const Request& request, uint64_t seq) const {
  const std::string peer = request.peer < 0 ? ""
      : request.type == OpType::SEND        ? c10::str(" to rank ", request.peer)
                                            : c10::str(" from rank ", request.peer);
  return c10::str(
      "mccl:", request.name, peer, " #", seq, " (in: ", describe_tensors(request.inputs),
      "; out: ", describe_tensors(request.outputs), ")");
}

void ProcessGroupMCCL::look_for_nan(const Request& request) const {
  for (const at::Tensor& tensor : request.inputs) {
    if (at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type())) {
      TORCH_CHECK_VALUE(
          !at::isnan(tensor).any().item<bool>(), group_->who(), " mccl:", request.name, ": a tensor of ", tensor.sizes(),
          " that is to be sent holds NaN (TORCH_MCCL_NAN_CHECK=1).");
    }
  }
}

void ProcessGroupMCCL::keep_operands(const Request& request, Launched& launched) const {
  for (const auto* tensors : {&request.inputs, &request.outputs, &request.scratch}) {
    if (!settings_.record_streams) {
      launched.shelf.put(*tensors);
      continue;
    }
    for (const at::Tensor& tensor : *tensors) {
      c10::musa::MUSACachingAllocator::recordStream(tensor.storage().data_ptr(), launched.stream);
    }
  }
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::run(Request request) {
  if (coalescing_) {
    coalesced_.push_back(std::move(request));
    return nullptr;
  }
  std::vector<Request> one;
  one.push_back(std::move(request));
  return issue(one, /*coalesced=*/false);
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::issue(const std::vector<Request>& requests, bool coalesced) {
  group_->free_operands();
  group_->check();
  TORCH_CHECK(!closed_, group_->who(), " was shut down.");
  if (!described_) {
    described_ = true;
    name_group(); // torch describes a group after it is made, and tells nobody
  }
  // Tensors that require gradients may be written to here: torch.distributed's operators know nothing of autograd.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const Request& first = requests.front();
  const c10::Device device = first.device;
  for (const Request& request : requests) {
    TORCH_CHECK_VALUE(
        request.device == device, "Calls that start together must be on one device, and there are ", device, " and ",
        request.device, ".");
  }
  const c10::musa::MUSAGuard on_device(device);
  const MUSAStream current = c10::musa::getCurrentMUSAStream(device.index());
  const bool capturing = captures(current);
  if (settings_.nan_check && !capturing) {
    std::for_each(requests.begin(), requests.end(), [this](const Request& request) { look_for_nan(request); });
  }

  int peer = first.peer;
  const auto comm = coalesced ? communicator(device) : communicator_for(first, &peer);
  const auto lock = comm->lock();
  const mcclComm_t handle = comm->handle();
  const bool transfers = std::all_of(
      requests.begin(), requests.end(), [](const Request& request) { return isP2POp(request.type, true); });
  transfers ? ++transfers_ : ++collectives_;

  auto launched = std::make_shared<Launched>(timing_.load(), first.async ? comm->stream : current);
  launched->type = coalesced ? OpType::COALESCED : first.type;
  launched->p2p = transfers;
  launched->seq = transfers ? transfers_ : collectives_;
  launched->name = coalesced ? "mccl:coalesced" : c10::str("mccl:", first.name);
  launched->comm = comm;
  launched->captured = capturing;
  launched->timeout = first.timeout == kUnsetTimeout ? options_->timeout : first.timeout;
  launched->result = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  for (const Request& request : requests) {
    launched->description += (launched->description.empty() ? "" : " with ") + describe(request, launched->seq);
    record(request, *launched, launched);
  }
  if (coalesced) {
    Request all{OpType::COALESCED, "coalesced"};
    record(all, *launched, launched);
  }
  std::vector<at::Tensor> inputs, outputs;
  for (const Request& request : requests) {
    inputs.insert(inputs.end(), request.inputs.begin(), request.inputs.end());
    outputs.insert(outputs.end(), request.outputs.begin(), request.outputs.end());
  }
  {
    const CallRange range(*group_, *launched, first, inputs, outputs);
    put_on_stream(requests, *launched, handle, peer, current);
  }
  if (launched->stream != current) {
    for (const Request& request : requests) {
      keep_operands(request, *launched);
    }
  }
  auto work = c10::make_intrusive<WorkMCCL>(group_, launched, outputs, launched->name.c_str(), inputs);
  if (!capturing) {
    comm->issued_on(launched->stream, launched->end);
    if (group_->add(launched)) {
      watchdog_->kick();
    }
  }
  return work;
}

void ProcessGroupMCCL::record(
    const Request& request, Launched& launched, const std::shared_ptr<const Progress>& progress) {
  const GroupName name = group_->name();
  std::string title = c10::str("mccl:", request.name);
  if (request.type == OpType::SEND) {
    title += c10::str(" ", rank_, "->", request.peer);
  } else if (request.type == OpType::RECV) {
    title += c10::str(" ", rank_, "<-", request.peer);
  }
  launched.records.push_back(Recorder::instance().record(
      {group_->number(), name, title, collectives_, transfers_, ++operations_, launched.p2p, launched.timeout, request.inputs,
       request.outputs},
      launched.captured ? std::weak_ptr<const Progress>() : progress));
}

void ProcessGroupMCCL::put_on_stream(
    const std::vector<Request>& requests, Launched& launched, mcclComm_t handle, int peer, const MUSAStream& current) {
  const MUSAStream& stream = launched.stream;
  if (stream != current) {
    c10::musa::MUSAEvent ready;
    ready.record(current);
    ready.block(stream);
  }
  if (!launched.captured) {
    launched.comm->join(stream);
  }
  const c10::musa::MUSAStreamGuard guard(stream);
  for (const Request& request : requests) {
    if (request.before) {
      request.before();
    }
  }
  if (launched.start.has_value()) {
    launched.start->record(stream);
  }
  // Many calls of MCCL that belong together, or one.
  MCCL_CHECK(mcclGroupStart());
  try {
    for (const Request& request : requests) {
      request.call(handle, stream.stream(), requests.size() == 1 ? peer : request.peer);
    }
  } catch (...) {
    (void)mcclGroupEnd(); // it says again what was wrong, and starts nothing
    throw;
  }
  MCCL_CHECK(mcclGroupEnd());
  for (const Request& request : requests) {
    if (request.after) {
      request.after();
    }
  }
  launched.end->record(stream);
  launched.on_stream.store(true);
}

// ---- coalescing

void ProcessGroupMCCL::startCoalescing() {
  // What a block left that ended with an exception was never started.
  coalesced_.clear();
  coalescing_ = true;
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::endCoalescing() {
  coalescing_ = false;
  const std::vector<Request> requests = std::move(coalesced_);
  coalesced_.clear();
  return requests.empty() ? nullptr : issue(requests, /*coalesced=*/true);
}

// ---- other groups

c10::intrusive_ptr<ProcessGroupMCCL> ProcessGroupMCCL::child(
    const c10::intrusive_ptr<Store>& store, int rank, int size, const c10::intrusive_ptr<Backend::Options>& wanted,
    const std::vector<int64_t>& parents) const {
  const auto* ours = dynamic_cast<const Options*>(wanted.get());
  auto options = c10::make_intrusive<Options>(ours != nullptr ? *ours : *options_);
  if (wanted) {
    options->timeout = wanted->timeout;
    options->group_name = wanted->group_name;
    options->group_desc = wanted->group_desc;
  }
  options->global_ranks_in_group.clear();
  for (const int64_t parent : parents) {
    const auto index = static_cast<size_t>(parent);
    options->global_ranks_in_group.push_back(
        index < options_->global_ranks_in_group.size() ? options_->global_ranks_in_group[index]
                                                       : static_cast<uint64_t>(parent));
  }
  auto made = c10::make_intrusive<ProcessGroupMCCL>(store, rank, size, options);
  if (const auto device = getBoundDeviceId()) {
    made->setBoundDeviceId(device);
    made->eagerConnectSingleDevice(*device);
  }
  return made;
}

c10::intrusive_ptr<Backend> ProcessGroupMCCL::split(
    const c10::intrusive_ptr<Store>& store, const std::vector<int>& ranks,
    const c10::intrusive_ptr<Backend::Options>& options) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  if (own == ranks.end()) {
    return nullptr;
  }
  const auto rank = static_cast<int>(own - ranks.begin());
  return child(store, rank, static_cast<int>(ranks.size()), options, {ranks.begin(), ranks.end()});
}

c10::intrusive_ptr<Backend> ProcessGroupMCCL::merge(
    const c10::intrusive_ptr<Store>& store, const c10::intrusive_ptr<Backend::Options>& options, const int& rank,
    const int& size) {
  return child(store, rank, size, options, {});
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
  TORCH_CHECK_VALUE(own != left.end(), group_->who(), " is among the ranks to exclude, which do not call shrink.");
  if (flags == 1) {
    group_->abort("was shrunk, and what it had under way aborted");
  }
  auto store = c10::make_intrusive<PrefixStore>(c10::str("mccl/shrunk/", ++shrinks_), store_);
  return child(store, static_cast<int>(own - left.begin()), static_cast<int>(left.size()), options, left);
}

// ---- the rest

void ProcessGroupMCCL::setTimeout(std::chrono::milliseconds timeout) {
  options_->timeout = timeout;
}

uint64_t ProcessGroupMCCL::getSequenceNumberForGroup() {
  return collectives_;
}

void ProcessGroupMCCL::setGroupUid(const std::string& uid) {
  Backend::setGroupUid(uid);
  name_group();
}

void ProcessGroupMCCL::name_group() {
  const std::string& name = getGroupUid().empty() ? options_->group_name : getGroupUid();
  const bool described = !getGroupDesc().empty() && getGroupDesc() != "undefined";
  group_->set_name({name, described ? getGroupDesc() : options_->group_desc}, options_->global_ranks_in_group);
}

void ProcessGroupMCCL::enableCollectivesTiming() {
  timing_.store(true);
}

void ProcessGroupMCCL::registerOnCompletionHook(std::function<void(std::shared_ptr<WorkInfo>)>&& hook) {
  TORCH_CHECK(onCompletionHook_ == nullptr, group_->who(), " has a completion hook already.");
  onCompletionHook_ = std::move(hook);
  enableCollectivesTiming();
  group_->set_on_completion([this](const Launched& launched, std::optional<float> milliseconds) {
    const auto now = std::chrono::steady_clock::now();
    onCompletionHook_(std::make_shared<WorkInfo>(
        launched.type, launched.seq, now - launched.age(), now,
        std::chrono::duration<float, std::milli>(milliseconds.value_or(0))));
  });
}

void ProcessGroupMCCL::waitForPendingWorks() {
  watchdog_->kick();
  group_->drain(options_->timeout);
}

ErrorType ProcessGroupMCCL::getError() {
  return group_->error();
}

void ProcessGroupMCCL::abort() {
  group_->abort("was aborted by the program");
  communicators_.clear();
}

void ProcessGroupMCCL::shutdown() {
  if (closed_) {
    return;
  }
  closed_ = true;
  std::exception_ptr error;
  if (group_->failure() == nullptr) {
    try {
      watchdog_->kick();
      group_->drain(options_->timeout);
    } catch (...) {
      error = std::current_exception();
      group_->abort("was shut down with calls under way");
    }
  }
  heartbeat().remove(*watchdog_);
  watchdog_->stop();
  communicators_.clear();
  group_->free_operands();
  if (error != nullptr) {
    std::rethrow_exception(error);
  }
}

} // namespace c10d
