// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Unique elements and slices: those that differ from their predecessor, after sorting or in the given order.
#include <ATen/core/Tensor.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Load.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/prefix_sum.muh"
#include "engines/sort.muh"
#include "kernels/Unique.h"
#include "kernels/sort.h"

namespace musa_ops_ported {
namespace {

struct Groups {
  at::Tensor first;   // the position in `order` at which each group begins
  at::Tensor inverse; // the group of each element; empty unless requested
  at::Tensor counts;  // the size of each group; empty unless requested
};

// differs(i): whether element order[i] differs from order[i - 1]. If `order` is undefined, elements are taken in
// their own order.
template <typename Differs>
Groups groups_of(
    int64_t count, const at::TensorOptions& options, const at::Tensor& order, bool with_inverse, bool with_counts,
    const Differs& differs) {
  const auto longs = options.dtype(at::kLong);
  const PrefixSum sums(count, options, [=] __device__(int64_t i) -> int64_t { return i == 0 || differs(i); });
  const int64_t groups = sums.total();
  Groups result{aten::empty({groups}, longs), aten::empty({with_inverse ? count : 0}, longs), aten::empty({0}, longs)};
  int64_t* const first = result.first.mutable_data_ptr<int64_t>();
  int64_t* const inverse = with_inverse ? result.inverse.mutable_data_ptr<int64_t>() : nullptr;
  const int64_t* const places = order.defined() ? order.const_data_ptr<int64_t>() : nullptr;
  sums.each([=] __device__(int64_t i, int64_t before, int64_t begins) {
    if (begins) {
      first[before] = i;
    }
    if (inverse != nullptr) {
      inverse[places == nullptr ? i : places[i]] = before + begins - 1;
    }
  });
  if (with_counts) {
    result.counts = aten::empty({groups}, longs);
    int64_t* const counts = result.counts.mutable_data_ptr<int64_t>();
    for_each(groups, [=] __device__(int64_t g) { counts[g] = (g + 1 < groups ? first[g + 1] : count) - first[g]; });
  }
  return result;
}

using Three = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

// Builds the operator's results; `groups` index the slices of `self` along dim, in the given order.
Three results_of(const at::Tensor& self, int64_t dim, const at::Tensor& order, const Groups& groups) {
  const at::Tensor chosen = order.defined() ? order.index_select(0, groups.first) : groups.first;
  return {self.index_select(dim, chosen), groups.inverse, groups.counts};
}

Three unique_elements(const at::Tensor& self, bool sorted, bool with_inverse, bool with_counts) {
  const at::Tensor elements = self.reshape({-1}).contiguous();
  const int64_t count = elements.numel();
  if (count == 0) {
    const auto longs = self.options().dtype(at::kLong);
    return {
        aten::empty({0}, self.options()), aten::empty(with_inverse ? self.sizes() : at::IntArrayRef{0}, longs),
        aten::empty({0}, longs)};
  }
  const at::Tensor order = sorted ? sorted_places(elements, /*descending=*/false, count) : at::Tensor();
  const int64_t* const places = sorted ? order.const_data_ptr<int64_t>() : nullptr;
  Groups groups;
  MUSA_DISPATCH(self.scalar_type(), "unique", (MUSA_REAL, MUSA_UNSIGNED, at::kBool), {
    const scalar_t* const in = elements.const_data_ptr<scalar_t>();
    groups = groups_of(count, self.options(), order, with_inverse, with_counts, [=] __device__(int64_t i) {
      const int64_t at = places == nullptr ? i : places[i], before = places == nullptr ? i - 1 : places[i - 1];
      return c10::load(in + at) != c10::load(in + before);
    });
  });
  if (with_inverse) {
    groups.inverse = groups.inverse.view(self.sizes());
  }
  return results_of(elements, 0, order, groups);
}

template <typename Key>
struct RowsBefore {
  const Key* keys;
  int64_t columns;
  __device__ bool operator()(int64_t a, int64_t b) const {
    for (int64_t k = 0; k < columns; ++k) {
      const Key x = keys[a * columns + k];
      const Key y = keys[b * columns + k];
      if (x != y) {
        return x < y;
      }
    }
    return false;
  }
};

template <typename Key>
Groups groups_of_rows(
    const at::Tensor& keys, bool nan_keys, bool sorted, bool with_inverse, bool with_counts, at::Tensor& order) {
  const int64_t rows = keys.size(0);
  const int64_t columns = keys.size(1);
  const Key* const data = static_cast<const Key*>(keys.const_data_ptr());
  if (sorted) {
    const auto longs = keys.options().dtype(at::kLong);
    order = aten::arange(rows, longs);
    const at::Tensor scratch = aten::empty({rows}, longs);
    const int64_t* const in_order = merge_sort(
        order.mutable_data_ptr<int64_t>(), scratch.mutable_data_ptr<int64_t>(), 1, rows, rows,
        RowsBefore<Key>{data, columns});
    order = in_order == order.const_data_ptr<int64_t>() ? order : scratch;
  }
  const int64_t* const places = sorted ? order.const_data_ptr<int64_t>() : nullptr;
  return groups_of(rows, keys.options(), order, with_inverse, with_counts, [=] __device__(int64_t i) {
    const Key* const row = data + (places == nullptr ? i : places[i]) * columns;
    const Key* const before = data + (places == nullptr ? i - 1 : places[i - 1]) * columns;
    for (int64_t k = 0; k < columns; ++k) {
      if (row[k] != before[k] || (nan_keys && row[k] == ~Key(0))) { // NaNs are never equal
        return true;
      }
    }
    return false;
  });
}

Three unique_slices(const at::Tensor& self, int64_t dimension, bool sorted, bool with_inverse, bool with_counts) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  const at::Tensor slices = self.dim() == 0 ? self.unsqueeze(0) : self;
  const int64_t rows = slices.size(dim);
  if (self.numel() == 0) {
    int64_t empty_dims = 0;
    for (const int64_t size : slices.sizes()) {
      empty_dims += size == 0;
    }
    TORCH_CHECK(rows == 0, "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    TORCH_CHECK(empty_dims == 1, "Number of zero sized dimensions is more than one, so unique cannot be applied");
    const auto longs = self.options().dtype(at::kLong);
    return {aten::empty(self.sizes(), self.options()), aten::empty({0}, longs), aten::empty({0}, longs)};
  }
  const at::Tensor keys = order_keys(slices.movedim(dim, 0)).view({rows, -1});
  const bool nan_keys = at::isFloatingType(self.scalar_type());
  at::Tensor order;
  const Groups groups = keys.element_size() == 4
      ? groups_of_rows<uint32_t>(keys, nan_keys, sorted, with_inverse, with_counts, order)
      : groups_of_rows<uint64_t>(keys, nan_keys, sorted, with_inverse, with_counts, order);
  return results_of(slices, dim, order, groups);
}

} // namespace

// `sorted` is ignored, because elements are always found by sorting.
std::tuple<at::Tensor, at::Tensor> _unique(const at::Tensor& self, bool, bool return_inverse) {
  auto [values, inverse, counts] = unique_elements(self, /*sorted=*/true, return_inverse, /*with_counts=*/false);
  return {values, inverse};
}
Three _unique2(const at::Tensor& self, bool, bool return_inverse, bool return_counts) {
  return unique_elements(self, /*sorted=*/true, return_inverse, return_counts);
}
Three unique_dim(const at::Tensor& self, int64_t dim, bool, bool return_inverse, bool return_counts) {
  return unique_slices(self, dim, /*sorted=*/true, return_inverse, return_counts);
}
Three unique_dim_consecutive(const at::Tensor& self, int64_t dim, bool return_inverse, bool return_counts) {
  return unique_slices(self, dim, /*sorted=*/false, return_inverse, return_counts);
}
Three unique_consecutive(const at::Tensor& self, bool return_inverse, bool return_counts, std::optional<int64_t> dim) {
  if (dim && !(*dim == 0 && self.dim() == 1)) {
    return unique_slices(self, *dim, /*sorted=*/false, return_inverse, return_counts);
  }
  return unique_elements(self, /*sorted=*/false, return_inverse, return_counts);
}

} // namespace musa_ops_ported
