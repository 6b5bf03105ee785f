// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/DimVector.h>
#include <ATen/ExpandUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/expand_native.h>
#include <ATen/ops/permute_native.h>
#include <ATen/ops/select_native.h>
#include <ATen/ops/slice_native.h>
#include <ATen/ops/squeeze_native.h>
#include <ATen/ops/t_native.h>
#include <ATen/ops/transpose_native.h>
#include <ATen/ops/unsqueeze_native.h>
#include <c10/musa/MUSACompat.h>
#include <torch/library.h>

#include <algorithm>
#include <bitset>

// Views of strided tensors. torch's kernels of these operators reach as_strided through the dispatcher, which takes more
// than half of their time. Each kernel here calls torch's kernel of the same operator for named tensors, for arguments that
// torch refuses, and in a few rare cases.

namespace at::musa {
namespace {

Tensor view_of(const Tensor& self, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  Tensor view =
      at::detail::make_tensor<TensorImpl>(TensorImpl::VIEW, Storage(self.storage()), self.key_set(), self.dtype());
  at::native::setStrided(view, sizes, strides, offset); // refuses a view that is not within the storage
  return view;
}

// Converts a dimension that may be negative. Returns false for one that a tensor of `count` dimensions does not have.
bool wrap(int64_t& dim, int64_t count) {
  dim += dim < 0 ? count : 0;
  return dim >= 0 && dim < count;
}

// Both dimensions are valid.
Tensor exchanged(const Tensor& self, int64_t dim0, int64_t dim1) {
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  std::swap(sizes[dim0], sizes[dim1]);
  std::swap(strides[dim0], strides[dim1]);
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  int64_t first = dim0;
  int64_t second = dim1;
  if (c10::musa::has_names(self) || !wrap(first, self.dim()) || !wrap(second, self.dim()) || first == second) {
    return at::native::transpose(self, dim0, dim1);
  }
  return exchanged(self, first, second);
}

Tensor t(const Tensor& self) {
  return self.dim() == 2 && !c10::musa::has_names(self) ? exchanged(self, 0, 1) : at::native::t(self);
}

Tensor permute(const Tensor& self, IntArrayRef dims) {
  constexpr int64_t kMost = 64;
  const int64_t count = self.dim();
  if (c10::musa::has_names(self) || static_cast<int64_t>(dims.size()) != count || count > kMost) {
    return at::native::permute(self, dims);
  }
  DimVector sizes(count);
  DimVector strides(count);
  std::bitset<kMost> seen;
  for (int64_t i = 0; i < count; ++i) {
    int64_t dim = dims[i];
    if (!wrap(dim, count) || seen[dim]) {
      return at::native::permute(self, dims);
    }
    seen[dim] = true;
    sizes[i] = self.sizes()[dim];
    strides[i] = self.strides()[dim];
  }
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  int64_t wrapped = dim;
  int64_t place = index;
  if (c10::musa::has_names(self) || !wrap(wrapped, self.dim()) || !wrap(place, self.sizes()[wrapped])) {
    return at::native::select_symint(self, dim, index);
  }
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  const int64_t offset = self.storage_offset() + place * strides[wrapped];
  sizes.erase(sizes.begin() + wrapped);
  strides.erase(strides.begin() + wrapped);
  return view_of(self, sizes, strides, offset);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  int64_t wrapped = dim;
  if (c10::musa::has_names(self) || !wrap(wrapped, self.dim()) || step <= 0 || step > self.sizes()[wrapped]) {
    return at::native::slice(self, dim, start, end, step);
  }
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  const int64_t size = sizes[wrapped];
  const auto within = [size](int64_t place, int64_t low) {
    return std::clamp(place < 0 ? place + size : place, low, size);
  };
  const int64_t first = within(start.value_or(0), 0);
  const int64_t last = within(end.value_or(size), first);
  const int64_t offset = self.storage_offset() + first * strides[wrapped];
  sizes[wrapped] = (last - first + step - 1) / step;
  strides[wrapped] *= step;
  return view_of(self, sizes, strides, offset);
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  int64_t wrapped = dim;
  if (c10::musa::has_names(self) || !wrap(wrapped, self.dim() + 1)) {
    return at::native::unsqueeze(self, dim);
  }
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  const int64_t stride = wrapped == self.dim() ? 1 : sizes[wrapped] * strides[wrapped];
  sizes.insert(sizes.begin() + wrapped, 1);
  strides.insert(strides.begin() + wrapped, stride);
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor squeeze(const Tensor& self, int64_t dim) {
  int64_t wrapped = dim;
  if (c10::musa::has_names(self) || !wrap(wrapped, self.dim())) {
    return at::native::squeeze(self, dim);
  }
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  if (sizes[wrapped] == 1) {
    sizes.erase(sizes.begin() + wrapped);
    strides.erase(strides.begin() + wrapped);
  }
  return view_of(self, sizes, strides, self.storage_offset());
}

Tensor expand(const Tensor& self, IntArrayRef size, bool implicit) {
  if (c10::musa::has_names(self) || static_cast<int64_t>(size.size()) < self.dim()) {
    return at::native::expand(self, size, implicit);
  }
  const auto expanded = at::inferExpandGeometry_dimvector(self.sizes(), self.strides(), size);
  return view_of(self, expanded.sizes, expanded.strides, self.storage_offset());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("transpose.int", TORCH_FN(transpose));
  m.impl("t", TORCH_FN(t));
  m.impl("permute", TORCH_FN(permute));
  m.impl("select.int", TORCH_FN(select));
  m.impl("slice.Tensor", TORCH_FN(slice));
  m.impl("unsqueeze", TORCH_FN(unsqueeze));
  m.impl("squeeze.dim", TORCH_FN(squeeze));
  m.impl("expand", TORCH_FN(expand));
}

} // namespace
} // namespace at::musa
