// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "transport.h"

#define USE_C10D_GLOO 1 // as torch's wheel is built
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>

#include "meeting.h"

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::minutes kPatienceToConnect{10};
constexpr std::chrono::hours kForever{24 * 365}; // who waits is ended by abort(), as on a device

// One listening socket and one thread for all communicators of the process.
std::shared_ptr<gloo::transport::Device> network() {
  static auto& device = *new std::shared_ptr<gloo::transport::Device>(
      c10d::ProcessGroupGloo::createDeviceForHostname(own_address()));
  return device;
}

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> options() {
  auto options = c10d::ProcessGroupGloo::Options::create(kPatienceToConnect);
  options->devices.push_back(network());
  options->threads = 1; // calls of a communicator run one after the other
  return options;
}

} // namespace

class Transport::Group : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::contexts_;
  using ProcessGroupGloo::ProcessGroupGloo;
};

Transport::Transport(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks)
    : rank_(rank), ranks_(ranks), group_(c10::make_intrusive<Group>(store, rank, ranks, options())) {
  group_->setTimeout(kForever);
}

Transport::~Transport() = default;

void Transport::all_reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op) {
  std::vector<at::Tensor> tensors{values};
  c10d::AllreduceOptions options;
  options.reduceOp = op;
  group_->allreduce(tensors, options)->wait();
}

void Transport::reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op, int root) {
  std::vector<at::Tensor> tensors{values};
  c10d::ReduceOptions options;
  options.reduceOp = op;
  options.rootRank = root;
  group_->reduce(tensors, options)->wait();
}

void Transport::broadcast(const at::Tensor& values, int root) {
  std::vector<at::Tensor> tensors{values};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  group_->broadcast(tensors, options)->wait();
}

void Transport::all_gather(const at::Tensor& all, const at::Tensor& own) {
  at::Tensor output = all, input = own;
  group_->_allgather_base(output, input)->wait();
}

c10::intrusive_ptr<c10d::Work> Transport::send(const at::Tensor& values, int peer, int tag) {
  std::vector<at::Tensor> tensors{values};
  return group_->send(tensors, peer, tag);
}

c10::intrusive_ptr<c10d::Work> Transport::recv(const at::Tensor& values, int peer, int tag) {
  std::vector<at::Tensor> tensors{values};
  return group_->recv(tensors, peer, tag);
}

void Transport::barrier() {
  group_->barrier()->wait();
}

void Transport::abort(const std::string& reason) {
  for (const auto& context : group_->contexts_) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank_) {
        static_cast<gloo::transport::tcp::Pair*>(context->getPair(peer).get())->signalExceptionExternal(reason);
      }
    }
  }
}

} // namespace musa_emulator::mccl
