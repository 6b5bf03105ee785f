// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/musa/MUSAGraph.h>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <ATen/musa/PinnedMemoryAllocator.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAMemPool.h>
#include <musa_runtime/graph_capture.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace at::musa {
namespace {

namespace allocator = c10::musa::MUSACachingAllocator;
using c10::musa::MUSAGuard;
using c10::musa::MUSAStreamCaptureModeGuard;
using musa_runtime::GraphCapture;

at::MUSAGeneratorImpl* impl_of(const at::Generator& generator) {
  return at::check_generator<at::MUSAGeneratorImpl>(generator);
}

// Called under the allocators' locks: neither waits nor allocates.
bool belongs_to_capture(musaStream_t stream, unsigned long long capture_id, GraphCapture& capture) {
  if (stream == nullptr || capture_id == 0) {
    return false;
  }
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  if (musaStreamGetCaptureInfo_v2(stream, &status, &id, nullptr, nullptr, nullptr) != musaSuccess) {
    C10_MUSA_CLEAR_ERROR();
    capture.fail("the SDK could not list the streams of the capture, so that memory may come from the wrong pool");
    return false;
  }
  return status != musaStreamCaptureStatusNone && id == capture_id;
}

// The graph is null after an error. Retries after a transient failure, since the stream's owner could not use a stream that
// still captures.
musaError_t end_capture_of(musaStream_t stream, musaGraph_t* graph) {
  const musaError_t error = musaStreamEndCapture(stream, graph);
  if (error == musaSuccess) {
    return error;
  }
  C10_MUSA_CLEAR_ERROR();
  *graph = nullptr;
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  C10_MUSA_IGNORE_ERROR(musaStreamIsCapturing(stream, &status));
  if (status != musaStreamCaptureStatusNone) {
    musaGraph_t discarded = nullptr;
    C10_MUSA_IGNORE_ERROR(musaStreamEndCapture(stream, &discarded));
    if (discarded != nullptr) {
      C10_MUSA_IGNORE_ERROR(musaGraphDestroy(discarded));
    }
  }
  return error;
}

at::HostAllocator* host_allocator() { return at::getHostAllocator(at::kPrivateUse1); }

} // namespace

c10::MempoolId_t graph_pool_handle() { return c10::musa::MemPool::graph_pool_handle(); }

MUSAGraph::MUSAGraph(bool keep_graph) : keep_graph_(keep_graph) {}

MUSAGraph::~MUSAGraph() {
  try {
    reset();
  } catch (const c10::Error& error) {
    TORCH_WARN("A musa graph could not be released: ", error.what_without_backtrace());
  }
}

void MUSAGraph::register_generator_state(const at::Generator& generator) {
  TORCH_CHECK(!capturing_, "Generators must be registered with a graph before its capture begins.");
  const at::MUSAGeneratorImpl* impl = impl_of(generator);
  for (const at::Generator& known : registered_generators_) {
    if (impl_of(known)->shares_state_with(*impl)) {
      return;
    }
  }
  registered_generators_.push_back(generator);
}

void MUSAGraph::capture_begin(c10::MempoolId_t pool, musaStreamCaptureMode capture_mode) {
  TORCH_CHECK(!capturing_, "This graph is being captured already. Fix: capture_end() first.");
  TORCH_CHECK(
      capture_ == nullptr, "This graph holds a capture already. Fix: reset() it first, or capture into a new graph.");
  at::globalContext().lazyInitDevice(c10::DeviceType::PrivateUse1);
  try {
    begin(pool, capture_mode);
  } catch (...) {
    reset();
    throw;
  }
}

