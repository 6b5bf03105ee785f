// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The process group of backend "mccl", for tensors on musa.
//
// A call enqueues work on a stream and returns. With async_op that is the communicator's stream: it waits for the
// caller's stream first, and the caller's stream waits for it in Work::wait(). Otherwise the work is enqueued on the
// caller's stream. All ranks of the group must make the same calls in the same order. One thread at a time calls the
// methods; one thread of the process polls all groups.
//
// The class only implements torch's interface: Communicators creates communicators, Launcher enqueues calls on streams,
// Group holds the pending calls and the failure, Poller polls them.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "communicators.h"
#include "group.h"
#include "launcher.h"
#include "settings.h"

namespace c10d {

class ProcessGroupMCCL : public Backend {
 public:
  struct Options : Backend::Options {
    explicit Options(bool high_priority = false);
    static c10::intrusive_ptr<Options> create(bool high_priority = false) {
      return c10::make_intrusive<Options>(high_priority);
    }
    bool is_high_priority_stream; // run its communicators on high-priority streams
  };

  ProcessGroupMCCL(c10::intrusive_ptr<Store> store, int rank, int size, c10::intrusive_ptr<Options> options);
  // Calls shutdown(), but turns its errors into warnings.
  ~ProcessGroupMCCL() override;

  const std::string getBackendName() const override { return "mccl"; }
  c10::intrusive_ptr<Backend::Options> getBackendOptions() override { return options_; }
  bool supportsCoalescing() const override { return true; }
  bool supportsSplitting() const override { return true; }
  bool supportsShrinking() const override { return true; }

  // ---- collectives.cpp

  c10::intrusive_ptr<Work> broadcast(std::vector<at::Tensor>& tensors, const BroadcastOptions& options) override;
  c10::intrusive_ptr<Work> allreduce(std::vector<at::Tensor>& tensors, const AllreduceOptions& options) override;
  c10::intrusive_ptr<Work> allreduce_coalesced(
      std::vector<at::Tensor>& tensors, const AllreduceCoalescedOptions& options) override;
  c10::intrusive_ptr<Work> reduce(std::vector<at::Tensor>& tensors, const ReduceOptions& options) override;
  c10::intrusive_ptr<Work> allgather(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const AllgatherOptions& options) override;
  c10::intrusive_ptr<Work> _allgather_base(
      at::Tensor& output, at::Tensor& input, const AllgatherOptions& options) override;
  c10::intrusive_ptr<Work> allgather_coalesced(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const AllgatherOptions& options) override;
  c10::intrusive_ptr<Work> allgather_into_tensor_coalesced(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const AllgatherOptions& options) override;
  c10::intrusive_ptr<Work> reduce_scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const ReduceScatterOptions& options) override;
  c10::intrusive_ptr<Work> _reduce_scatter_base(
      at::Tensor& output, at::Tensor& input, const ReduceScatterOptions& options) override;
  c10::intrusive_ptr<Work> reduce_scatter_tensor_coalesced(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const ReduceScatterOptions& options) override;
  c10::intrusive_ptr<Work> barrier(const BarrierOptions& options) override;

  // ---- point_to_point.cpp: collectives without an MCCL call, composed of sends and receives

  c10::intrusive_ptr<Work> gather(
      std::vector<std::vector<at::Tensor>>& outputs, std::vector<at::Tensor>& inputs,
      const GatherOptions& options) override;
  c10::intrusive_ptr<Work> scatter(
      std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& inputs,
      const ScatterOptions& options) override;
  c10::intrusive_ptr<Work> alltoall_base(
      at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
      const AllToAllOptions& options) override;
  c10::intrusive_ptr<Work> alltoall(
      std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const AllToAllOptions& options) override;
  // Tags must be 0, because MCCL does not support them.
  c10::intrusive_ptr<Work> send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  c10::intrusive_ptr<Work> recv(std::vector<at::Tensor>& tensors, int peer, int tag) override;

  // ---- process_group.cpp

  // The calls between these two start together and share one Work.
  void startCoalescing() override;
  c10::intrusive_ptr<Work> endCoalescing() override;

  // The new groups use new communicators, because MCCL cannot split one. Ranks outside the new group get nullptr.
  c10::intrusive_ptr<Backend> split(
      const c10::intrusive_ptr<Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<Backend::Options>& options) override;
  c10::intrusive_ptr<Backend> merge(
      const c10::intrusive_ptr<Store>& store, const c10::intrusive_ptr<Backend::Options>& options, const int& rank,
      const int& size) override;
  // Not called by the excluded ranks. With flags == 1, aborts the pending calls of this group first.
  c10::intrusive_ptr<Backend> shrink(
      const std::vector<int64_t>& ranks_to_exclude, int flags,
      const c10::intrusive_ptr<Backend::Options>& options) override;

  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {} // sequence numbers start at 0
  uint64_t getSequenceNumberForGroup() override;
  void setGroupUid(const std::string& uid) override;
  void enableCollectivesTiming() override;
  void registerOnCompletionHook(std::function<void(std::shared_ptr<WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override;
  // Creates the communicator of the device now instead of at the first call.
  void eagerConnectSingleDevice(at::Device device) override;
  ErrorType getError() override;
  void abort() override;
  // Waits for pending collectives, then destroys the communicators.
  void shutdown() override;

 private:
  const c10::intrusive_ptr<Store> store_;
  const c10::intrusive_ptr<Options> options_;
  const std::shared_ptr<mccl::Group> group_;

 public:
  // Python reads the number of communicators created, and of groups split off.
  const std::shared_ptr<mccl::Communicators> communicators;
  uint64_t splits = 0; // number of calls of split(), which all ranks make

 private:
  std::unique_ptr<mccl::Launcher> launcher_;
};

} // namespace c10d
