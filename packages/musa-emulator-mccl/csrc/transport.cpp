// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "transport.h"

#define USE_C10D_GLOO 1 // as torch's wheel is built
#include <c10/util/hash.h>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <chrono>
#include <cstring>
#include <stdexcept>

#include "host.h"

namespace musa_emulator::mccl {
namespace {

constexpr std::chrono::minutes kPatienceToConnect{10};
constexpr std::chrono::hours kForever{24 * 365}; // waits end with abort(), as on a device

using Listener = std::shared_ptr<gloo::transport::Device>;

Listener listen_on(const std::string& address) { return c10d::ProcessGroupGloo::createDeviceForHostname(address); }

// One listening socket and one thread for all communicators of the process between hosts, and one for those within this
// host.
Listener listener(bool one_host) {
  if (one_host) {
    static auto& loopback = *new Listener(listen_on(loopback_address().value_or(own_interface().address)));
    return loopback;
  }
  static auto& network = *new Listener(listen_on(own_interface().address));
  return network;
}

// The message of a rank to another one after connecting. A stranger cannot compute it from the messages it receives.
std::string proof(const std::string& secret, int from, int to) {
  return c10::sha1(secret + ' ' + std::to_string(from) + ' ' + std::to_string(to)).str();
}

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> options(bool one_host) {
  auto options = c10d::ProcessGroupGloo::Options::create(kPatienceToConnect);
  options->devices.push_back(listener(one_host));
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

Transport::Transport(
    const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, bool one_host, const std::string& secret)
    : rank_(rank), ranks_(ranks), group_(c10::make_intrusive<Group>(store, rank, ranks, options(one_host))) {
  check_peers(secret);
  group_->setTimeout(kForever);
}

// Gloo takes any process that connects and sends a small number for a rank.
void Transport::check_peers(const std::string& secret) {
  const auto bytes = static_cast<int64_t>(proof(secret, 0, 0).size());
  const at::Tensor sent = at::empty({ranks_, bytes}, at::kByte), received = at::empty_like(sent);
  for (int peer = 0; peer < ranks_; ++peer) {
    std::memcpy(sent.select(0, peer).mutable_data_ptr(), proof(secret, rank_, peer).data(), static_cast<size_t>(bytes));
  }
  exchange(sent, received);
  for (int peer = 0; peer < ranks_; ++peer) {
    const std::string expected = proof(secret, peer, rank_);
    if (std::memcmp(received.select(0, peer).const_data_ptr(), expected.data(), expected.size()) != 0) {
      throw std::runtime_error(
          "a process that is not of this communicator has connected in place of rank " + std::to_string(peer));
    }
  }
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

void Transport::barrier() { group_->finish(group_->barrier()); }

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
