// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Selects, adds to or reduces into the slices of a tensor that an index tensor names.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Load.h>

#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/prefix_sum.muh"
#include "engines/vector.h"
#include "kernels/IndexAdd.h"

namespace musa_ops_ported {
namespace {

at::Tensor at_least_1d(const at::Tensor& tensor) { return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor; }

// Calls f(offset in `indexed`, offset in `other`) for the elements of `other`: slice k along dim corresponds to slice
// index[k] of `indexed`.
template <typename F>
void over_slices(const at::Tensor& indexed, int64_t dim, const at::Tensor& index, const at::Tensor& other, const F& f) {
  at::DimVector starts(indexed.strides());
  const int64_t stride = starts[dim];
  const int64_t size = indexed.size(dim);
  starts[dim] = 0;
  at::DimVector along(other.dim(), 0);
  along[dim] = at_least_1d(index).stride(0);
  MUSA_BY_INDEX_TYPE(index.scalar_type(), {
    const index_t* const indices = index.const_data_ptr<index_t>();
    for_each_offset(
        other.sizes(),
        [=] __device__(int64_t, const auto& at) {
          const int64_t chosen = indices[at[2]];
          CUDA_KERNEL_ASSERT(chosen >= 0 && chosen < size && "index out of range");
          f(at[0] + chosen * stride, at[1]);
        },
        starts, other.strides(), along);
  });
}

void start_from(const at::Tensor& self, const at::Tensor& out) {
  if (!out.is_same(self)) {
    out.copy_(self);
  }
}

enum class Reduction { Product, Mean, Largest, Smallest };

Reduction reduction_of(c10::string_view name) {
  TORCH_CHECK(
      name == "prod" || name == "mean" || name == "amax" || name == "amin",
      "reduce argument must be either prod, mean, amax or amin, got ", name, ".");
  return name == "prod" ? Reduction::Product
      : name == "mean"  ? Reduction::Mean
      : name == "amax"  ? Reduction::Largest
                        : Reduction::Smallest;
}

template <typename T>
at::Scalar identity_of(Reduction how) {
  using limits = std::numeric_limits<T>;
  switch (how) {
    case Reduction::Product: return 1;
    case Reduction::Largest: return limits::has_infinity ? -limits::infinity() : limits::lowest();
    case Reduction::Smallest: return limits::has_infinity ? limits::infinity() : limits::max();
    default: return 0;
  }
}

// Divides sums by counts to get means. `counted` has a dtype that supports division.
void divide_by_counts(
    const at::Tensor& out, int64_t dim, const at::Tensor& index, const at::Tensor& source, bool include_self) {
  at::Tensor counts = include_self ? aten::ones_like(out) : aten::zeros_like(out);
  counts.index_add_(dim, index, aten::ones_like(source));
  counts.masked_fill_(counts.eq(0), 1);
  if (at::isFloatingType(out.scalar_type())) {
    out.div_(counts);
  } else {
    out.div_(counts, "floor");
  }
}

} // namespace

void index_add(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, const at::Scalar& alpha,
    const at::Tensor& out) {
  start_from(self, out);
  if (source.numel() == 0 || index.numel() == 0) {
    return;
  }
  const at::Tensor to = at_least_1d(out);
  const at::Tensor from = at_least_1d(source);
  MUSA_DISPATCH(out.scalar_type(), "index_add", (MUSA_ALL), {
    scalar_t* const sums = to.mutable_data_ptr<scalar_t>();
    const scalar_t* const added = from.const_data_ptr<scalar_t>();
    const auto factor = alpha.to<op_t>();
    over_slices(to, dim, index, from, [=] __device__(int64_t place, int64_t at) {
      const auto value = static_cast<at::opmath_type<scalar_t>>(c10::load(added + at));
      gpuAtomicAddNoReturn(sums + place, static_cast<scalar_t>(value * factor));
    });
  });
}

void index_reduce(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, c10::string_view reduce,
    bool include_self, const at::Tensor& out) {
  const Reduction how = reduction_of(reduce);
  if (at::isReducedFloatingType(out.scalar_type()) && (how == Reduction::Product || how == Reduction::Mean)) {
    // Accumulates in float, so that the result is rounded once.
    const at::Tensor wide = aten::empty(out.sizes(), out.options().dtype(at::kFloat));
    index_reduce(self.to(at::kFloat), dim, index, source.to(at::kFloat), reduce, include_self, wide);
    out.copy_(wide);
    return;
  }
  start_from(self, out);
  if (source.numel() == 0 || index.numel() == 0) {
    return;
  }
  at::Tensor to = at_least_1d(out);
  const at::Tensor from = at_least_1d(source);
  MUSA_DISPATCH(out.scalar_type(), "index_reduce", (MUSA_REAL), {
    if (!include_self) {
      to.index_fill_(dim, index.to(at::kLong), identity_of<scalar_t>(how));
    }
    scalar_t* const results = to.mutable_data_ptr<scalar_t>();
    const scalar_t* const values = from.const_data_ptr<scalar_t>();
    over_slices(to, dim, index, from, [=] __device__(int64_t place, int64_t at) {
      switch (how) {
        case Reduction::Product: gpuAtomicMul(results + place, values[at]); break;
        case Reduction::Largest: gpuAtomicMax(results + place, values[at]); break;
        case Reduction::Smallest: gpuAtomicMin(results + place, values[at]); break;
        default: gpuAtomicAddNoReturn(results + place, values[at]);
      }
    });
  });
  if (how == Reduction::Mean) {
    divide_by_counts(to, dim, index, from, include_self);
  }
}

at::Tensor& index_select_out(const at::Tensor& self, int64_t dimension, const at::Tensor& index, at::Tensor& out) {
  TORCH_CHECK_INDEX(index.dim() <= 1, "index_select(): Index is supposed to be a vector");
  TORCH_CHECK(
      index.scalar_type() == at::kLong || index.scalar_type() == at::kInt,
      "index_select(): Expected dtype int32 or int64 for index, but got: ", index.scalar_type());
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(), "index_select(): self and result must have the same scalar type");
  TORCH_CHECK(
      index.device() == self.device() && out.device() == self.device(),
      "Expected all tensors to be on the same device, but index_select() got self on ", self.device(), ", index on ",
      index.device(), " and out on ", out.device());
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  TORCH_CHECK(
      self.dim() > 0 || index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
      index.numel(), " value(s)");
  at::assert_no_internal_overlap(out);
  at::DimVector sizes(self.sizes());
  if (self.dim() > 0) {
    sizes[dim] = index.numel();
  }
  aten::resize_output(out, sizes);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  if (out.numel() == 0) {
    return out;
  }
  TORCH_CHECK(self.numel() > 0, "index_select(): self indexing axis dim should be positive");
  const at::Tensor from = at_least_1d(self);
  MUSA_BY_SIZE(self.element_size(), {
    Bytes* const to = elements_of<Bytes>(out, from);
    const Bytes* const in = static_cast<const Bytes*>(from.const_data_ptr());
    over_slices(from, dim, index, at_least_1d(out), [=] __device__(int64_t place, int64_t at) { to[at] = in[place]; });
  });
  return out;
}
at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  at::Tensor out = aten::empty({0}, self.options());
  return index_select_out(self, dim, index, out);
}

