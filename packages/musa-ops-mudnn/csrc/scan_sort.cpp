// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Cumulative ops, sorting and value search: Cum, Sort, TopK, Nonzero, Unique.
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/ops/cumprod_meta.h>
#include <ATen/ops/cumsum_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sort_meta.h>
#include <ATen/ops/topk_meta.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSASyncDebugMode.h>

#include <limits>
#include <vector>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

int wrapped(const at::Tensor& self, int64_t dim) { return static_cast<int>(at::maybe_wrap_dim(dim, self.dim())); }

// The result for a 0-dim tensor: its only element, and index 0.
void take_scalar(const at::Tensor& self, const at::Tensor& values, const at::Tensor& indices) {
  convert(values, self);
  run_fill(indices, 0);
}

// The terms are converted to the dtype of `out` before they are added.
template <dnn::Cum::Mode mode>
void cumulate(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> /*dtype*/, const at::Tensor& out) {
  if (out.numel() == 0) {
    return;
  }
  at::assert_no_partial_overlap(out, self);
  const Operand in = in_dtype(self, out.scalar_type());
  if (self.dim() == 0) {
    if (!out.is_alias_of(in)) {
      convert(out, in);
    }
    return;
  }
  dnn::Cum op;
  check(op.SetMode(mode), "Cum::SetMode");
  check(op.SetDim(wrapped(self, dim)), "Cum::SetDim");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(in), on.workspace()), "Cum::Run", {&out, &self});
}

// torch has no cumulative ops with a boolean result.
bool cumulate_served(const at::Tensor& self, int64_t /*dim*/, std::optional<at::ScalarType> dtype) {
  const bool rounds = at::isFloatingType(dtype.value_or(self.scalar_type()));
  return serves<all_types>(self) && contains(number_types, dtype.value_or(at::kLong)) && !(rounds && must_repeat());
}

bool cumulate_out_served(const at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype, at::Tensor& out) {
  return cumulate_served(self, dim, dtype) && writable(out) && contains(number_types, out.scalar_type());
}

bool cumulate_in_place_served(at::Tensor& self, int64_t dim, std::optional<at::ScalarType> dtype) {
  return cumulate_out_served(self, dim, dtype, self);
}

template <typename Meta, dnn::Cum::Mode mode>
void scan(OpPack& pack, Names names) {
  using Forms = typename MetaMethod<decltype(&Meta::meta)>::template One<Meta, cumulate<mode>>;
  pack.impl(names.functional, TORCH_FN(Forms::functional), TORCH_FN(cumulate_served));
  pack.impl(names.out, TORCH_FN(Forms::out), TORCH_FN(cumulate_out_served));
  pack.impl(names.in_place, TORCH_FN(Forms::InPlace::in_place), TORCH_FN(cumulate_in_place_served));
}

void sort(
    const at::Tensor& self, std::optional<bool> stable, int64_t dim, bool descending, const at::Tensor& values,
    const at::Tensor& indices) {
  if (self.dim() == 0) {
    take_scalar(self, values, indices);
    return;
  }
  at::assert_no_partial_overlap(values, self);
  dnn::Sort op;
  check(op.SetDim(wrapped(self, dim)), "Sort::SetDim");
  check(op.SetDescending(descending), "Sort::SetDescending");
  check(op.SetStable(stable.value_or(false)), "Sort::SetStable");
  const OnDevice on(values);
  dnn::Tensor sorted = describe(values);
  dnn::Tensor places = describe(indices);
  check(op.Run(on.handle(), sorted, places, operand(self), on.workspace()), "Sort::Run", {&values, &indices, &self});
}

void topk(
    const at::Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted, const at::Tensor& values,
    const at::Tensor& indices) {
  if (values.numel() == 0) {
    return;
  }
  if (self.dim() == 0) {
    take_scalar(self, values, indices);
    return;
  }
  dnn::TopK op;
  check(op.SetK(static_cast<int>(k)), "TopK::SetK");
  check(op.SetDim(wrapped(self, dim)), "TopK::SetDim");
  check(op.SetLargest(largest), "TopK::SetLargest");
  check(op.SetSorted(sorted), "TopK::SetSorted");
  const OnDevice on(values);
  dnn::Tensor top = describe(values);
  dnn::Tensor places = describe(indices);
  check(op.Run(on.handle(), top, places, operand(self), on.workspace()), "TopK::Run", {&values, &indices, &self});
}

// muDNN takes k as an int. torch sorts booleans, but does not support them in topk.
bool topk_served(const at::Tensor& self, int64_t k, int64_t /*dim*/, bool /*largest*/, bool /*sorted*/) {
  return serves<number_types>(self) && k <= std::numeric_limits<int>::max();
}

// Returns the rows that muDNN found, which are at the start of `room`.
at::Tensor front(const at::Tensor& room, int64_t found) { return room.narrow(0, 0, found); }

int64_t found_in(const dnn::Tensor& described) {
  std::vector<int64_t> sizes;
  check(described.GetNdInfo(sizes), "Tensor::GetNdInfo");
  return sizes.at(0);
}

