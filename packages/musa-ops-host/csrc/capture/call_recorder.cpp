// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "call_recorder.h"

#include <ATen/Parallel.h>
#include <c10/musa/MUSADeferredError.h>
#include <c10/musa/MUSAException.h>
#include <c10/util/ApproximateClock.h>
#include <musa_runtime/host/host_seed.h>
#include <musa_runtime/kernel_trace.h>

#include <algorithm>

namespace musa_ops_host {

using c10::IValue;
using musa_runtime::kernel_tracing;
using musa_runtime::TracedKernel;
using torch::jit::Stack;

// Consecutive calls on one stream: one host node.
struct CallRecorder::Sequence {
  Sequence(CallRecorder* recorder, uint64_t traced) : owner(recorder), stream(traced) {}
  ~Sequence() {
    for (const RecordedCall& call : calls) {
      for (const OfferedMemory& each : call.offers) {
        end_graph_use(each.data);
      }
    }
  }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  void add(RecordedCall call) {
    calls.push_back(std::move(call));
    for (const OfferedMemory& each : calls.back().offers) {
      begin_graph_use(each.data);
    }
  }

  CallRecorder* owner;
  uint64_t stream; // for the profiler
  int threads = at::get_num_threads();
  std::vector<RecordedCall> calls;
};

namespace {

struct CaptureInfo {
  const musaGraphNode_t* frontier = nullptr; // the nodes on which the stream's next node will depend
  size_t frontier_size = 0;
};

CaptureInfo capture_info(const c10::musa::MUSAStream& stream) {
  CaptureInfo info;
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  C10_MUSA_CHECK(
      musaStreamGetCaptureInfo_v2(stream.stream(), &status, &id, nullptr, &info.frontier, &info.frontier_size));
  return info;
}

bool same_place(const at::Tensor& made, const at::Tensor& wanted) {
  return made.const_data_ptr() == wanted.const_data_ptr() && made.strides() == wanted.strides();
}

bool is_within(const at::Tensor& made, const std::vector<OfferedMemory>& memory) {
  const auto* data = static_cast<const char*>(made.storage().data());
  return std::any_of(memory.begin(), memory.end(), [data](const OfferedMemory& each) {
    const auto* begin = static_cast<const char*>(each.data);
    return data >= begin && data < begin + each.nbytes;
  });
}

// The kernel stored its results elsewhere, or with other strides than the meta kernel computed.
void move_to_recorded_memory(
    std::vector<std::pair<at::Tensor, const at::Tensor*>>& elsewhere, const std::vector<OfferedMemory>& memory) {
  for (auto& [made, wanted] : elsewhere) {
    if (is_within(made, memory)) {
      made = made.clone(); // it is where another result belongs
    }
  }
  for (const auto& [made, wanted] : elsewhere) {
    wanted->copy_(made);
  }
}

} // namespace

void RecordedCall::run(ReplayScope& scope, Stack& stack, std::vector<OfferedMemory>& scratch) const {
  stack.assign(arguments.begin(), arguments.end());
  if (draw.has_value()) {
    at::Generator generator = draw->generator;
    generator.set_current_seed(
        musa_runtime::host_seed(
            static_cast<uint64_t>(*draw->seed), static_cast<uint64_t>(*draw->offset) + draw->offset_in_graph));
  }
  scratch.assign(offers.begin(), offers.end());
  scope.offer(scratch);
  op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack);
  scope.offer({});

  size_t next = 0;
  std::vector<std::pair<at::Tensor, const at::Tensor*>> elsewhere;
  const auto place_result = [&](const at::Tensor& made) {
    TORCH_CHECK(next < results.size(), "it returned more tensors than when it was captured");
    const at::Tensor& wanted = results[next++];
    if (!wanted.defined()) {
      return;
    }
    TORCH_CHECK(made.defined(), "a result that was recorded at capture is missing");
    if (next > 1 && (made.numel() == 0 || wanted.numel() == 0) && made.numel() != wanted.numel()) {
      // By-products that are not read in this mode: the statistics of batch norm in evaluation, the offsets of an embedding
      // bag. CPU and meta kernels disagree about whether they exist.
      return;
    }
    TORCH_CHECK(
        made.sizes() == wanted.sizes() && made.scalar_type() == wanted.scalar_type(), "its result is ",
        made.scalar_type(), made.sizes(), ", but the capture recorded ", wanted.scalar_type(), wanted.sizes());
    if (made.numel() != 0 && !same_place(made, wanted)) {
      elsewhere.emplace_back(made, &wanted);
    }
  };
  for (const IValue& value : stack) {
    if (value.isTensor()) {
      place_result(value.toTensor());
    } else if (value.isTensorList()) {
      for (const at::Tensor& made : value.toTensorList().vec()) {
        place_result(made);
      }
    } else {
      place_result(at::Tensor());
    }
  }
  if (!elsewhere.empty()) {
    move_to_recorded_memory(elsewhere, offers);
  }
}

