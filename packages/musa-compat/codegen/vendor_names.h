// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Names that programs for the vendor's package use and the runtime's headers do not have.
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/core/Allocator.h>
#include <c10/musa/MUSAMacros.h>

namespace c10 {
// Also at::kMUSA and torch::kMUSA, which include the names of c10.
constexpr DeviceType kMUSA = DeviceType::PrivateUse1;
} // namespace c10

namespace c10::musa {
using c10::kMUSA;
using c10::MempoolId_t; // as c10::cuda::MempoolId_t
} // namespace c10::musa

namespace at::musa {
inline bool is_musa(const at::TensorBase& tensor) { return tensor.is_privateuseone(); }
} // namespace at::musa