// The number of elements is only available after the search, so the buffer has room for all elements.
at::Tensor find_nonzero(const at::Tensor& self) {
  c10::musa::check_sync("nonzero");
  const at::Tensor room = at::empty({self.numel(), self.dim()}, self.options().dtype(at::kLong));
  const OnDevice on(self);
  dnn::Tensor places = describe(room);
  const dnn::Nonzero op;
  check(op.Run(on.handle(), places, operand(self), on.workspace()), "Nonzero::Run", {&room, &self});
  return front(room, found_in(places));
}

at::Tensor nonzero(const at::Tensor& self) {
  const at::Tensor found = find_nonzero(self);
  // torch's layout: the coordinates along one dimension are adjacent in memory.
  const at::Tensor out = at::empty({found.size(1), found.size(0)}, found.options()).t();
  if (out.numel() > 0) {
    convert(out, found);
  }
  return out;
}

at::Tensor& nonzero_out(const at::Tensor& self, at::Tensor& out) {
  const at::Tensor found = find_nonzero(self);
  if (at::native::resize_output(out, found.sizes())) {
    out.as_strided_(found.sizes(), {1, found.size(0)});
  }
  if (out.numel() > 0) {
    convert(out, found);
  }
  return out;
}

// Waits for the stream to get the number of elements, which is not possible during a capture; the next provider raises
// the error. For a 0-dim tensor the result would have no elements.
bool nonzero_served(const at::Tensor& self) {
  return serves<all_types>(self) && self.dim() > 0 && !c10::musa::capturing();
}

bool nonzero_out_served(const at::Tensor& self, at::Tensor& out) {
  return nonzero_served(self) && writable(out) && out.device() == self.device() && out.scalar_type() == at::kLong;
}

// muDNN returns the values in any order. They are sorted even if `sorted` is false, as in torch on other devices.
std::tuple<at::Tensor, at::Tensor, at::Tensor> unique2(
    const at::Tensor& self, bool /*sorted*/, bool return_inverse, bool return_counts) {
  c10::musa::check_sync("unique");
  const at::TensorOptions index = self.options().dtype(at::kLong);
  const at::Tensor in = self.contiguous();
  const int64_t count = in.numel();
  const at::Tensor room = at::empty({count}, self.options());
  const at::Tensor places = at::empty({count}, index);
  const at::Tensor counts = at::empty({count}, index);
  int64_t found = 0;
  {
    const OnDevice on(self);
    dnn::Unique op;
    check(op.SetMode(dnn::Unique::Mode::UNSORTED), "Unique::SetMode");
    dnn::Tensor values = describe(room);
    dnn::Tensor inverse = describe(places);
    dnn::Tensor times = describe(counts);
    check(
        op.Run(on.handle(), values, inverse, times, describe_as(in, {count}, {1}, kRead), on.workspace()),
        "Unique::Run", {&room, &self});
    found = found_in(times);
  }
  const auto [values, order] = at::sort(front(room, found), /*dim=*/0);
  const at::Tensor none = at::empty({0}, index);
  at::Tensor inverse = none;
  if (return_inverse) {
    // The position of each value after sorting: the inverse of the permutation.
    const at::Tensor rank = std::get<1>(at::sort(order, /*dim=*/0));
    inverse = at::index_select(rank, 0, places).view(self.sizes());
  }
  return {values, inverse, return_counts ? at::index_select(counts, 0, order) : none};
}

bool unique2_served(const at::Tensor& self, bool /*sorted*/, bool /*return_inverse*/, bool /*return_counts*/) {
  return serves<number_types>(self) && !c10::musa::capturing();
}

std::tuple<at::Tensor, at::Tensor> unique(const at::Tensor& self, bool sorted, bool return_inverse) {
  const auto [values, inverse, counts] = unique2(self, sorted, return_inverse, /*return_counts=*/false);
  return {values, inverse};
}

bool unique_served(const at::Tensor& self, bool /*sorted*/, bool /*return_inverse*/) {
  return serves<number_types>(self) && !c10::musa::capturing();
}

} // namespace

// torch composes sort and argsort without `stable` of sort.stable.
void declare_scan_sort(OpPack& pack) {
  scan<at::meta::structured_cumsum, dnn::Cum::Mode::ADD>(pack, {"aten::cumsum", "aten::cumsum.out", "aten::cumsum_"});
  scan<at::meta::structured_cumprod, dnn::Cum::Mode::MUL>(
      pack, {"aten::cumprod", "aten::cumprod.out", "aten::cumprod_"});
  structured_pair<at::meta::structured_sort_stable, sort, takes<number_types>>(
      pack, {"aten::sort.stable", "aten::sort.values_stable"});
  structured_pair<at::meta::structured_topk, topk, topk_served>(pack, {"aten::topk", "aten::topk.values"});
  pack.impl("aten::nonzero", TORCH_FN(nonzero), TORCH_FN(nonzero_served));
  pack.impl("aten::nonzero.out", TORCH_FN(nonzero_out), TORCH_FN(nonzero_out_served));
  pack.impl("aten::_unique2", TORCH_FN(unique2), TORCH_FN(unique2_served));
  pack.impl("aten::_unique", TORCH_FN(unique), TORCH_FN(unique_served));
}

} // namespace musa_ops_mudnn
