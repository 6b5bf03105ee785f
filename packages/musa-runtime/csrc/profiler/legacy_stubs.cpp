// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors

// The functions with which torch.autograd.profiler times operators by events instead of activity records:
// profile(use_device="musa", use_kineto=False).

#include <profiler/markers.h>

#include <c10/musa/MUSAGuard.h>
#include <c10/util/ApproximateClock.h>
#include <torch/csrc/profiler/stubs/base.h>

namespace musa_runtime {
namespace {

using torch::profiler::impl::ProfilerStubs;
using torch::profiler::impl::ProfilerVoidEventStub;

musaEvent_t handle(const ProfilerVoidEventStub& event) { return static_cast<musaEvent_t>(event.get()); }

struct MusaStubs final : ProfilerStubs {
  void record(c10::DeviceIndex* device, ProfilerVoidEventStub* event, int64_t* cpu_ns) const override {
    if (device != nullptr) {
      *device = c10::musa::current_device();
    }
    musaEvent_t created = nullptr;
    C10_MUSA_CHECK(musaEventCreate(&created));
    *event = ProfilerVoidEventStub(
        created, [](void* owned) { C10_MUSA_IGNORE_ERROR(musaEventDestroy(static_cast<musaEvent_t>(owned))); });
    if (cpu_ns != nullptr) {
      *cpu_ns = c10::getTime();
    }
    C10_MUSA_CHECK(musaEventRecord(created, c10::musa::getCurrentMUSAStream().stream()));
  }

  // Microseconds.
  float elapsed(const ProfilerVoidEventStub* event, const ProfilerVoidEventStub* event2) const override {
    C10_MUSA_CHECK(musaEventSynchronize(handle(*event)));
    C10_MUSA_CHECK(musaEventSynchronize(handle(*event2)));
    float milliseconds = 0;
    C10_MUSA_CHECK(musaEventElapsedTime(&milliseconds, handle(*event), handle(*event2)));
    return milliseconds * 1000.0f;
  }

  void mark(const char* name) const override { markers::mark(name); }
  void rangePush(const char* name) const override { markers::range_push(name); }
  void rangePop() const override { markers::range_pop(); }
  bool enabled() const override { return true; }
  void onEachDevice(std::function<void(int)> op) const override {
    for (int device = 0; device < c10::musa::device_count(); ++device) {
      const c10::musa::MUSAGuard guard(static_cast<c10::DeviceIndex>(device));
      op(device);
    }
  }
  void synchronize() const override { c10::musa::device_synchronize(); }
};

const bool registered = [] {
  static MusaStubs stubs;
  torch::profiler::impl::registerPrivateUse1Methods(&stubs);
  return true;
}();

} // namespace
} // namespace musa_runtime