void MUSAGraph::begin(c10::MempoolId_t pool, musaStreamCaptureMode mode) {
  capture_dev_ = c10::musa::current_device();
  capture_stream_ = c10::musa::getCurrentMUSAStream(capture_dev_);
  TORCH_CHECK(
      capture_stream_->id() != 0,
      "A graph cannot be captured on the default stream, with which all other streams are in order.\n"
      "Fix: capture in a side stream: with torch.musa.graph(graph): ..., or with torch.musa.stream(torch.musa.Stream()): ...");
  TORCH_CHECK(GraphCapture::current() == nullptr, "The current stream is being captured into another graph already.");
  GraphCapture::retire(nullptr); // frees the work of earlier graphs whose replays have ended
  mempool_id_ =
      pool.first == 0 && pool.second == 0 ? c10::musa::MemPool::graph_pool_handle(/*is_user_created=*/false) : pool;
  host_pool_id_ =
      c10::musa::MemPool::graph_pool_handle(/*is_user_created=*/false); // pinned memory is not shared between graphs

  register_generator_state(at::musa::detail::getDefaultMUSAGenerator(capture_dev_));
  // Not from the pool: replays write it, on any stream, and captured work only reads it.
  seeds_ = at::detail::empty_strided_generic(
      {static_cast<int64_t>(registered_generators_.size()), 2}, {2, 1}, allocator::get(),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), at::kLong);
  capture_ = std::make_unique<GraphCapture>(capture_dev_);

  allocator::markCaptureBegin(capture_dev_);
  marked_ = true;
  allocator::beginAllocateToPool(capture_dev_, mempool_id_, [this](musaStream_t stream) {
    return belongs_to_capture(stream, capture_id_, *capture_);
  });
  filling_pool_ = holds_pool_ = true;
  host_allocator()->begin_allocate_to_pool(host_pool_id_, [this](c10::Stream stream) {
    return belongs_to_capture(c10::musa::MUSAStream(stream).stream(), capture_id_, *capture_);
  });
  filling_host_pool_ = holds_host_pool_ = true;

  C10_MUSA_CHECK(musaStreamBeginCapture(capture_stream_->stream(), mode));
  capturing_ = true;
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  C10_MUSA_CHECK(musaStreamGetCaptureInfo_v2(capture_stream_->stream(), &status, &id, nullptr, nullptr, nullptr));
  capture_id_.store(id);
  capture_->begin(id);

  auto* seeds = static_cast<int64_t*>(seeds_.mutable_data_ptr());
  for (at::Generator generator : registered_generators_) {
    std::lock_guard<std::mutex> lock(generator.mutex());
    impl_of(generator)->capture_prologue(id, seeds, seeds + 1);
    generators_.push_back({generator, 0, true});
    seeds += 2;
  }
}

// Ends everything that a capture begins. Does not throw: the caller may be handling another error.
musaError_t MUSAGraph::stop_capture(musaGraph_t* graph) {
  musaError_t error = musaSuccess;
  if (capturing_) {
    capturing_ = false;
    error = end_capture_of(capture_stream_->stream(), graph);
  }
  capture_id_.store(0);
  if (capture_ != nullptr) {
    capture_->end();
  }
  for (CapturedGenerator& each : generators_) {
    if (each.capturing) {
      each.capturing = false;
      std::lock_guard<std::mutex> lock(each.generator.mutex());
      each.increment = impl_of(each.generator)->capture_epilogue();
    }
  }
  if (filling_pool_) {
    filling_pool_ = false;
    allocator::endAllocateToPool(capture_dev_, mempool_id_);
  }
  if (filling_host_pool_) {
    filling_host_pool_ = false;
    host_allocator()->end_allocate_to_pool(host_pool_id_);
  }
  if (marked_) {
    marked_ = false;
    allocator::markCaptureEnd(capture_dev_);
  }
  return error;
}

void MUSAGraph::capture_end() {
  TORCH_CHECK(capturing_, "No capture into this graph is in progress. Fix: capture_begin() first.");
  const MUSAGuard guard(capture_dev_);
  std::string failure;
  try {
    if (musa_runtime::HostWork* work = capture_->work()) {
      work->append_finish(*capture_stream_);
    }
  } catch (const c10::Error& error) {
    failure = error.what_without_backtrace(); // the capture is invalid, as its end will report too
  }
  const musaError_t error = stop_capture(&graph_);
  if (!capture_->failure().empty()) {
    failure = capture_->failure();
  }
  if (error != musaSuccess || !failure.empty()) {
    reset();
    TORCH_CHECK(failure.empty(), "The capture of a musa graph failed, and was discarded. First cause: ", failure);
    c10::musa::throw_musa_error(error, "musaStreamEndCapture(stream, &graph)", __func__, __FILE__, __LINE__);
  }
  try {
    size_t nodes = 0;
    C10_MUSA_CHECK(musaGraphGetNodes(graph_, nullptr, &nodes));
    if (nodes == 0) {
      TORCH_WARN(
          "The captured musa graph is empty. Likely cause: the work was queued on another stream or device than the "
          "captured one.");
    }
    if (!keep_graph_) {
      instantiate();
    }
  } catch (...) {
    reset();
    throw;
  }
}

void MUSAGraph::instantiate() {
  TORCH_CHECK(
      graph_ != nullptr && !capturing_,
      "There is no captured graph to instantiate. Fix: capture one, with keep_graph=True if it is to be instantiated again.");
  const MUSAGuard guard(capture_dev_);
  destroy_exec();
  const MUSAStreamCaptureModeGuard relaxed; // another thread may be capturing
  C10_MUSA_CHECK(musaGraphInstantiate(&graph_exec_, graph_, nullptr, nullptr, 0));
  if (!keep_graph_ && !debug_) {
    destroy_graph();
  }
}

