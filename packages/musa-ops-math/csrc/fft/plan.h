// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/ScalarType.h>
#include <musa_runtime.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>

namespace musa_ops_math::fft {

/// The dimensions that muFFT transforms at once.
inline constexpr size_t kMostDims = 3;

/// The memory of a batch of transforms on one side. Element (i, j, k) of transform b is at
/// b * distance + ((i * embed[1] + j) * embed[2] + k) * stride, in elements of the dtype.
struct Layout {
  std::array<int64_t, kMostDims> embed{};
  int64_t stride = 1;
  int64_t distance = 0;

  auto operator<=>(const Layout&) const = default;
};

/// Everything that a plan depends on besides the device.
struct PlanKey {
  size_t rank = 0;
  std::array<int64_t, kMostDims> sizes{}; // of the transform; of a real transform, the sizes of the real side
  int64_t batch = 1;
  Layout in, out;
  c10::ScalarType in_type = c10::ScalarType::ComplexFloat, out_type = c10::ScalarType::ComplexFloat;

  auto operator<=>(const PlanKey&) const = default;
};

/// A plan of muFFT for the current device. Its workspace is the caller's. Calls of one plan must not overlap.
class Plan {
 public:
  /// Raises RuntimeError, with the sizes, if muFFT refuses them, and OutOfMemoryError if memory for its tables is missing.
  explicit Plan(const PlanKey& key);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  size_t workspace_bytes() const { return workspace_bytes_; }

  /// Enqueues the transform on the stream. Neither direction is scaled.
  void run(void* in, void* out, bool forward, void* workspace, musaStream_t stream);

 private:
  int handle_ = 0;
  size_t workspace_bytes_ = 0;
};

} // namespace musa_ops_math::fft
