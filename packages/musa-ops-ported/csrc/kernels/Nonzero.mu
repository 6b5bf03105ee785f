// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Stream compaction by a mask: the number of selected elements before an element is its output position.
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/ReduceOpsUtils.h>

#include <algorithm>
#include <c10/util/Load.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/grid.h"
#include "engines/prefix_sum.muh"
#include "engines/reduce.muh"
#include "engines/vector.h"
#include "kernels/Nonzero.h"

namespace musa_ops_ported {
namespace {

// Returns the mask as a contiguous tensor of bool.
at::Tensor mask_of(const at::Tensor& self) {
  return (self.scalar_type() == at::kBool ? self : self.ne(0)).contiguous();
}

template <typename T>
struct NonzeroCount {
  using Input = T;
  using Output = int64_t;
  using Accumulator = int64_t;
  __device__ int64_t identity() const { return 0; }
  __device__ int64_t step(int64_t so_far, T x, int64_t) const { return so_far + (x != T(0)); }
  __device__ int64_t combine(int64_t a, int64_t b) const { return a + b; }
  __device__ int64_t project(int64_t count) const { return count; }
};

// Not a lambda, because nvcc does not allow a function with a deduced return type to return a kernel lambda.
struct Taken {
  const bool* in;
  __host__ __device__ int64_t operator()(int64_t i) const { return c10::load(in + i); }
};
PrefixSum<Taken> sums_of(const at::Tensor& mask) {
  return PrefixSum<Taken>(mask.numel(), mask.options(), Taken{mask.const_data_ptr<bool>()});
}

struct Coordinates {
  static constexpr int kDims = kMaxDims;
  int dims;
  int64_t sizes[kDims];

  explicit Coordinates(at::IntArrayRef shape) : dims(static_cast<int>(shape.size())) {
    TORCH_CHECK(shape.size() <= kDims, "nonzero is not supported for tensor with more than ", kDims, " dimensions");
    std::copy(shape.begin(), shape.end(), sizes);
  }
  // Calls use(dim, coordinate) for the coordinates of element i.
  template <typename Use>
  __device__ void each(int64_t i, const Use& use) const {
    for (int dim = dims - 1; dim >= 0; --dim) {
      use(dim, i % sizes[dim]);
      i /= sizes[dim];
    }
  }
};

void check_nonzero_out(const char* name, const at::Tensor& self, const at::Tensor& out) {
  TORCH_CHECK(
      out.dtype() == at::kLong, name, ": Expected out tensor to have scalar type ", at::kLong, " but got scalar type ",
      out.dtype());
  TORCH_CHECK(
      self.device() == out.device(), name, ": Expected self and out to be on the same device, but got out on ",
      out.device(), " and self on ", self.device());
}

// Writes the coordinates of the selected elements to the first rows of `out`.
template <typename Sums>
void write_coordinates(const Sums& sums, const at::Tensor& self, const at::Tensor& out) {
  const Coordinates coordinates(self.sizes());
  int64_t* const to = out.mutable_data_ptr<int64_t>();
  const int64_t rows = out.size(0);
  const int64_t row = out.stride(0);
  const int64_t column = out.stride(1);
  sums.each([=] __device__(int64_t i, int64_t before, int64_t chosen) {
    if (chosen && before < rows) {
      coordinates.each(i, [&](int dim, int64_t at) { to[before * row + dim * column] = at; });
    }
  });
}

} // namespace

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  check_nonzero_out("nonzero", self, out);
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  const auto mask = mask_of(self);
  const auto sums = sums_of(mask);
  const int64_t rows = sums.total();
  if (aten::resize_output(out, {rows, self.dim()})) {
    out.as_strided_({rows, self.dim()}, {1, rows}); // column-major: indexing uses it as one vector per dimension
  }
  if (out.numel() > 0) {
    write_coordinates(sums, self, out);
  }
  return out;
}
at::Tensor nonzero(const at::Tensor& self) {
  at::Tensor out = aten::empty({0}, self.options().dtype(at::kLong));
  return nonzero_out(self, out);
}

at::Tensor& nonzero_static_out(const at::Tensor& self, int64_t size, int64_t fill_value, at::Tensor& out) {
  TORCH_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  check_nonzero_out("nonzero_static", self, out);
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  aten::resize_output(out, {size, self.dim()});
  if (out.numel() > 0) {
    out.fill_(fill_value);
    const auto mask = mask_of(self);
    write_coordinates(sums_of(mask), self, out);
  }
  return out;
}
at::Tensor nonzero_static(const at::Tensor& self, int64_t size, int64_t fill_value) {
  at::Tensor out = aten::empty({0}, self.options().dtype(at::kLong));
  return nonzero_static_out(self, size, fill_value, out);
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  TORCH_CHECK(mask.scalar_type() == at::kBool, "masked_select: expected BoolTensor for mask");
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(), "masked_select(): self and result must have the same scalar type");
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const auto [wide_mask, wide] = at::expand_outplace(mask, self);
  const at::Tensor chosen = wide_mask->contiguous();
  const auto sums = sums_of(chosen);
  aten::resize_output(out, {sums.total()});
  if (out.numel() == 0) {
    return out;
  }
  const auto offsets = offsets_of<1>(wide->sizes(), {wide->strides()});
  const int64_t stride = out.stride(0);
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const in = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const to = elements_of<Bytes>(out, self);
    sums.each([=] __device__(int64_t i, int64_t before, int64_t taken) {
      if (taken) {
        to[before * stride] = in[offsets.of(0, i)];
      }
    });
  });
  return out;
}
at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor out = aten::empty({0}, self.options());
  return masked_select_out(self, mask, out);
}

at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  at::assert_no_internal_overlap(self);
  TORCH_CHECK(
      self.scalar_type() == source.scalar_type(),
      "masked_scatter_: expected self and source to have same dtypes but got ", self.scalar_type(), " and ",
      source.scalar_type());
  TORCH_CHECK(
      mask.scalar_type() == at::kBool, "masked_scatter_ only supports boolean masks, but got mask with dtype ",
      mask.scalar_type());
  const auto wide_mask = at::expand_inplace(self, mask, "masked_scatter_");
  if (self.numel() == 0) {
    return self;
  }
  const at::Tensor chosen = wide_mask->contiguous();
  const at::Tensor values = source.contiguous();
  const auto offsets = offsets_of<1>(self.sizes(), {self.strides()});
  const int64_t given = values.numel();
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const from = static_cast<const Bytes*>(values.const_data_ptr());
    Bytes* const to = elements_of<Bytes>(self, values);
    sums_of(chosen).each([=] __device__(int64_t i, int64_t before, int64_t taken) {
      if (taken) {
        CUDA_KERNEL_ASSERT(before < given && "masked_scatter_: source has fewer elements than the mask has ones");
        to[offsets.of(0, i)] = from[before];
      }
    });
  });
  return self;
}

at::Tensor count_nonzero_dim_IntList(const at::Tensor& self, at::IntArrayRef dim) {
  at::Tensor counts = aten::empty({0}, self.options().dtype(at::kLong));
  auto iter =
      at::native::make_reduction("count_nonzero", counts, self, dim, /*keepdim=*/false, self.scalar_type(), at::kLong);
  if (iter.numel() == 0) {
    return counts.zero_();
  }
  MUSA_DISPATCH(self.scalar_type(), "count_nonzero", (MUSA_ALL), { reduce(iter, NonzeroCount<scalar_t>()); });
  return counts;
}

} // namespace musa_ops_ported
