// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Timer for DistributedDataParallel: measures on the device how long a step computes and communicates, and how much of
// both overlaps.
#include <c10/musa/MUSAEvent.h>
#include <torch/csrc/distributed/c10d/reducer_timer.hpp>

#include <map>

namespace c10d {
namespace {

constexpr int64_t kNanosecondsPerMillisecond = 1'000'000;

class MusaTimer : public Timer {
 public:
  explicit MusaTimer(c10::Device device) : device_(device) {}

  void record(Event event) override {
    Timer::record(event);
    const c10::musa::MUSAGuard guard(device_);
    auto& slot = events_.try_emplace(event, musaEventDefault).first->second;
    slot.record(c10::musa::getCurrentMUSAStream(device_.index()));
  }

  std::optional<int64_t> measureDifference(Event start, Event end) override {
    const auto first = events_.find(start), last = events_.find(end);
    if (first == events_.end() || last == events_.end()) {
      return std::nullopt;
    }
    const c10::musa::MUSAGuard guard(device_);
    first->second.synchronize();
    last->second.synchronize();
    const float milliseconds = first->second.elapsed_time(last->second);
    // Without communication in this iteration, the events come from different iterations.
    return milliseconds < 0 ? std::nullopt
                            : std::optional(static_cast<int64_t>(milliseconds * kNanosecondsPerMillisecond));
  }

 private:
  const c10::Device device_;
  std::map<Event, c10::musa::MUSAEvent> events_;
};

C10_REGISTER_TYPED_CLASS(TimerRegistry, c10::DeviceType::PrivateUse1, MusaTimer);

} // namespace
} // namespace c10d
