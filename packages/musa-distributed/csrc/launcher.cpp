// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "launcher.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/isnan.h>
#include <c10/musa/MUSACachingAllocator.h>

#include <algorithm>
#include <map>

#include "call_range.h"
#include "errors.h"
#include "events.h"
#include "poller.h"

namespace c10d::mccl {

using c10::musa::MUSAStream;

namespace {

// Whether the stream is being captured into a graph.
bool captures(const MUSAStream& stream) {
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_CHECK(musaStreamIsCapturing(stream.stream(), &status));
  return status != musaStreamCaptureStatusNone;
}

bool transfers_only(const std::vector<Request>& requests) {
  return std::all_of(requests.begin(), requests.end(), [](const Request& request) { return isP2POp(request.type); });
}

std::vector<Operation> operations_of(const std::vector<Request>& requests, int rank) {
  std::vector<Operation> operations;
  operations.reserve(requests.size());
  for (const Request& request : requests) {
    operations.push_back(
        {request.type, request.title, rank, request.peer, Operands(request.inputs), Operands(request.outputs)});
  }
  return operations;
}

} // namespace

Launcher::Launcher(
    const Backend& backend, c10::intrusive_ptr<const Backend::Options> options, const Settings& settings,
    std::shared_ptr<Group> group, std::shared_ptr<Communicators> communicators)
    : backend_(backend),
      options_(std::move(options)),
      settings_(settings),
      group_(std::move(group)),
      communicators_(std::move(communicators)),
      timing_(settings.timing) {}

c10::intrusive_ptr<Work> Launcher::run(Request request) {
  if (coalescing_) {
    coalesced_.push_back(std::move(request));
    return nullptr;
  }
  std::vector<Request> one;
  one.push_back(std::move(request));
  return issue(one, /*coalesced=*/false);
}

void Launcher::start_coalescing() {
  coalesced_.clear();
  coalescing_ = true;
}

c10::intrusive_ptr<Work> Launcher::end_coalescing() {
  coalescing_ = false;
  const std::vector<Request> requests = std::move(coalesced_);
  coalesced_.clear();
  return requests.empty() ? nullptr : issue(requests, /*coalesced=*/true);
}

void Launcher::refuse_nan(const Request& request) const {
  for (const at::Tensor& tensor : request.inputs) {
    if (at::isFloatingType(tensor.scalar_type()) || at::isComplexType(tensor.scalar_type())) {
      TORCH_CHECK_VALUE(
          !at::isnan(tensor).any().item<bool>(), group_->description(), " ", request.title.text(), ": a tensor of ",
          tensor.sizes(), " to be sent contains NaN (checked because of TORCH_MCCL_NAN_CHECK=1).");
    }
  }
}

void Launcher::keep_operands(const Request& request, Launched& launched) const {
  for (const auto* tensors : {&request.inputs, &request.outputs, &request.scratch}) {
    if (!settings_.record_streams) {
      launched.kept.add(*tensors);
      continue;
    }
    for (const at::Tensor& tensor : *tensors) {
      c10::musa::MUSACachingAllocator::recordStream(tensor.storage().data_ptr(), launched.stream);
    }
  }
}

void Launcher::record(std::shared_ptr<const Operation> operation, const std::shared_ptr<Launched>& launched) {
  launched->records.push_back(
      Recorder::instance().record(
          {group_->number(), group_->name(), std::move(operation), collectives_, transfers_, ++operations_,
           launched->p2p, launched->timeout},
          launched->captured ? std::weak_ptr<const Progress>() : launched));
}

std::shared_ptr<Launched> Launcher::prepare(
    const std::vector<Request>& requests, bool coalesced, const std::vector<Route>& routes, const MUSAStream& current,
    bool capturing) {
  const Request& first = requests.front();
  const bool transfers = transfers_only(requests);
  const uint64_t seq = transfers ? ++transfers_ : ++collectives_;
  const auto operations = std::make_shared<const Operations>(
      Operations{seq, coalesced ? Title("mccl:coalesced") : first.title, operations_of(requests, group_->rank())});

  auto launched =
      std::make_shared<Launched>(timing_.load(), first.async ? routes.front().comm->stream : current, capturing);
  launched->type = coalesced ? OpType::COALESCED : first.type;
  launched->p2p = transfers;
  launched->operations = operations;
  for (const Route& route : routes) {
    launched->comms.push_back(route.comm);
  }
  launched->timeout = first.timeout == kUnsetTimeout ? options_->timeout : first.timeout;
  launched->result = c10::make_intrusive<c10::ivalue::Future>(c10::IntType::get());
  for (const Operation& operation : operations->parts) {
    record(std::shared_ptr<const Operation>(operations, &operation), launched);
  }
  if (coalesced) {
    record(std::make_shared<const Operation>(Operation{OpType::COALESCED, operations->title}), launched);
  }
  return launched;
}

c10::intrusive_ptr<Work> Launcher::issue(const std::vector<Request>& requests, bool coalesced) {
  group_->free_operands();
  group_->check();
  TORCH_CHECK(!closed_, group_->description(), " was shut down.");
  if (!named_) {
    named_ = true;
    // torch sets the description after creating the group, without a notification
    name_group(*group_, backend_, *options_);
  }
  // torch.distributed's operators are not differentiable, so tensors that require gradients may be written to.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const Request& first = requests.front();
  const c10::Device device = first.device;
  for (const Request& request : requests) {
    TORCH_CHECK_VALUE(
        request.device == device, "Coalesced calls must use one device, but use ", device, " and ", request.device,
        ".");
  }
  const c10::musa::MUSAGuard on_device(device);
  const MUSAStream current = c10::musa::getCurrentMUSAStream(device.index());
  const bool capturing = captures(current);
  if (settings_.nan_check && !capturing) {
    std::for_each(requests.begin(), requests.end(), [this](const Request& request) { refuse_nan(request); });
  }

  const std::vector<Route> routes = routes_of(requests, coalesced);
  std::vector<Communicator::Lock> locks;
  std::vector<mcclComm_t> handles;
  for (const Route& route : routes) {
    locks.push_back(route.comm->lock());
    handles.push_back(route.comm->handle());
  }

  const auto launched = prepare(requests, coalesced, routes, current, capturing);
  std::vector<at::Tensor> inputs, outputs;
  for (const Request& request : requests) {
    inputs.insert(inputs.end(), request.inputs.begin(), request.inputs.end());
    outputs.insert(outputs.end(), request.outputs.begin(), request.outputs.end());
  }
  {
    const CallRange range(*group_, *launched, first, inputs, outputs);
    put_on_stream(requests, *launched, routes, handles, current);
  }
  if (launched->stream != current) {
    for (const Request& request : requests) {
      keep_operands(request, *launched);
    }
  }
  auto work = c10::make_intrusive<WorkMCCL>(group_, launched, outputs, launched->operations->title.text(), inputs);
  if (!capturing) {
    for (const Route& route : routes) {
      route.comm->issued_on(launched->stream, launched->end);
    }
    if (group_->add(launched)) {
      Poller::instance().kick(*group_);
    }
  }
  group_->check(); // the group may have failed meanwhile, and the call with it
  return work;
}

// A send between two ranks must not wait for a third one, so pairs of ranks have communicators of their own. A batch of
// transfers uses that of all ranks if there is one: creating it is a collective, so its ranks agree on that. In a group
// that is bound to a device, all ranks are connected already.
std::vector<Launcher::Route> Launcher::routes_of(const std::vector<Request>& requests, bool coalesced) const {
  const c10::Device device = requests.front().device;
  const bool pairs = transfers_only(requests) && !backend_.getBoundDeviceId().has_value() &&
      !(coalesced && communicators_->has_all(device));
  std::map<int, std::vector<const Request*>> by_peer;
  for (const Request& request : requests) {
    by_peer[pairs ? request.peer : -1].push_back(&request);
  }
  std::vector<Route> routes;
  if (!pairs) {
    routes.push_back({communicators_->of_all(device), std::nullopt, std::move(by_peer[-1])});
    return routes;
  }
  // In the order of the peers, which is the same order of pairs on every rank: so neither the creation of the
  // communicators nor their calls on one stream wait for each other in a circle.
  for (auto& [peer, its] : by_peer) {
    auto comm = communicators_->of_pair(peer, device);
    const int other = comm->ranks - 1 - comm->rank; // 0 in the communicator of a rank with itself
    routes.push_back({std::move(comm), other, std::move(its)});
  }
  return routes;
}

void Launcher::put_on_stream(
    const std::vector<Request>& requests, Launched& launched, const std::vector<Route>& routes,
    const std::vector<mcclComm_t>& handles, const MUSAStream& current) const {
  const MUSAStream& stream = launched.stream;
  if (stream != current) {
    const auto ready = launched.captured ? own_event(false) : pooled_event(current.device_index(), false);
    ready->record(current);
    ready->block(stream);
  }
  if (!launched.captured) {
    for (const Route& route : routes) {
      route.comm->join(stream);
    }
  }
  const c10::musa::MUSAStreamGuard guard(stream);
  for (const Request& request : requests) {
    if (request.before) {
      request.before();
    }
  }
  if (launched.start != nullptr) {
    launched.start->record(stream);
  }
  // Several coalesced MCCL calls, or one.
  MCCL_CHECK(mcclGroupStart());
  try {
    for (size_t i = 0; i < routes.size(); ++i) {
      for (const Request* request : routes[i].requests) {
        request->call(handles[i], stream.stream(), routes[i].peer.value_or(request->peer));
      }
    }
  } catch (...) {
    (void)mcclGroupEnd(); // reports the same error again, and launches nothing
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

} // namespace c10d::mccl
