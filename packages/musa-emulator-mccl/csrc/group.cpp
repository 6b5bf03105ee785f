// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "group.h"

#include <algorithm>
#include <thread>

#include "log.h"

namespace musa_emulator::mccl {
namespace {

mcclResult_t run_together(const std::vector<std::function<mcclResult_t()>>& joins) {
  std::vector<mcclResult_t> results(joins.size(), mcclSuccess);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < joins.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = joins[i](); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto failed = std::find_if(results.begin(), results.end(), [](mcclResult_t r) { return r != mcclSuccess; });
  return failed != results.end() ? *failed : mcclSuccess;
}

} // namespace

mcclResult_t result_of(musaError_t status) {
  switch (status) {
    case musaSuccess: return mcclSuccess;
    case musaErrorInvalidValue: return mcclInvalidArgument;
    case musaErrorMemoryAllocation:
    case musaErrorOperatingSystem: return mcclSystemError;
    default: return mcclUnhandledMusaError;
  }
}

Group& Group::of_this_thread() {
  thread_local Group group;
  return group;
}

mcclResult_t Group::add(Issued call) {
  calls_.push_back(std::move(call));
  return depth_ == 0 ? launch() : mcclSuccess;
}

mcclResult_t Group::add(std::function<mcclResult_t()> joins) {
  if (depth_ == 0) {
    return joins();
  }
  joins_.push_back(std::move(joins));
  return mcclSuccess;
}

mcclResult_t Group::refused(mcclResult_t result) {
  if (depth_ != 0 && refused_ == mcclSuccess) {
    refused_ = result;
  }
  return result;
}

mcclResult_t Group::end() {
  if (depth_ == 0) {
    return refuse(mcclInvalidUsage, "mcclGroupEnd", "no group is open on this thread");
  }
  if (--depth_ != 0) {
    return mcclSuccess;
  }
  const auto joins = std::move(joins_);
  joins_.clear();
  if (const mcclResult_t before = std::exchange(refused_, mcclSuccess); before != mcclSuccess) {
    calls_.clear();
    return before;
  }
  if (const mcclResult_t joined = run_together(joins); joined != mcclSuccess) {
    calls_.clear();
    return joined;
  }
  return launch();
}

mcclResult_t Group::launch() {
  const std::vector<Issued> calls = std::move(calls_);
  calls_.clear();
  // Starts all transfers of a communicator at once, at the position of the first one: they may depend on each other
  // in any order.
  std::vector<const Issued*> done;
  for (const Issued& call : calls) {
    std::shared_ptr<Launch> launch = call.collective;
    if (launch == nullptr) {
      if (std::any_of(done.begin(), done.end(), [&](const Issued* d) { return d->comm == call.comm; })) {
        continue;
      }
      std::vector<Transfer> transfers;
      for (const Issued& other : calls) {
        if (other.comm == call.comm && other.collective == nullptr) {
          transfers.push_back({other.signature, other.memory});
        }
      }
      launch = make_transfers(call.comm, std::move(transfers));
      done.push_back(&call);
    }
    if (const musaError_t status = call.comm->issue(*call.stream, std::move(launch)); status != musaSuccess) {
      return refuse(result_of(status), call.signature.call(), "enqueueing on the stream failed");
    }
  }
  return mcclSuccess;
}

} // namespace musa_emulator::mccl