// Each position of the result finds its source element by bisection.
at::Tensor repeat_interleave_Tensor(const at::Tensor& repeats, std::optional<int64_t> output_size) {
  TORCH_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TORCH_CHECK(
      repeats.scalar_type() == at::kLong || repeats.scalar_type() == at::kInt, "repeats has to be Long or Int tensor");
  if (repeats.size(0) == 0) {
    return aten::empty({0}, repeats.options());
  }
  const at::Tensor given = repeats.resolve_neg().contiguous(); // the dispatcher passes negated views on
  const int64_t count = given.numel();
  const at::Tensor ends = aten::empty({count}, given.options().dtype(at::kLong));
  int64_t* const until = ends.mutable_data_ptr<int64_t>();
  at::Tensor out;
  MUSA_BY_INDEX_TYPE(given.scalar_type(), {
    const index_t* const times = given.const_data_ptr<index_t>();
    const PrefixSum sums(count, given.options(), [=] __device__(int64_t i) -> int64_t { return times[i]; });
    sums.each([=] __device__(int64_t i, int64_t before, int64_t own) {
      CUDA_KERNEL_ASSERT(own >= 0 && "repeats can not be negative");
      until[i] = before + own;
    });
    const int64_t total = output_size ? *output_size : sums.total();
    out = aten::empty({total}, given.options());
    index_t* const to = out.template mutable_data_ptr<index_t>();
    for_each(total, [=] __device__(int64_t i) {
      CUDA_KERNEL_ASSERT((i > 0 || until[count - 1] == total) && "allocated size does not match required size");
      int64_t low = 0;
      for (int64_t high = count - 1; low < high;) {
        const int64_t middle = (low + high) / 2;
        if (until[middle] <= i) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      to[i] = static_cast<index_t>(low);
    });
  });
  return out;
}

} // namespace musa_ops_ported