// In stream order, so that a replay that has not run yet keeps its numbers. From pinned memory, which is reused only after
// the copy: the copy may run after the call has returned.
void MUSAGraph::fill_seeds() {
  const auto draws = [](const CapturedGenerator& each) { return each.increment != 0; };
  if (std::none_of(generators_.begin(), generators_.end(), draws)) {
    return;
  }
  const size_t nbytes = seeds_.nbytes();
  at::HostAllocator* const pinned = at::musa::getPinnedMemoryAllocator();
  const c10::DataPtr memory = pinned->allocate(nbytes);
  auto* const values = static_cast<int64_t*>(memory.get());
  std::memset(values, 0, nbytes);
  for (size_t i = 0; i < generators_.size(); ++i) {
    CapturedGenerator& each = generators_[i];
    if (draws(each)) {
      std::lock_guard<std::mutex> lock(each.generator.mutex());
      const auto [seed, offset] = impl_of(each.generator)->replay_prologue(each.increment);
      values[2 * i] = static_cast<int64_t>(seed);
      values[2 * i + 1] = static_cast<int64_t>(offset);
    }
  }
  const c10::musa::MUSAStream stream = c10::musa::getCurrentMUSAStream(capture_dev_);
  allocator::recordStream(seeds_.storage().data_ptr(), stream);
  C10_MUSA_CHECK(musaMemcpyAsync(seeds_.mutable_data_ptr(), values, nbytes, musaMemcpyHostToDevice, stream.stream()));
  pinned->record_event(values, memory.get_context(), stream.unwrap());
}

void MUSAGraph::replay() {
  TORCH_CHECK(!capturing_, "A graph cannot be replayed while it is being captured. Fix: capture_end() first.");
  TORCH_CHECK(
      graph_exec_ != nullptr || graph_ != nullptr,
      "There is nothing to replay. Likely causes: nothing was captured into this graph, the capture failed, or reset() was "
      "called.");
  if (graph_exec_ == nullptr) {
    instantiate();
  }
  const MUSAGuard guard(capture_dev_);
  TORCH_CHECK(
      !musa_runtime::capturing(),
      "A graph cannot be replayed inside the capture of another. Fix: replay one after the other.");
  fill_seeds();
  musa_runtime::HostWork* const work = capture_->work();
  if (work != nullptr) {
    work->replay_begins();
  }
  const musaError_t error = musaGraphLaunch(graph_exec_, c10::musa::getCurrentMUSAStream(capture_dev_).stream());
  if (C10_UNLIKELY(error != musaSuccess)) {
    if (work != nullptr) {
      work->replay_refused();
    }
    c10::musa::throw_musa_error(error, "musaGraphLaunch(graph_exec, stream)", __func__, __FILE__, __LINE__);
  }
}

void MUSAGraph::destroy_graph() {
  if (graph_ != nullptr) {
    C10_MUSA_IGNORE_ERROR(musaGraphDestroy(std::exchange(graph_, nullptr)));
  }
}

void MUSAGraph::destroy_exec() {
  if (graph_exec_ != nullptr) {
    const MUSAStreamCaptureModeGuard relaxed;
    C10_MUSA_IGNORE_ERROR(musaGraphExecDestroy(std::exchange(graph_exec_, nullptr)));
  }
}

void MUSAGraph::reset() {
  musaGraph_t unfinished = nullptr;
  (void)stop_capture(&unfinished);
  if (unfinished != nullptr) {
    C10_MUSA_IGNORE_ERROR(musaGraphDestroy(unfinished));
  }
  destroy_exec();
  destroy_graph();
  generators_.clear();
  if (capture_ != nullptr) {
    GraphCapture::retire(std::move(capture_));
  }
  seeds_ = at::Tensor();
  if (std::exchange(holds_host_pool_, false)) {
    host_allocator()->release_pool(host_pool_id_);
  }
  if (std::exchange(holds_pool_, false)) {
    allocator::releasePool(capture_dev_, mempool_id_);
  }
  capture_stream_.reset();
}

c10::MempoolId_t MUSAGraph::pool() const {
  TORCH_CHECK(holds_pool_, "A graph has a pool from its capture until its reset; this one was not captured.");
  return mempool_id_;
}

void MUSAGraph::enable_debug_mode() { debug_ = true; }

void MUSAGraph::debug_dump(const std::string& path) {
  C10_MUSA_CHECK(musaGraphDebugDotPrint(raw_musa_graph(), path.c_str(), musaGraphDebugDotFlagsVerbose));
}

musaGraph_t MUSAGraph::raw_musa_graph() const {
  TORCH_CHECK(
      graph_ != nullptr,
      "The SDK's graph does not exist. Likely causes: nothing was captured, or it was released after it had been "
      "instantiated.\nFix: enable_debug_mode() before the capture, or MUSAGraph(keep_graph=True).");
  return graph_;
}

musaGraphExec_t MUSAGraph::raw_musa_graph_exec() const {
  TORCH_CHECK(graph_exec_ != nullptr, "The graph is not instantiated. Fix: capture it, then instantiate().");
  return graph_exec_;
}

} // namespace at::musa
