// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace musa_runtime {

// A tensor that the caller holds, or a new one made from it. Borrows instead of adding a reference, because for a tensor
// that Python holds that takes the GIL, which costs as much as a small operator.
class Operand {
 public:
  // The tensor must outlive this.
  static Operand borrowed(const at::Tensor& tensor) { return Operand(c10::MaybeOwned<at::Tensor>::borrowed(tensor)); }
  Operand(at::Tensor&& made) : tensor_(c10::MaybeOwned<at::Tensor>::owned(std::move(made))) {}

  operator const at::Tensor&() const { return *tensor_; }
  const at::Tensor& operator*() const { return *tensor_; }
  const at::Tensor* operator->() const { return tensor_.operator->(); }

 private:
  explicit Operand(c10::MaybeOwned<at::Tensor>&& tensor) : tensor_(std::move(tensor)) {}

  c10::MaybeOwned<at::Tensor> tensor_;
};

inline Operand contiguous(const at::Tensor& tensor, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return tensor.is_contiguous(format) ? Operand::borrowed(tensor) : Operand(tensor.contiguous(format));
}
inline Operand contiguous(at::Tensor&& tensor, at::MemoryFormat format = at::MemoryFormat::Contiguous) {
  return tensor.is_contiguous(format) ? Operand(std::move(tensor)) : Operand(tensor.contiguous(format));
}
inline Operand contiguous(Operand&& tensor) {
  return tensor->is_contiguous() ? std::move(tensor) : Operand(tensor->contiguous());
}

} // namespace musa_runtime
