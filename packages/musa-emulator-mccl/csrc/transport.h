// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Transfers bytes between ranks with torch's ProcessGroupGloo on CPU tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <string>

namespace musa_emulator::mccl {

// Methods throw std::exception if a peer exited or abort() was called. All methods except abort() are called from one
// thread at a time.
class Transport {
 public:
  // Blocks until all ranks are connected. On one host, all connections use the loopback interface. Throws
  // std::runtime_error if a connection is not from a rank with the same `secret`.
  Transport(
      const c10::intrusive_ptr<c10d::Store>& store, int rank, int ranks, bool one_host, const std::string& secret);
  ~Transport();

  void all_reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op);
  void reduce(const at::Tensor& values, c10d::ReduceOp::RedOpType op, int root);
  void broadcast(const at::Tensor& values, int root);
  // Sends a message from each rank to each: row i of `sent`, or its only row, goes to rank i; row i of `received`,
  // (ranks, elements), comes from rank i. The own row is copied, unless it is already in place.
  void exchange(const at::Tensor& sent, const at::Tensor& received);
  // Tags number the messages from one rank to another; at most kTags messages can be pending.
  static constexpr uint32_t kTags = 1U << 30;
  c10::intrusive_ptr<c10d::Work> send(const at::Tensor& values, int peer, int tag);
  c10::intrusive_ptr<c10d::Work> recv(const at::Tensor& values, int peer, int tag);
  void barrier();

  // Closes all connections; calls of the peers fail too.
  void abort(const std::string& reason);

 private:
  void check_peers(const std::string& secret);

  class Group;
  const int rank_, ranks_;
  uint32_t exchanges_ = 0;
  c10::intrusive_ptr<Group> group_;
};

} // namespace musa_emulator::mccl
