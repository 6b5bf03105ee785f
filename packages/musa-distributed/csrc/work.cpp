// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "work.h"

#include <c10/musa/MUSADeferredError.h>

#include <thread>

#include "group.h"

namespace c10d::mccl {

WorkMCCL::WorkMCCL(
    std::shared_ptr<Group> group, std::shared_ptr<Launched> launched, std::vector<at::Tensor> outputs,
    const char* profiling_title, const std::optional<std::vector<at::Tensor>>& inputs)
    : Work(group->rank(), launched->type, profiling_title, inputs),
      group_(std::move(group)),
      launched_(std::move(launched)),
      outputs_(std::move(outputs)) {
  // The profiler's range covers the host's part of the call only; the device's part is in the device trace.
  if (recordFunctionEndCallback_) {
    recordFunctionEndCallback_();
    recordFunctionEndCallback_ = nullptr;
  }
  const auto device = launched_->device();
  future_ = c10::make_intrusive<c10::ivalue::Future>(
      c10::ListType::create(c10::TensorType::get()), std::vector<c10::Device>{device});
  const c10::musa::MUSAStreamGuard guard(launched_->stream);
  future_->markCompleted(c10::IValue(outputs_));
}

bool WorkMCCL::isCompleted() { return launched_->failure() != nullptr || launched_->finished(); }

bool WorkMCCL::isSuccess() const { return launched_->failure() == nullptr && launched_->finished(); }

std::exception_ptr WorkMCCL::exception() const { return launched_->failure(); }

std::vector<at::Tensor> WorkMCCL::result() { return outputs_; }

void WorkMCCL::raise_failure() {
  if (const auto failure = launched_->failure()) {
    c10::musa::forget_deferred_error(failure);
    std::rethrow_exception(failure);
  }
}

void WorkMCCL::synchronize() {
  raise_failure();
  const auto current = c10::musa::getCurrentMUSAStream(launched_->device().index());
  if (current != launched_->stream) {
    launched_->end->block(current);
  }
  // From here on the current stream is ordered after the call, so the allocator may reuse the operands' memory on it.
  launched_->kept.clear();
  group_->free_operands(); // operands that the watchdog has already moved to the group
}

void WorkMCCL::wait_on_host(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::chrono::microseconds pause{20};
  while (!launched_->finished() || launched_->failure() != nullptr) {
    raise_failure();
    if (timeout != kNoTimeout && std::chrono::steady_clock::now() >= deadline) {
      group_->fail(
          ErrorType::TIMEOUT, launched_,
          c10::str("did not finish within ", timeout.count(), " ms, the timeout passed to wait()"));
      raise_failure();
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

bool WorkMCCL::wait(std::chrono::milliseconds timeout) {
  synchronize();
  const bool blocks = launched_->type == OpType::BARRIER || timeout != kNoTimeout || group_->settings().blocking_wait;
  if (blocks && !launched_->captured) {
    wait_on_host(timeout != kNoTimeout ? timeout : group_->settings().blocking_wait ? launched_->timeout : kNoTimeout);
  }
  return true;
}

void WorkMCCL::abort() { group_->abort("was aborted by abort() of one of its calls"); }

c10::intrusive_ptr<c10::ivalue::Future> WorkMCCL::getFuture() { return future_; }

c10::intrusive_ptr<c10::ivalue::Future> WorkMCCL::getFutureResult() { return launched_->result; }

float WorkMCCL::getDuration() const {
  const auto duration = launched_->milliseconds();
  TORCH_CHECK(
      duration.has_value(),
      "The duration of a call is available only after it has finished, and if it is measured.\nFix: wait for it, and "
      "set TORCH_MCCL_ENABLE_TIMING=1 or call _enable_collectives_timing() of the process group.");
  return *duration;
}

uint64_t WorkMCCL::getSequencenumber() const { return launched_->seq(); }

} // namespace c10d::mccl
