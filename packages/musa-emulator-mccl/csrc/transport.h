// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Bytes between ranks: torch's ProcessGroupGloo on tensors of the host.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>

namespace musa_emulator::mccl {

// Calls throw std::exception where a peer is gone, or abort() ended them. Calls but abort() come from one thread at a time.
class Transport {
 public:
  // Blocks until all ranks are connected.
  Transport(const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks);
  ~Transport();

  void all_reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op);
  void reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op, int root);
  void broadcast(const at::Tensor& values, int root);
  // Each rank's message to each: row i of `sent` goes to rank i, or all of `sent` to everybody where it is one row; row i of
  // `received`, (ranks, elements), comes from rank i. The own row is copied, unless it lies there already.
  void exchange(const at::Tensor& sent, const at::Tensor& received);
  // The tag counts messages from one rank to another; kTags of them can be under way.
  static constexpr uint32_t kTags = 1U << 30;
  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& values, int peer, int tag);
  c10::intrusive_ptr<c10d::Work> recv(const at::Tensor& values, int peer, int tag);
  void barrier();

  // Ends all connections, here and for the peers.
  void abort(const std::string& reason);

 private:
  class Group;
  const int rank_, ranks_;
  uint32_t exchanges_ = 0;
  c10::intrusive_ptr<Group> group_;
};

} // namespace musa_emulator::mccl
