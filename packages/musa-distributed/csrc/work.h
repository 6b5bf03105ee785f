// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// WorkMCCL is the handle of an enqueued call that the caller gets.
#pragma once

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <optional>
#include <vector>

#include "launched.h"

namespace c10d::mccl {

class Group;

class WorkMCCL : public Work {
 public:
  WorkMCCL(
      std::shared_ptr<Group> group, std::shared_ptr<Launched> launched, std::vector<at::Tensor> outputs,
      const char* profiling_title, const std::optional<std::vector<at::Tensor>>& inputs);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  std::vector<at::Tensor> result() override;
  // Makes the current stream wait for the call. The host waits too for a barrier, with a timeout, or with
  // TORCH_MCCL_BLOCKING_WAIT=1, and then gets the call's failure. Raises DistBackendError.
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override;
  void blockCurrentStream() override { synchronize(); }
  // Aborts the communicators of the group: all its pending calls fail.
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override;
  // Returns milliseconds. Raises an error unless timing is enabled.
  float getDuration() const override;
  uint64_t getSequencenumber() const override;

 private:
  void wait_on_host(std::chrono::milliseconds timeout);
  void raise_failure();

  const std::shared_ptr<Group> group_;
  const std::shared_ptr<Launched> launched_;
  const std::vector<at::Tensor> outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace c10d::mccl
