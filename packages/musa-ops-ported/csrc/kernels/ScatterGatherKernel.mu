// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// gather and scatter: each element of `index` selects a position along one dimension of the other tensor.
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/native/ReductionType.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/complex.h>
#include <c10/util/Load.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"

namespace musa_ops_ported {
namespace {

// The tensor's strides with stride 0 along `dim`.
at::DimVector strides_without(const at::Tensor& tensor, int64_t dim) {
  at::DimVector strides(tensor.strides());
  if (!strides.empty()) {
    strides[dim] = 0;
  }
  return strides;
}
int64_t stride_along(const at::Tensor& tensor, int64_t dim) { return tensor.dim() == 0 ? 1 : tensor.stride(dim); }
int64_t size_along(const at::Tensor& tensor, int64_t dim) { return tensor.dim() == 0 ? 1 : tensor.size(dim); }

// Calls f(offset in `indexed`, offset in `other`), in elements; `index` selects the position in `indexed` along
// `dim`.
template <typename F>
void through_index(const at::Tensor& index, const at::Tensor& indexed, int64_t dim, at::IntArrayRef other, const F& f) {
  const int64_t size = size_along(indexed, dim);
  const int64_t stride = stride_along(indexed, dim);
  MUSA_BY_INDEX_TYPE(index.scalar_type(), {
    const index_t* const indices = index.const_data_ptr<index_t>();
    for_each_offset(
        index.sizes(),
        [=] __device__(int64_t, const auto& at) {
          const int64_t chosen = indices[at[0]];
          CUDA_KERNEL_ASSERT(chosen >= 0 && chosen < size && "index out of bounds");
          f(at[1] + chosen * stride, at[2]);
        },
        index.strides(), strides_without(indexed, dim), other);
  });
}

// The strides of a tensor with index's rank; empty if `index` has no dimensions.
at::IntArrayRef strides_of(const at::Tensor& tensor, const at::Tensor& index) {
  return index.dim() == 0 ? at::IntArrayRef() : tensor.strides();
}

void gather(const at::Tensor& result, const at::Tensor& self, int64_t dimension, const at::Tensor& index) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  MUSA_BY_SIZE(self.element_size(), {
    Bytes* const out = elements_of<Bytes>(result, self);
    const Bytes* const in = static_cast<const Bytes*>(self.const_data_ptr());
    through_index(
        index, self, dim, strides_of(result, index), [=] __device__(int64_t from, int64_t to) { out[to] = in[from]; });
  });
}

void scatter(const at::Tensor& self, int64_t dimension, const at::Tensor& index, const at::Tensor& src) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  MUSA_BY_SIZE(self.element_size(), {
    Bytes* const out = elements_of<Bytes>(self, src);
    const Bytes* const in = static_cast<const Bytes*>(src.const_data_ptr());
    through_index(
        index, self, dim, strides_of(src, index), [=] __device__(int64_t to, int64_t from) { out[to] = in[from]; });
  });
}

void scatter_fill(const at::Tensor& self, int64_t dimension, const at::Tensor& index, const at::Scalar& value) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  MUSA_DISPATCH(self.scalar_type(), "scatter", (MUSA_ALL), {
    scalar_t* const out = self.mutable_data_ptr<scalar_t>();
    const auto filler = value.to<scalar_t>();
    through_index(index, self, dim, index.strides(), [=] __device__(int64_t to, int64_t) { out[to] = filler; });
  });
}

void scatter_add(const at::Tensor& self, int64_t dimension, const at::Tensor& index, const at::Tensor& src) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  MUSA_DISPATCH(self.scalar_type(), "scatter_add", (MUSA_ALL), {
    scalar_t* const out = self.mutable_data_ptr<scalar_t>();
    const scalar_t* const in = src.const_data_ptr<scalar_t>();
    through_index(index, self, dim, strides_of(src, index), [=] __device__(int64_t to, int64_t from) {
      gpuAtomicAddNoReturn(out + to, c10::load(in + from));
    });
  });
}

// Reductions of bool as bytes: a product is the minimum, a sum the maximum.
at::native::ReductionType of_booleans(at::native::ReductionType how) {
  using at::native::ReductionType;
  return how == ReductionType::PROD || how == ReductionType::MIN ? ReductionType::MIN : ReductionType::MAX;
}

template <typename T>
__device__ void merge(at::native::ReductionType how, T* to, T value) {
  switch (how) {
    case at::native::ReductionType::PROD: gpuAtomicMul(to, value); break;
    case at::native::ReductionType::MAX: gpuAtomicMax(to, value); break;
    case at::native::ReductionType::MIN: gpuAtomicMin(to, value); break;
    default: gpuAtomicAddNoReturn(to, value); // SUM, and MEAN before the division
  }
}

void scatter_reduce(
    const at::Tensor& self, int64_t dimension, const at::Tensor& index, const at::Tensor& src,
    const at::native::ReductionType& reduce) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  const auto how = reduce;
  if (how == at::native::ReductionType::SUM) {
    scatter_add(self, dimension, index, src);
    return;
  }
  if (self.scalar_type() == at::kBool) {
    scatter_reduce(self.view(at::kByte), dimension, index, src.view(at::kByte), of_booleans(how));
    return;
  }
  MUSA_DISPATCH(self.scalar_type(), "scatter_reduce", (MUSA_REAL), {
    scalar_t* const out = self.mutable_data_ptr<scalar_t>();
    const scalar_t* const in = src.const_data_ptr<scalar_t>();
    through_index(index, self, dim, strides_of(src, index), [=] __device__(int64_t to, int64_t from) {
      merge(how, out + to, in[from]);
    });
  });
}

void scatter_scalar_reduce(
    const at::Tensor& self, int64_t dimension, const at::Tensor& index, const at::Scalar& value,
    const at::native::ReductionType& reduce) {
  scatter_reduce(self, dimension, index, aten::full({}, value, self.options()).expand(index.sizes()), reduce);
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(gather_stub, &musa_ops_ported::gather)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_stub, &musa_ops_ported::scatter)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_fill_stub, &musa_ops_ported::scatter_fill)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_add_stub, &musa_ops_ported::scatter_add)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_reduce_stub, &musa_ops_ported::scatter_reduce)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_reduce_two_stub, &musa_ops_ported::scatter_reduce)
REGISTER_PRIVATEUSE1_DISPATCH(scatter_scalar_reduce_stub, &musa_ops_ported::scatter_scalar_reduce)
} // namespace at::native
