// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Arguments of make_in(), which makes torch's functions write their results to the caller's memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace musa_emulator::dnn {

// A hash that is equal for calls with the same allocations.
class Key {
 public:
  explicit Key(size_t start) : value_(start) {}
  void add(int64_t number) { value_ = value_ * 0x100000001b3 ^ static_cast<size_t>(number); }
  void add(const at::Tensor& tensor) {
    add(static_cast<int64_t>(tensor.scalar_type()));
    for (int64_t i = 0; i < tensor.dim(); ++i) {
      add(tensor.size(i));
      add(tensor.stride(i));
    }
  }
  size_t value() const { return value_; }

 private:
  size_t value_;
};

// `start` distinguishes operations.
inline size_t key_of(size_t start, std::initializer_list<const at::Tensor*> tensors) {
  Key key(start);
  for (const at::Tensor* tensor : tensors) {
    if (tensor->defined()) {
      key.add(*tensor);
    }
  }
  return key.value();
}

// Whether a result and an operand overlap in memory, so that a function must not write while it reads.
inline bool overlaps(const at::Tensor& result, std::initializer_list<const at::Tensor*> operands) {
  const auto* const begin = static_cast<const char*>(result.const_data_ptr());
  const auto* const end = begin + result.storage().nbytes();
  return std::any_of(operands.begin(), operands.end(), [begin, end](const at::Tensor* operand) {
    const auto* const first = static_cast<const char*>(operand->const_data_ptr());
    return operand->defined() && begin < first + operand->storage().nbytes() && first < end;
  });
}

} // namespace musa_emulator::dnn
