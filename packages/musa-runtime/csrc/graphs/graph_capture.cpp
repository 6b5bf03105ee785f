// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/graph_capture.h>

#include <c10/musa/MUSAException.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <vector>

namespace musa_runtime {

std::atomic<int> captures_running{0};

namespace {

// The mutex is a leaf.
struct Captures {
  std::mutex mutex;
  std::unordered_map<unsigned long long, GraphCapture*> by_id;
};

Captures& captures() {
  static Captures& instance = *new Captures();
  return instance;
}

} // namespace

GraphCapture::GraphCapture(c10::DeviceIndex device) : device_(device) {}

GraphCapture::~GraphCapture() { end(); }

void GraphCapture::begin(unsigned long long capture_id) {
  capture_id_ = capture_id;
  {
    Captures& all = captures();
    std::lock_guard<std::mutex> lock(all.mutex);
    all.by_id[capture_id] = this;
  }
  registered_ = true;
  captures_running.fetch_add(1, std::memory_order_relaxed);
}

void GraphCapture::end() {
  if (!registered_) {
    return;
  }
  registered_ = false;
  captures_running.fetch_sub(1, std::memory_order_relaxed);
  if (work_ != nullptr) {
    work_->capture_ended();
  }
  Captures& all = captures();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.by_id.erase(capture_id_);
}

GraphCapture* GraphCapture::current() {
  const c10::musa::MUSAStream stream = c10::musa::getCurrentMUSAStream();
  if (stream.id() == 0) {
    return nullptr; // the default stream cannot be captured, and querying it may disturb a capture
  }
  musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
  unsigned long long id = 0;
  C10_MUSA_CHECK(musaStreamGetCaptureInfo_v2(stream.stream(), &status, &id, nullptr, nullptr, nullptr));
  if (status == musaStreamCaptureStatusNone) {
    return nullptr;
  }
  Captures& all = captures();
  std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.by_id.find(id);
  return found == all.by_id.end() ? nullptr : found->second;
}

void GraphCapture::fail(const std::string& reason) {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  if (failure_.empty()) {
    failure_ = reason;
  }
}

std::string GraphCapture::failure() const {
  const std::lock_guard<std::mutex> lock(failure_mutex_);
  return failure_;
}

void GraphCapture::retire(std::unique_ptr<GraphCapture> capture) {
  // Waiting for the replays could mean waiting for a stream that is being captured, so those whose replays still run are put
  // aside.
  static std::mutex& mutex = *new std::mutex(); // guards waiting
  static auto& waiting = *new std::vector<std::unique_ptr<GraphCapture>>();
  std::vector<std::unique_ptr<GraphCapture>> done; // destroyed without the lock
  std::lock_guard<std::mutex> lock(mutex);
  if (capture != nullptr) {
    capture->end();
    waiting.push_back(std::move(capture));
  }
  const auto finished = std::stable_partition(waiting.begin(), waiting.end(), [](const auto& each) {
    return each->work_ != nullptr && each->work_->in_flight();
  });
  std::move(finished, waiting.end(), std::back_inserter(done));
  waiting.erase(finished, waiting.end());
}

bool current_stream_is_recorded() { return GraphCapture::current() != nullptr; }

bool capture_failed() {
  const GraphCapture* capture = GraphCapture::current();
  return capture != nullptr && !capture->failure().empty();
}

void refuse_to_capture(const std::string& op, const std::string& reason) {
  const std::string text = c10::str(
      op, " cannot be captured into a musa graph: ", reason,
      ".\nFix: move the call out of the capture, or use an operator "
      "whose result does not depend on values (torch.where in place of indexing with a mask, a fixed size in place of "
      "nonzero).");
  if (GraphCapture* capture = GraphCapture::current()) {
    capture->fail(text);
  }
  TORCH_CHECK_NOT_IMPLEMENTED(false, text);
}

} // namespace musa_runtime
