// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Positions of values in sorted sequences, by bisection.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/BucketizationUtils.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/result_type.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/overlap.h"
#include "kernels/Searching.h"
#include "kernels/sort.h"

namespace musa_ops_ported {
namespace {

struct Sequences {
  int64_t size;        // of each sequence
  int64_t row;         // values per sequence; 0: all values share one sequence
  const int64_t* order; // permutation that sorts the sequence; nullptr if it is sorted
  bool right;
};

template <typename T>
void search(const at::Tensor& boundaries, const at::Tensor& values, const Sequences& sequences, const at::Tensor& out) {
  const T* const bounds = boundaries.const_data_ptr<T>();
  const T* const in = values.const_data_ptr<T>();
  void* const to = out.mutable_data_ptr();
  const bool narrow = out.scalar_type() == at::kInt;
  for_each_offset(
      out.sizes(),
      [=] __device__(int64_t i, const auto& at) {
        const T value = in[at[1]];
        const int64_t start = sequences.row == 0 ? 0 : i / sequences.row * sequences.size;
        int64_t low = 0;
        for (int64_t high = sequences.size; low < high;) {
          const int64_t middle = (low + high) / 2;
          const T bound = bounds[start + (sequences.order == nullptr ? middle : sequences.order[start + middle])];
          // Negated comparisons, so that NaN is placed at the end.
          if (sequences.right ? !(bound > value) : !(bound >= value)) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        if (narrow) {
          static_cast<int32_t*>(to)[at[0]] = static_cast<int32_t>(low);
        } else {
          static_cast<int64_t*>(to)[at[0]] = low;
        }
      },
      out.strides(), values.strides());
}

at::Tensor& search_sorted(
    const at::Tensor& sorted_sequence, const at::Tensor& self, bool out_int32, bool right,
    std::optional<std::string_view> side, const std::optional<at::Tensor>& given_sorter, at::Tensor& out) {
  const at::Tensor sorter = given_sorter.value_or(at::Tensor());
  at::native::searchsorted_pre_check(sorted_sequence, self, out, out_int32, right, side, sorter);
  aten::resize_output(out, self.sizes());
  if (self.numel() == 0) {
    return out;
  }
  at::assert_no_internal_overlap(out);
  const auto dtype = at::result_type(sorted_sequence, self);
  const at::Tensor boundaries = sorted_sequence.to(dtype).contiguous();
  const at::Tensor order = sorter.defined() ? sorter.contiguous() : sorter;
  Sequences sequences;
  sequences.size = boundaries.size(-1);
  sequences.row = boundaries.dim() == 1 ? 0 : self.size(-1);
  sequences.order = order.defined() ? order.const_data_ptr<int64_t>() : nullptr;
  sequences.right = right || (side && *side == "right");
  MUSA_DISPATCH(dtype, "searchsorted", (MUSA_REAL), { search<scalar_t>(boundaries, self.to(dtype), sequences, out); });
  return out;
}

at::Tensor empty_places(const at::Tensor& like, bool out_int32) {
  return aten::empty({0}, like.options().dtype(out_int32 ? at::kInt : at::kLong));
}

at::Tensor scalar_on(const at::Tensor& tensor, const at::Scalar& value) {
  return at::native::searchsorted_scalar_tensor(value, tensor.device());
}

void check_boundaries(const at::Tensor& boundaries) {
  TORCH_CHECK(boundaries.dim() == 1, "boundaries tensor must be 1 dimension, but got dim(", boundaries.dim(), ")");
}

} // namespace

at::Tensor& searchsorted_Tensor_out(
    const at::Tensor& sorted_sequence, const at::Tensor& self, bool out_int32, bool right,
    std::optional<c10::string_view> side, const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  return search_sorted(sorted_sequence, self, out_int32, right, side, sorter, out);
}
at::Tensor searchsorted_Tensor(
    const at::Tensor& sorted_sequence, const at::Tensor& self, bool out_int32, bool right,
    std::optional<c10::string_view> side, const std::optional<at::Tensor>& sorter) {
  at::Tensor out = empty_places(self, out_int32);
  return search_sorted(sorted_sequence, self, out_int32, right, side, sorter, out);
}
at::Tensor& searchsorted_Scalar_out(
    const at::Tensor& sorted_sequence, const at::Scalar& self, bool out_int32, bool right,
    std::optional<c10::string_view> side, const std::optional<at::Tensor>& sorter, at::Tensor& out) {
  return search_sorted(sorted_sequence, scalar_on(sorted_sequence, self), out_int32, right, side, sorter, out);
}
at::Tensor searchsorted_Scalar(
    const at::Tensor& sorted_sequence, const at::Scalar& self, bool out_int32, bool right,
    std::optional<c10::string_view> side, const std::optional<at::Tensor>& sorter) {
  at::Tensor out = empty_places(sorted_sequence, out_int32);
  return search_sorted(sorted_sequence, scalar_on(sorted_sequence, self), out_int32, right, side, sorter, out);
}

at::Tensor& bucketize_Tensor_out(
    const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right, at::Tensor& out) {
  check_boundaries(boundaries);
  return search_sorted(boundaries, self, out_int32, right, std::nullopt, std::nullopt, out);
}
at::Tensor bucketize_Tensor(const at::Tensor& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  at::Tensor out = empty_places(self, out_int32);
  return bucketize_Tensor_out(self, boundaries, out_int32, right, out);
}
at::Tensor bucketize_Scalar(const at::Scalar& self, const at::Tensor& boundaries, bool out_int32, bool right) {
  return bucketize_Tensor(scalar_on(boundaries, self), boundaries, out_int32, right);
}

// ---- isin

void isin_Tensor_Tensor(
    const at::Tensor& elements, const at::Tensor& test_elements, bool, bool invert, const at::Tensor& out) {
  check_overlap(out, elements);
  const auto dtype = at::result_type(elements, test_elements);
  const at::Tensor values = elements.to(dtype);
  const at::Tensor tests = test_elements.to(dtype).reshape({-1});
  const int64_t size = tests.numel();
  const at::Tensor sorted = size > 0 ? tests.index_select(0, sorted_places(tests, /*descending=*/false, size)) : tests;
  bool* const to = out.mutable_data_ptr<bool>();
  MUSA_DISPATCH(dtype, "isin", (MUSA_REAL), {
    const scalar_t* const in = values.const_data_ptr<scalar_t>();
    const scalar_t* const among = sorted.const_data_ptr<scalar_t>();
    for_each_offset(
        out.sizes(),
        [=] __device__(int64_t, const auto& at) {
          const scalar_t value = in[at[1]];
          int64_t low = 0;
          for (int64_t high = size; low < high;) {
            const int64_t middle = (low + high) / 2;
            if (among[middle] < value) {
              low = middle + 1;
            } else {
              high = middle;
            }
          }
          to[at[0]] = (low < size && among[low] == value) != invert;
        },
        out.strides(), values.strides());
  });
}

void isin_Tensor_Scalar(
    const at::Tensor& elements, const at::Scalar& test_element, bool, bool invert, const at::Tensor& out) {
  at::Tensor result = out;
  if (invert) {
    at::ne_out(result, elements, test_element);
  } else {
    at::eq_out(result, elements, test_element);
  }
}

void isin_Scalar_Tensor(
    const at::Scalar& element, const at::Tensor& test_elements, bool assume_unique, bool invert,
    const at::Tensor& out) {
  // The meta function does not set the output's shape.
  aten::resize_output(out, at::IntArrayRef());
  isin_Tensor_Tensor(scalar_on(test_elements, element), test_elements, assume_unique, invert, out);
}

} // namespace musa_ops_ported