CallRecorder::CallRecorder(c10::DeviceIndex device) : device_(device) {}

CallRecorder::~CallRecorder() = default;

CallRecorder& CallRecorder::of_current_capture() {
  musa_runtime::GraphCapture* const capture = musa_runtime::GraphCapture::current();
  TORCH_INTERNAL_ASSERT(capture != nullptr);
  if (capture->work() == nullptr) {
    install_scoped_cpu_allocator(); // its replays offer memory to it
    capture->set_work(std::make_unique<CallRecorder>(capture->device()));
  }
  return static_cast<CallRecorder&>(*capture->work());
}

void CallRecorder::append(RecordedCall call, c10::musa::MUSAStream stream) {
  const CaptureInfo before = capture_info(stream);
  if (before.frontier_size == 1) {
    const auto open = by_node_.find(before.frontier[0]);
    if (open != by_node_.end()) {
      // No other node in between. Work of other streams that waits for this node now also waits for the call: later than
      // necessary, which is allowed.
      open->second->add(std::move(call));
      return;
    }
  }
  auto sequence = std::make_unique<Sequence>(this, musa_runtime::traced_stream(stream));
  sequence->add(std::move(call));
  C10_MUSA_CHECK(musaLaunchHostFunc(stream.stream(), &run_sequence, sequence.get()));
  sequences_.push_back(std::move(sequence)); // immediately: the graph points to it
  const CaptureInfo after = capture_info(stream);
  if (after.frontier_size == 1) {
    by_node_[after.frontier[0]] = sequences_.back().get();
  }
}

void CallRecorder::append_finish(c10::musa::MUSAStream stream) {
  C10_MUSA_CHECK(musaLaunchHostFunc(stream.stream(), &finish_replay, this));
}

// Runs as a host function: must not throw and must not call the SDK.
void CallRecorder::run_sequence(void* argument) {
  const auto& sequence = *static_cast<const Sequence*>(argument);
  if (sequence.owner->failed_.load(std::memory_order_relaxed)) {
    return;
  }
  const RecordedCall* current = nullptr;
  const auto report = [&](const char* cause) {
    sequence.owner->failed_.store(true, std::memory_order_relaxed);
    c10::musa::defer_error(
        c10::str(
            "The replay of a musa graph failed at ",
            current == nullptr ? "its start" : c10::toString(current->op.operator_name()), ": ", cause,
            "\nThe rest of that replay was not run. Likely causes: an index or another value in the graph's "
            "inputs that the operator refuses, or memory that was freed since the capture.\nFix: check what was copied into "
            "the static inputs; run the same operators eagerly to see where they fail."));
  };
  try {
    // A thread of the SDK computes with as many threads as the capturing thread did: their number decides how sums are
    // split, and so their last bits. (torch's default for new threads may differ: a loader's pinning thread sets it to 1.)
    if (at::get_num_threads() != sequence.threads) {
      at::set_num_threads(sequence.threads);
    }
    ReplayScope scope;
    Stack stack;
    std::vector<OfferedMemory> scratch;
    for (const RecordedCall& call : sequence.calls) {
      current = &call;
      const int64_t start = C10_UNLIKELY(kernel_tracing()) ? c10::getTime() : 0;
      call.run(scope, stack, scratch);
      if (C10_UNLIKELY(start != 0)) {
        TracedKernel kernel;
        kernel.name = c10::toString(call.op.operator_name());
        kernel.start = start;
        kernel.end = c10::getTime();
        kernel.device = sequence.owner->device_;
        kernel.stream = sequence.stream;
        musa_runtime::report_traced_kernel(std::move(kernel));
      }
    }
  } catch (const c10::Error& error) {
    report(error.what_without_backtrace());
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("an unknown exception");
  }
}

void CallRecorder::finish_replay(void* argument) {
  auto* recorder = static_cast<CallRecorder*>(argument);
  recorder->failed_.store(false, std::memory_order_relaxed);
  recorder->replays_.fetch_sub(1, std::memory_order_release);
}

} // namespace musa_ops_host
