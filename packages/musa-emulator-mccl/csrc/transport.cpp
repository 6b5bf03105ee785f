// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "transport.h"

#define USE_C10D_GLOO 1 // as torch's wheel is built
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <cstring>

#include "host.h"

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::minutes kPatienceToConnect{10};
constexpr std::chrono::hours kForever{24 * 365}; // waits end with abort(), as on a device

// One listening socket and one thread for all communicators of the process.
std::shared_ptr<gloo::transport::Device> network() {
  static auto& device = *new std::shared_ptr<gloo::transport::Device>(
      c10d::ProcessGroupGloo::createDeviceForHostname(own_interface().address));
  return device;
}

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> options() {
  auto options = c10d::ProcessGroupGloo::Options::create(kPatienceToConnect);
  options->devices.push_back(network());
  options->threads = 0; // calls run on the calling thread: see Group::finish
  return options;
}

} // namespace

class Transport::Group : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::contexts_;
  using ProcessGroupGloo::ProcessGroupGloo;

  // Runs the collective that is in the group's queue. A worker thread would cost two context switches per call while
  // this thread waits for it.
  void finish(const c10::intrusive_ptr<c10d::Work>& work) {
    while (true) {
      c10::intrusive_ptr<AsyncWork> next;
      {
        const std::lock_guard lock(workMutex_);
        if (workQueue_.empty()) {
          break;
        }
        next = std::move(workQueue_.front());
        workQueue_.pop_front();
      }
      AsyncWork::execute(next);
    }
    work->wait(); // rethrows the error of the collective
  }
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
  group_->finish(group_->allreduce(tensors, options));
}

void Transport::reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op, int root) {
  std::vector<at::Tensor> tensors{values};
  c10d::ReduceOptions options;
  options.reduceOp = op;
  options.rootRank = root;
  group_->finish(group_->reduce(tensors, options));
}

void Transport::broadcast(const at::Tensor& values, int root) {
  std::vector<at::Tensor> tensors{values};
  c10d::BroadcastOptions options;
  options.rootRank = root;
  group_->finish(group_->broadcast(tensors, options));
}

// Sends one message each way between any two ranks, where Gloo's algorithms send many: on one machine, waking threads
// costs more than copying bytes.
void Transport::exchange(const at::Tensor& sent, const at::Tensor& received) {
  const int tag = static_cast<int>(kTags | (++exchanges_ % kTags)); // distinct from the tags of other messages
  const auto row_for = [&](int peer) { return sent.select(0, sent.size(0) == 1 ? 0 : peer); };
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_) {
      works.push_back(recv(received.select(0, peer), peer, tag));
      works.push_back(send(row_for(peer), peer, tag));
    }
  }
  const at::Tensor from = row_for(rank_), to = received.select(0, rank_);
  std::memmove(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
  for (const auto& work : works) {
    work->wait();
  }
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
  group_->finish(group_->barrier());
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
