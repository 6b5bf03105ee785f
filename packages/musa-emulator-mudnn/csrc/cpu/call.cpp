// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/call.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "engine/memory.h"
#include "engine/state.h"
#include "support/alias.h"
#include "support/modes.h"

namespace musa_emulator::dnn {
namespace {

using musa::dnn::HandleAccess;

constexpr unsigned char kWorkPattern = 0xA7;

// The number of threads determines how torch splits sums, and so the last bits of the result. The stream's thread may
// have another number of threads than the caller, because torch initializes it in new threads with the number set last
// by any thread.
class ThreadCount {
 public:
  // 0 keeps the current number.
  explicit ThreadCount(int wanted) : before_(wanted != 0 ? at::get_num_threads() : 0), changed_(wanted != before_) {
    if (changed_) {
      at::set_num_threads(wanted);
    }
  }
  ~ThreadCount() {
    if (changed_) {
      at::set_num_threads(before_);
    }
  }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  const int before_;
  const bool changed_;
};

} // namespace

bool checks_workspace() {
  static const bool checks = [] {
    const char* wish = std::getenv("MUDNN_EMULATOR_CHECK_WORKSPACE");
    if (wish == nullptr || *wish == '\0') {
      return engine().config.strict;
    }
    if (std::strcmp(wish, "0") != 0 && std::strcmp(wish, "1") != 0) {
      std::fprintf(
          stderr,
          "muDNN ERROR# MUDNN_EMULATOR_CHECK_WORKSPACE='%s' is invalid; expected 0 or 1, and 1 is used.\n"
          "Fix: correct it, or unset MUDNN_EMULATOR_CHECK_WORKSPACE\n",
          wish);
    }
    return std::strcmp(wish, "0") != 0;
  }();
  return checks;
}

void WorkArea::poison() const { std::memset(data, kWorkPattern, bytes); }

void WorkArea::check() const {
  // Equality of each byte with the next, and of the first byte with the pattern, checks all bytes with one memcmp.
  if (bytes == 0 || (data[0] == kWorkPattern && std::memcmp(data, data + 1, bytes - 1) == 0)) {
    return;
  }
  const auto other = std::find_if(data, data + bytes, [](unsigned char byte) { return byte != kWorkPattern; });
  throw std::runtime_error(
      "the workspace was overwritten while the operation ran, at byte " + std::to_string(other - data) + " of " +
      std::to_string(bytes) +
      ". Likely cause: the memory maintainer freed the memory before the stream had finished the operation.");
}

Stream* Call::stream_of_handle() {
  Stream* const stream = resolve_stream(HandleAccess::stream(handle_));
  require(stream != nullptr, Status::INVALID_PARAMETER, "the handle's stream has been destroyed");
  return stream;
}

Status Call::submit(Stream& stream, std::shared_ptr<Launch> task) {
  return status_of(musa_emulator::submit(stream, KernelOperation{std::move(task)}));
}

Status Call::wait() {
  Stream* const stream = resolve_stream(HandleAccess::stream(handle_));
  return stream != nullptr ? status_of(synchronize_stream(*stream)) : Status::INVALID_PARAMETER;
}

musaError_t Call::guarded(const char* name, int threads, void (*run)(void*), void* task) {
  const ThreadCount as_the_caller(threads);
  const AliasScope aliases;
  const c10::impl::ExcludeDispatchKeyGuard exclude(above_backends);
  const NoGrad no_grad;
  try {
    run(task);
    return musaSuccess;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muDNN ERROR# EXECUTION_FAILED in %s: %s\n", name, error.what());
    return musaErrorLaunchFailure;
  }
}

} // namespace musa_emulator::dnn
