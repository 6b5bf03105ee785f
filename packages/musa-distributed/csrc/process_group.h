// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The process group of backend "mccl", for tensors on musa.
//
// A call is put on a stream and returns. With async_op that is the communicator's own stream, which waits for the caller's
// first and for which the caller's waits in Work::wait(); otherwise it is the caller's stream. All ranks of the group must make
// the same calls in the same order. Methods are called by one thread at a time; the watchdog is the group's own.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "communicator.h"
#include "group.h"
#include "settings.h"
#include "watchdog.h"
#include "work.h"

namespace c10d {

namespace mccl {

// What a method asks of the group: which tensors, and what is done with them on the stream.
struct Request {
  OpType type;
  const char* name; // as the flight recorder knows it: "all_reduce"
  std::vector<at::Tensor> inputs, outputs;
  std::chrono::milliseconds timeout = kUnsetTimeout;
  bool async = true;
  int peer = -1; // of send and recv
  c10::Device device = c10::Device(c10::kPrivateUse1, -1);
  // Calls of MCCL, all for this communicator and stream; the peer is the rank there.
  std::function<void(mcclComm_t comm, musaStream_t stream, int peer)> call;
  // What goes with it on the stream, as operators of torch; tensors that live until the call has ended.
  std::function<void()> before, after;
  std::vector<at::Tensor> scratch;
};

} // namespace mccl

class ProcessGroupMCCL : public Backend {
 public:
  struct Options : Backend::Options {
    explicit Options(bool high_priority = false);
    static c10::intrusive_ptr<Options> create(bool high_priority = false) {
      return c10::make_intrusive<Options>(high_priority);
    }
    bool is_high_priority_stream; // its communicators run on streams of high priority
  };

  ProcessGroupMCCL(c10::intrusive_ptr<Store> store, int rank, int size, c10::intrusive_ptr<Options> options);
  // As shutdown(), but what goes wrong is a warning.
  ~ProcessGroupMCCL() override;

  const std::string getBackendName() const override {
    return "mccl";
  }
  c10::intrusive_ptr<Backend::Options> getBackendOptions() override {
    return options_;
  }
  bool supportsCoalescing() const override {
    return true;
  }
  bool supportsSplitting() const override {
    return true;
  }
  bool supportsShrinking() const override {
    return true;
  }

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

  // ---- point_to_point.cpp: what MCCL has no call for is made of sends and receives

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
  // Tags must be 0: MCCL has none.
  c10::intrusive_ptr<Work> send(std::vector<at::Tensor>& tensors, int peer, int tag) override;
  c10::intrusive_ptr<Work> recv(std::vector<at::Tensor>& tensors, int peer, int tag) override;

  // ---- process_group.cpp

  // Calls in between start together and share one Work.
  void startCoalescing() override;
  c10::intrusive_ptr<Work> endCoalescing() override;

  // New groups on new communicators: MCCL cannot split one. Ranks outside get null.
  c10::intrusive_ptr<Backend> split(
      const c10::intrusive_ptr<Store>& store, const std::vector<int>& ranks,
      const c10::intrusive_ptr<Backend::Options>& options) override;
  c10::intrusive_ptr<Backend> merge(
      const c10::intrusive_ptr<Store>& store, const c10::intrusive_ptr<Backend::Options>& options, const int& rank,
      const int& size) override;
  // The excluded ranks do not call it. flags 1 aborts what this group has under way first.
  c10::intrusive_ptr<Backend> shrink(
      const std::vector<int64_t>& ranks_to_exclude, int flags,
      const c10::intrusive_ptr<Backend::Options>& options) override;

  void setTimeout(std::chrono::milliseconds timeout) override;
  void setSequenceNumberForGroup() override {} // each starts at 0
  uint64_t getSequenceNumberForGroup() override;
  void setGroupUid(const std::string& uid) override;
  void enableCollectivesTiming() override;
  void registerOnCompletionHook(std::function<void(std::shared_ptr<WorkInfo>)>&& hook) override;
  void waitForPendingWorks() override;
  // Makes the communicator of the device now, and not at the first call.
  void eagerConnectSingleDevice(at::Device device) override;
  ErrorType getError() override;
  void abort() override;
  // Waits for what is under way, and gives the communicators back.
  void shutdown() override;

  // How many communicators were made.
  uint64_t communicators_made() const {
    return communicators_made_;
  }

 private:
  // Puts the call on its stream, or, while calls are coalesced, keeps it for later and returns null.
  c10::intrusive_ptr<Work> run(mccl::Request request);
  c10::intrusive_ptr<Work> issue(const std::vector<mccl::Request>& requests, bool coalesced);
  void put_on_stream(
      const std::vector<mccl::Request>& requests, mccl::Launched& launched, mcclComm_t handle, int peer,
      const c10::musa::MUSAStream& current);
  void record(
      const mccl::Request& request, mccl::Launched& launched, const std::shared_ptr<const mccl::Progress>& progress);
  void keep_operands(const mccl::Request& request, mccl::Launched& launched) const;
  void look_for_nan(const mccl::Request& request) const;
  std::string describe(const mccl::Request& request, uint64_t seq) const;
  void name_group();

  std::shared_ptr<mccl::Communicator> communicator(const c10::Device& device);
  std::shared_ptr<mccl::Communicator> communicator_for(const mccl::Request& request, int* peer);
  std::shared_ptr<mccl::Communicator> make_communicator(
      const std::string& key, const std::string& where, const c10::Device& device, int rank, std::vector<int> members);

  c10::Device device_of_barrier(const BarrierOptions& options) const;
  c10::intrusive_ptr<ProcessGroupMCCL> child(
      const c10::intrusive_ptr<Store>& store, int rank, int size, const c10::intrusive_ptr<Backend::Options>& options,
      const std::vector<int64_t>& parents) const;

  const c10::intrusive_ptr<Store> store_;
  const c10::intrusive_ptr<Options> options_;
  const mccl::Settings settings_;
  std::atomic<bool> timing_;
  std::shared_ptr<mccl::Group> group_;
  std::map<std::string, std::shared_ptr<mccl::Communicator>> communicators_;
  uint64_t communicators_made_ = 0;
  uint64_t collectives_ = 0, transfers_ = 0, operations_ = 0, shrinks_ = 0;
  bool described_ = false, closed_ = false;

  bool coalescing_ = false; // between startCoalescing and endCoalescing
  std::vector<mccl::Request> coalesced_;

  std::unique_ptr<mccl::Watchdog> watchdog_; // last: it uses the group
};

} // namespace c10d
