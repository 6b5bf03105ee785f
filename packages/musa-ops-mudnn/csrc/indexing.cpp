// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reading and writing through indices and masks. Indices out of range: see support/indices.h.
#include <ATen/Context.h>
#include <ATen/ExpandUtils.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gather_meta.h>
#include <ATen/ops/index_add_meta.h>
#include <ATen/ops/index_copy_meta.h>
#include <ATen/ops/index_meta.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/scatter_add_meta.h>
#include <ATen/ops/scatter_meta.h>
#include <ATen/ops/scatter_reduce_meta.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSASyncDebugMode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/indices.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using IndexList = c10::List<std::optional<at::Tensor>>;

// ---- predicates ---------------------------------------------------------------------------------------------------

bool same_device(const at::Tensor& a, const at::Tensor& b) { return a.device() == b.device(); }

template <Dtypes types, typename... Others>
bool serves_indexed(const at::Tensor& self, const at::Tensor& index, const Others&... others) {
  return serves<types>(self, others...) && serves<index_types>(index) && same_device(self, index);
}

// Returns the dimension `dim`, counted from the front, or -1 if it is out of range.
int64_t axis_of(const at::Tensor& tensor, int64_t dim) {
  return dim >= -tensor.dim() && dim < tensor.dim() ? (dim < 0 ? dim + tensor.dim() : dim) : -1;
}

bool overlaps_itself(const at::Tensor& tensor) { return at::has_internal_overlap(tensor) == at::MemOverlap::Yes; }

// Whether the dtype represents the number exactly; torch raises an error for other numbers.
bool holds(at::ScalarType dtype, const at::Scalar& value) {
  if (value.isComplex() || value.isSymbolic()) {
    return false;
  }
  if (dtype == at::kBool) {
    return value.isBoolean();
  }
  if (at::isIntegralType(dtype, /*includeBool=*/false)) {
    if (!value.isIntegral(/*includeBool=*/true)) {
      return false;
    }
    const int64_t number = value.toLong();
    const auto bits = static_cast<int>(8 * c10::elementSize(dtype));
    return dtype == at::kByte ? number >= 0 && number < 256
        : bits == 64          ? true
                              : number >= -(int64_t{1} << (bits - 1)) && number < (int64_t{1} << (bits - 1));
  }
  const double number = value.toDouble();
  const double limit = dtype == at::kHalf ? 65504.0 : dtype == at::kDouble ? HUGE_VAL : 3.38e38;
  return !std::isfinite(number) || std::abs(number) <= limit;
}

at::Tensor filled(at::IntArrayRef sizes, const at::Tensor& like, const at::Scalar& value) {
  at::Tensor result = new_empty(like, sizes);
  run_fill(result, value);
  return result;
}

// ---- gather -------------------------------------------------------------------------------------------------------

bool gather_served(const at::Tensor& self, int64_t /*dim*/, const at::Tensor& index, bool /*sparse_grad*/) {
  return serves_indexed<all_types>(self, index);
}

// Gathers single elements: each line along `dim` is one batch.
void gather(const at::Tensor& self, int64_t dim, const at::Tensor& index, bool /*sparse_grad*/, const at::Tensor& out) {
  at::Tensor params = at_least_1d(self);
  const at::Tensor places = at_least_1d(index);
  const int64_t axis = at::maybe_wrap_dim(dim, params.dim());
  const int64_t size = params.size(axis);
  for (int64_t i = 0; i < params.dim(); ++i) {
    if (i != axis && params.size(i) != places.size(i)) {
      params = params.narrow(i, 0, places.size(i));
    }
  }
  const at::Tensor turned = places.transpose(axis, -1);
  const Operand picks = contiguous_index(turned);
  require_below(picks, axis, size);
  write_contiguous(at_least_1d(out).transpose(axis, -1), [&](const at::Tensor& result) {
    pick_elements(result, picks, params.transpose(axis, -1).contiguous(), params.numel() / size);
  });
}

// ---- scatter ------------------------------------------------------------------------------------------------------

void scatter_into(
    ScatterMode mode, const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor source,
    const at::Tensor& out) {
  const int64_t axis = at::maybe_wrap_dim(dim, self.dim());
  const at::Tensor places = at_least_1d(contiguous_index(index));
  source = at_least_1d(source);
  for (int64_t i = 0; i < source.dim(); ++i) {
    if (source.size(i) != places.size(i)) {
      source = source.narrow(i, 0, places.size(i));
    }
  }
  source = source.contiguous();
  require_below(places, axis, self.dim() == 0 ? 1 : self.size(axis));
  update(self, out, [&](const at::Tensor& result) { run_scatter(mode, at_least_1d(result), axis, places, source); });
}

bool scatter_src_served(const at::Tensor& self, int64_t /*dim*/, const at::Tensor& index, const at::Tensor& src) {
  // With repeated indices, the value that is kept is undefined.
  return serves_indexed<all_types>(self, index, src) && src.scalar_type() == self.scalar_type() && !must_repeat();
}

void scatter_src(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, const at::Tensor& out) {
  scatter_into(ScatterMode::UPDATE_ONLY, self, dim, index, src, out);
}

bool scatter_value_served(const at::Tensor& self, int64_t /*dim*/, const at::Tensor& index, const at::Scalar& value) {
  return serves_indexed<all_types>(self, index) && holds(self.scalar_type(), value);
}

void scatter_value(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value, const at::Tensor& out) {
  scatter_into(ScatterMode::UPDATE_ONLY, self, dim, index, filled(index.sizes(), self, value), out);
}

bool scatter_add_served(const at::Tensor& self, int64_t /*dim*/, const at::Tensor& index, const at::Tensor& src) {
  return serves_indexed<number_types>(self, index, src) && src.scalar_type() == self.scalar_type() && !must_repeat();
}

void scatter_add(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, const at::Tensor& out) {
  scatter_into(ScatterMode::ADD, self, dim, index, src, out);
}

bool has_mode(std::string_view reduce) {
  return reduce == "add" || reduce == "sum" || reduce == "multiply" || reduce == "prod";
}

ScatterMode mode_of(std::string_view reduce) {
  return reduce == "add" || reduce == "sum" ? ScatterMode::ADD : ScatterMode::MUL;
}

bool scatter_reduce_served(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce) {
  return scatter_add_served(self, dim, index, src) && has_mode(reduce);
}

void scatter_reduce(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce,
    const at::Tensor& out) {
  scatter_into(mode_of(reduce), self, dim, index, src, out);
}

bool scatter_value_reduce_served(
    const at::Tensor& self, int64_t /*dim*/, const at::Tensor& index, const at::Scalar& value,
    c10::string_view reduce) {
  return serves_indexed<number_types>(self, index) && holds(self.scalar_type(), value) && has_mode(reduce) &&
      !must_repeat();
}

void scatter_value_reduce(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value, c10::string_view reduce,
    const at::Tensor& out) {
  scatter_into(mode_of(reduce), self, dim, index, filled(index.sizes(), self, value), out);
}

// include_self=False would require a record of the elements that were written.
bool scatter_reduce_two_served(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce,
    bool include_self) {
  return include_self && scatter_reduce_served(self, dim, index, src, reduce);
}

void scatter_reduce_two(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& src, c10::string_view reduce,
    bool /*include_self*/, const at::Tensor& out) {
  scatter_into(mode_of(reduce), self, dim, index, src, out);
}

// ---- slices -------------------------------------------------------------------------------------------------------

// Writes the slices of `source`, in order, to the slices of `inout` along `axis` that the index vector selects.
void write_slices(
    RowMode mode, const at::Tensor& inout, int64_t axis, const at::Tensor& index, const at::Tensor& source) {
  const Operand given = contiguous(source);
  if (axis == 0) {
    run_scatter_rows(mode, inout, inout.size(0), index, given);
    return;
  }
  at::DimVector sizes(static_cast<size_t>(given->dim()), 1);
  sizes[static_cast<size_t>(axis)] = index.numel();
  const ScatterMode by_element = mode == RowMode::ADD ? ScatterMode::ADD
      : mode == RowMode::SUB                          ? ScatterMode::SUB
                                                      : ScatterMode::UPDATE_ONLY;
  run_scatter(by_element, inout, axis, index.view(sizes).expand(given->sizes()).contiguous(), given);
}

// index is a vector, and source has the shape of self except in dimension `dim`, where it has one slice per index.
bool slices_fit(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
  const int64_t axis = axis_of(self, dim);
  if (axis < 0 || index.dim() > 1 || source.dim() != self.dim() || source.scalar_type() != self.scalar_type()) {
    return false;
  }
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (source.size(i) != (i == axis ? index.numel() : self.size(i))) {
      return false;
    }
  }
  return true;
}

bool index_copy_served(const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source) {
  return serves_indexed<all_types>(self, index, source) && slices_fit(self, dim, index, source) && !must_repeat();
}

void index_copy(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, const at::Tensor& out) {
  const int64_t axis = axis_of(self, dim);
  const Operand places = contiguous_index(index);
  require_index_below(places, axis, self.size(axis));
  update(
      self, out, [&](const at::Tensor& result) { write_slices(RowMode::UPDATE_ONLY, result, axis, places, source); });
}

// Factors other than 1 and -1 are rounded before the sum, which is not accurate enough for 16-bit types.
bool adds(at::ScalarType dtype, const at::Scalar& alpha) {
  return holds(dtype, alpha) && !alpha.isBoolean() &&
      (!contains(reduced_types, dtype) || std::abs(alpha.toDouble()) == 1.0);
}

bool index_add_served(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, const at::Scalar& alpha) {
  return serves_indexed<number_types>(self, index, source) && slices_fit(self, dim, index, source) &&
      adds(self.scalar_type(), alpha) && !must_repeat();
}

void index_add(
    const at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Tensor& source, const at::Scalar& alpha,
    const at::Tensor& out) {
  const int64_t axis = axis_of(self, dim);
  const Operand places = contiguous_index(index);
  require_index_below(places, axis, self.size(axis));
  at::Tensor summands = source;
  if (alpha.toDouble() != 1.0 && alpha.toDouble() != -1.0) {
    summands = new_empty(source, source.sizes());
    run_unary(UnaryMode::MUL, summands, source, alpha);
  }
  const RowMode mode = alpha.toDouble() == -1.0 ? RowMode::SUB : RowMode::ADD;
  update(self, out, [&](const at::Tensor& result) { write_slices(mode, result, axis, places, summands); });
}

bool index_fill_served(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  return serves_indexed<all_types>(self, index) && axis_of(self, dim) >= 0 && index.dim() <= 1 &&
      index.scalar_type() == at::kLong && holds(self.scalar_type(), value) && !overlaps_itself(self);
}

at::Tensor& index_fill_(at::Tensor& self, int64_t dim, const at::Tensor& index, const at::Scalar& value) {
  at::assert_no_overlap(self, index);
  const int64_t axis = axis_of(self, dim);
  const at::Tensor places = wrapped_index(index, self, axis, self.size(axis));
  at::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(axis)] = places.numel();
  const at::Tensor source = filled(sizes, self, value);
  update(
      self, self, [&](const at::Tensor& result) { write_slices(RowMode::UPDATE_ONLY, result, axis, places, source); });
  return self;
}

bool index_select_served(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  return serves_indexed<all_types>(self, index) && axis_of(self, dim) >= 0 && index.dim() <= 1;
}

bool index_select_out_served(const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor& out) {
  return index_select_served(self, dim, index) && writable(out) && same_device(self, out) &&
      out.scalar_type() == self.scalar_type();
}

at::DimVector selected_sizes(const at::Tensor& self, int64_t axis, const at::Tensor& index) {
  at::DimVector sizes(self.sizes());
  sizes[static_cast<size_t>(axis)] = index.numel();
  return sizes;
}

void select_into(const at::Tensor& self, int64_t axis, const at::Tensor& index, const at::Tensor& out) {
  const Operand places = contiguous_index(index);
  const int64_t size = self.size(axis);
  require_index_below(places, axis, size);
  const auto before = self.sizes().slice(0, static_cast<size_t>(axis));
  const int64_t outer = c10::multiply_integers(before);
  write_contiguous(out, [&](const at::Tensor& result) {
    pick_slices(result, places, contiguous(self), outer, size, self.numel() / outer / size);
  });
}

at::Tensor index_select(const at::Tensor& self, int64_t dim, const at::Tensor& index) {
  const int64_t axis = axis_of(self, dim);
  at::Tensor out = new_empty(self, selected_sizes(self, axis, index));
  select_into(self, axis, index, out);
  return out;
}

at::Tensor& index_select_out(const at::Tensor& self, int64_t dim, const at::Tensor& index, at::Tensor& out) {
  const int64_t axis = axis_of(self, dim);
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::native::resize_output(out, selected_sizes(self, axis, index));
  select_into(self, axis, index, out);
  return out;
}

bool embedding_dense_backward_served(
    const at::Tensor& grad_output, const at::Tensor& indices, c10::SymInt num_weights, c10::SymInt /*padding_idx*/,
    bool scale_grad_by_freq) {
  return serves_indexed<float_types>(grad_output, indices) && !scale_grad_by_freq && num_weights > 0 &&
      grad_output.dim() == indices.dim() + 1 &&
      grad_output.sizes().slice(0, static_cast<size_t>(indices.dim())) == indices.sizes() && !must_repeat();
}

at::Tensor embedding_dense_backward(
    const at::Tensor& grad_output, const at::Tensor& indices, c10::SymInt num_weights, c10::SymInt padding_idx,
    bool /*scale_grad_by_freq*/) {
  const int64_t rows = num_weights.guard_int(__FILE__, __LINE__);
  const int64_t padding = padding_idx.guard_int(__FILE__, __LINE__);
  const Operand places = contiguous_index(indices);
  require_index_below(places, 0, rows);
  at::Tensor result = filled({rows, grad_output.size(-1)}, grad_output, 0);
  run_scatter_rows(RowMode::ADD, result, rows, places, grad_output.contiguous());
  if (padding >= 0 && padding < rows) {
    run_fill(result.select(0, padding), 0); // rows of padding get no gradient
  }
  return result;
}

// ---- take and put -------------------------------------------------------------------------------------------------

at::Tensor wrapped_flat(const at::Tensor& index, const at::Tensor& self) {
  return wrapped_index(index, self, 0, self.numel());
}

bool take_served(const at::Tensor& self, const at::Tensor& index) {
  return serves_indexed<all_types>(self, index) && index.scalar_type() == at::kLong;
}

bool take_out_served(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  return take_served(self, index) && writable(out) && same_device(self, out) && out.scalar_type() == self.scalar_type();
}

void take_into(const at::Tensor& self, const at::Tensor& index, const at::Tensor& out) {
  const at::Tensor places = wrapped_flat(index, self);
  write_contiguous(
      out, [&](const at::Tensor& result) { pick_slices(result, places, self.contiguous(), 1, self.numel(), 1); });
}

at::Tensor take(const at::Tensor& self, const at::Tensor& index) {
  at::Tensor out = new_empty(self, index.sizes());
  take_into(self, index, out);
  return out;
}

at::Tensor& take_out(const at::Tensor& self, const at::Tensor& index, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, index);
  at::native::resize_output(out, index.sizes());
  take_into(self, index, out);
  return out;
}

bool put_served(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  return (accumulate ? serves_indexed<number_types>(self, index, source)
                     : serves_indexed<all_types>(self, index, source)) &&
      !must_repeat() && index.scalar_type() == at::kLong && source.scalar_type() == self.scalar_type() &&
      source.numel() == index.numel() && !overlaps_itself(self);
}

at::Tensor& put_(at::Tensor& self, const at::Tensor& index, const at::Tensor& source, bool accumulate) {
  at::assert_no_overlap(self, index);
  at::assert_no_overlap(self, source);
  const at::Tensor places = wrapped_flat(index, self);
  update(self, self, [&](const at::Tensor& result) {
    run_scatter_rows(
        accumulate ? RowMode::ADD : RowMode::UPDATE_ONLY, result, result.numel(), places, source.contiguous());
  });
  return self;
}

// ---- advanced indexing --------------------------------------------------------------------------------------------

// The dimensions that are indexed: adjacent ones, treated as a single dimension. A mask must be the only index.
struct Named {
  int64_t first = 0;
  int64_t count = 0;
  bool masked = false;
  at::DimVector shape; // broadcast shape of the indices; unknown for a mask
};

bool broadcast_with(at::DimVector& shape, at::IntArrayRef other) {
  shape.insert(shape.begin(), other.size() > shape.size() ? other.size() - shape.size() : 0, 1);
  for (size_t i = 1; i <= other.size(); ++i) {
    int64_t& size = shape[shape.size() - i];
    const int64_t wanted = other[other.size() - i];
    if (size != wanted && size != 1 && wanted != 1) {
      return false;
    }
    size = size == 1 ? wanted : size;
  }
  return true;
}

// Returns nullopt if torch raises an error for these indices or this file does not support them.
std::optional<Named> named_by(const at::Tensor& self, const IndexList& indices) {
  Named named;
  int64_t dim = 0;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index.has_value() || !index->defined()) {
      ++dim;
      continue;
    }
    const bool mask = index->scalar_type() == at::kBool;
    const int64_t taken = mask ? index->dim() : 1;
    if (!contains(index_types | bool_type, index->scalar_type()) || index->layout() != at::kStrided ||
        index->numel() == 0 || index->dim() > max_dims || taken == 0 || dim + taken > self.dim() ||
        (index->is_cpu() ? c10::musa::capturing() : !same_device(*index, self))) {
      return std::nullopt; // a graph would copy from host memory that is freed before the replay
    }
    if (mask && index->sizes() != self.sizes().slice(static_cast<size_t>(dim), static_cast<size_t>(taken))) {
      return std::nullopt;
    }
    if (named.count > 0 && (mask || named.masked || named.first + named.count != dim)) {
      return std::nullopt;
    }
    if (!mask && !broadcast_with(named.shape, index->sizes())) {
      return std::nullopt;
    }
    named.first = named.count == 0 ? dim : named.first;
    named.count += taken;
    named.masked = mask;
    dim += taken;
  }
  const bool fits =
      dim <= self.dim() && static_cast<int64_t>(named.shape.size()) + self.dim() - named.count <= max_dims;
  return named.count > 0 && fits ? std::optional(std::move(named)) : std::nullopt;
}

// Returns one index tensor per indexed dimension, on self's device.
std::vector<at::Tensor> indices_of(
    const at::Tensor& self, const IndexList& indices, const Named& named, bool unchecked = false) {
  std::vector<at::Tensor> result;
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::optional<at::Tensor> index = indices.get(i);
    if (!index.has_value() || !index->defined()) {
      continue;
    }
    if (named.masked) { // the size of the result depends on the data, so this waits for the device
      const at::Tensor places = index->nonzero().to(self.device());
      for (int64_t k = 0; k < named.count; ++k) {
        result.push_back(places.select(1, k).contiguous());
      }
      continue;
    }
    const int64_t dim = named.first + static_cast<int64_t>(result.size());
    result.push_back(
        unchecked && !index->is_cpu() ? from_start(contiguous_index(*index), self.size(dim))
                                      : wrapped_index(*index, self, dim, self.size(dim)));
  }
  return result;
}

// Combines the indices into one index for the flattened indexed dimensions. Contiguous, with the broadcast shape.
at::Tensor joined(const at::Tensor& self, const Named& named, const std::vector<at::Tensor>& indices) {
  at::Tensor result = indices[0];
  for (size_t k = 1; k < indices.size(); ++k) {
    const at::Tensor scaled = at::empty(result.sizes(), result.options());
    run_unary(UnaryMode::MUL, scaled, result, self.size(named.first + static_cast<int64_t>(k)));
    at::DimVector shape(result.sizes());
    broadcast_with(shape, indices[k].sizes());
    result = at::empty(shape, result.options());
    run_binary(BinaryMode::ADD, result, scaled, indices[k]);
  }
  return result;
}

bool index_served(const at::Tensor& self, const IndexList& indices) {
  if (!serves<all_types>(self)) {
    return false;
  }
  const std::optional<Named> named = named_by(self, indices);
  return named.has_value() && !(named->masked && c10::musa::capturing());
}

bool index_out_served(const at::Tensor& self, const IndexList& indices, at::Tensor& out) {
  return index_served(self, indices) && writable(out) && same_device(self, out) &&
      out.scalar_type() == self.scalar_type();
}

using IndexOutputs = Outputs<at::meta::structured_index_Tensor, 1>;

void index_into(IndexOutputs& op, const at::Tensor& self, const IndexList& indices) {
  const Named named = *named_by(self, indices);
  const std::vector<at::Tensor> places = indices_of(self, indices, named);
  // Masks are passed to torch's function as indices, so that it does not compute them a second time.
  IndexList plain;
  for (int64_t i = 0; i < named.first; ++i) {
    plain.push_back(std::nullopt);
  }
  for (const at::Tensor& place : places) {
    plain.push_back(place);
  }
  op.meta(self, plain);
  const at::Tensor& out = op.maybe_get_output(0);
  if (out.numel() == 0) {
    return;
  }
  const auto before = self.sizes().slice(0, static_cast<size_t>(named.first));
  const auto inside = self.sizes().slice(static_cast<size_t>(named.first), static_cast<size_t>(named.count));
  const int64_t outer = c10::multiply_integers(before);
  const int64_t size = c10::multiply_integers(inside);
  write_contiguous(out, [&](const at::Tensor& result) {
    pick_slices(result, joined(self, named, places), contiguous(self), outer, size, self.numel() / outer / size);
  });
}

at::Tensor index(const at::Tensor& self, const IndexList& indices) {
  IndexOutputs op;
  index_into(op, self, indices);
  return std::move(op.made[0]);
}

at::Tensor& index_out(const at::Tensor& self, const IndexList& indices, at::Tensor& out) {
  IndexOutputs op;
  op.given = {&out};
  index_into(op, self, indices);
  op.finish();
  return out;
}

// Returns the shape of the written elements: the indexed dimensions are replaced by the shape of the indices.
at::DimVector written_sizes(const at::Tensor& self, const Named& named, at::IntArrayRef shape) {
  at::DimVector sizes(self.sizes().slice(0, static_cast<size_t>(named.first)));
  sizes.append(shape.begin(), shape.end());
  const at::IntArrayRef rest = self.sizes().slice(static_cast<size_t>(named.first + named.count));
  sizes.append(rest.begin(), rest.end());
  return sizes;
}

// Moves `count` dimensions, starting at `first`, to the front.
at::Tensor to_front(const at::Tensor& tensor, int64_t first, int64_t count) {
  at::DimVector order;
  for (int64_t i = 0; i < tensor.dim(); ++i) {
    order.push_back(i < count ? first + i : i < first + count ? i - count : i);
  }
  return tensor.permute(order);
}

bool index_put_served(
    at::Tensor& self, const IndexList& indices, const at::Tensor& values, bool accumulate, bool /*unsafe*/) {
  const bool types =
      accumulate ? serves_with_numbers<number_types>(self, values) : serves_with_numbers<all_types>(self, values);
  if (!types || must_repeat() || !self.is_privateuseone() || values.scalar_type() != self.scalar_type() ||
      overlaps_itself(self)) {
    return false;
  }
  const std::optional<Named> named = named_by(self, indices);
  return named.has_value() &&
      (named->masked ? !c10::musa::capturing()
                     : at::is_expandable_to(values.sizes(), written_sizes(self, *named, named->shape)));
}

at::Tensor& index_put_(
    at::Tensor& self, const IndexList& indices, const at::Tensor& values, bool accumulate, bool unsafe) {
  at::assert_no_overlap(self, values);
  for (size_t i = 0; i < indices.size(); ++i) {
    if (const std::optional<at::Tensor> index = indices.get(i); index.has_value() && index->defined()) {
      at::assert_no_overlap(self, *index);
    }
  }
  const Named named = *named_by(self, indices);
  const std::vector<at::Tensor> each = indices_of(self, indices, named, unsafe);
  // A mask has one index per true element, possibly none.
  const at::IntArrayRef shape = named.masked ? each[0].sizes() : at::IntArrayRef(named.shape);
  const at::Tensor given =
      is_cpu_number(values) ? number_on_device(number_in(values), self, self.scalar_type()) : values;
  const at::DimVector written = written_sizes(self, named, shape);
  TORCH_CHECK(
      at::is_expandable_to(given.sizes(), written), "shape mismatch: value tensor of shape ", given.sizes(),
      " cannot be broadcast to indexing result of shape ", at::IntArrayRef(written));
  const at::Tensor source = given.expand(written);
  if (each[0].numel() == 0) {
    return self;
  }
  const at::Tensor places = joined(self, named, each);
  const at::Tensor rows = to_front(source, named.first, places.dim()).contiguous();
  const at::Tensor target = to_front(self, named.first, named.count);
  const int64_t size = c10::multiply_integers(target.sizes().slice(0, static_cast<size_t>(named.count)));
  update(target, target, [&](const at::Tensor& result) {
    run_scatter_rows(accumulate ? RowMode::ADD : RowMode::UPDATE_ONLY, result, size, places, rows);
  });
  return self;
}

// ---- masks --------------------------------------------------------------------------------------------------------

bool masked_select_served(const at::Tensor& self, const at::Tensor& mask) {
  at::DimVector shape(self.sizes());
  return serves<all_types>(self) && serves<bool_type>(mask) && same_device(self, mask) &&
      broadcast_with(shape, mask.sizes()) && !c10::musa::capturing();
}

bool masked_select_out_served(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  return masked_select_served(self, mask) && writable(out) && same_device(self, out) &&
      out.scalar_type() == self.scalar_type();
}

// Returns a tensor with room for all elements.
at::Tensor select_masked(const at::Tensor& self, const at::Tensor& mask) {
  c10::musa::check_sync("masked_select"); // the length of the result depends on the data
  at::DimVector shape(self.sizes());
  broadcast_with(shape, mask.sizes());
  const at::Tensor from = at_least_1d(self.expand(shape));
  const at::Tensor found = at::empty({from.numel()}, self.options());
  const dnn::MaskedSelect op;
  const OnDevice on(self);
  dnn::Tensor result = describe(found);
  check(
      op.Run(on.handle(), result, operand(from), operand(at_least_1d(mask)), on.workspace()), "MaskedSelect::Run",
      {&found, &self, &mask});
  std::vector<int64_t> dims;
  check(result.GetNdInfo(dims), "Tensor::GetNdInfo");
  TORCH_INTERNAL_ASSERT(dims.size() == 1 && dims[0] >= 0 && dims[0] <= found.numel());
  return found.narrow(0, 0, dims[0]);
}

void fill_with_found(const at::Tensor& out, const at::Tensor& found) {
  if (found.numel() > 0) {
    convert(out, found);
  }
}

at::Tensor masked_select(const at::Tensor& self, const at::Tensor& mask) {
  at::Tensor found = select_masked(self, mask);
  if (found.nbytes() == found.storage().nbytes()) {
    return found;
  }
  // Copied, to free the memory of the elements that were not selected.
  at::Tensor out = at::empty(found.sizes(), found.options());
  fill_with_found(out, found);
  return out;
}

at::Tensor& masked_select_out(const at::Tensor& self, const at::Tensor& mask, at::Tensor& out) {
  at::assert_no_internal_overlap(out);
  at::assert_no_overlap(out, self);
  at::assert_no_overlap(out, mask);
  const at::Tensor found = select_masked(self, mask);
  at::native::resize_output(out, found.sizes());
  fill_with_found(out, found);
  return out;
}

bool masked_scatter_served(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  return serves<all_types>(self, source) && serves<bool_type>(mask) && same_device(self, mask) &&
      source.scalar_type() == self.scalar_type() && at::is_expandable_to(mask.sizes(), self.sizes()) &&
      !overlaps_itself(self);
}

at::Tensor& masked_scatter_(at::Tensor& self, const at::Tensor& mask, const at::Tensor& source) {
  at::assert_no_overlap(self, mask);
  at::assert_no_overlap(self, source);
  if (source.numel() < self.numel() && looks_at_values()) {
    const std::vector<uint8_t> values = values_of<uint8_t>(mask.contiguous());
    const int64_t wanted = std::count(values.begin(), values.end(), 1) * (self.numel() / mask.numel());
    TORCH_CHECK(
        wanted <= source.numel(), "masked_scatter_: the mask selects ", wanted, " elements, but source has only ",
        source.numel(), ": Number of elements of source < number of ones in mask");
  }
  const Operand given = contiguous(source);
  update(self, self, [&](const at::Tensor& result) {
    const at::Tensor target = at_least_1d(result);
    const dnn::MaskedScatter op;
    const OnDevice on(target);
    dnn::Tensor inout = describe(target);
    check(
        op.Run(on.handle(), inout, operand(mask.expand(target.sizes())), operand(at_least_1d(given)), on.workspace()),
        "MaskedScatter::Run", {&self, &mask, &source});
  });
  return self;
}

} // namespace

void declare_indexing(OpPack& pack) {
  using namespace at::meta;
  structured<structured_gather, gather, gather_served>(pack, {"aten::gather", "aten::gather.out"});
  structured<structured_scatter_src, scatter_src, scatter_src_served>(
      pack, {"aten::scatter.src", "aten::scatter.src_out", "aten::scatter_.src"});
  structured<structured_scatter_value, scatter_value, scatter_value_served>(
      pack, {"aten::scatter.value", "aten::scatter.value_out", "aten::scatter_.value"});
  structured<structured_scatter_reduce, scatter_reduce, scatter_reduce_served>(
      pack, {"aten::scatter.reduce", "aten::scatter.reduce_out", "aten::scatter_.reduce"});
  structured<structured_scatter_value_reduce, scatter_value_reduce, scatter_value_reduce_served>(
      pack, {"aten::scatter.value_reduce", "aten::scatter.value_reduce_out", "aten::scatter_.value_reduce"});
  structured<structured_scatter_add, scatter_add, scatter_add_served>(
      pack, {"aten::scatter_add", "aten::scatter_add.out", "aten::scatter_add_"});
  structured<structured_scatter_reduce_two, scatter_reduce_two, scatter_reduce_two_served>(
      pack, {"aten::scatter_reduce.two", "aten::scatter_reduce.two_out", "aten::scatter_reduce_.two"});
  structured<structured_index_copy, index_copy, index_copy_served>(
      pack, {"aten::index_copy", "aten::index_copy.out", "aten::index_copy_"});
  structured<structured_index_add, index_add, index_add_served>(
      pack, {"aten::index_add", "aten::index_add.out", "aten::index_add_"});
  pack.impl("aten::index_fill_.int_Scalar", TORCH_FN(index_fill_), TORCH_FN(index_fill_served));
  pack.impl("aten::index_select", TORCH_FN(index_select), TORCH_FN(index_select_served));
  pack.impl("aten::index_select.out", TORCH_FN(index_select_out), TORCH_FN(index_select_out_served));
  pack.impl(
      "aten::embedding_dense_backward", TORCH_FN(embedding_dense_backward), TORCH_FN(embedding_dense_backward_served));
  pack.impl("aten::take", TORCH_FN(take), TORCH_FN(take_served));
  pack.impl("aten::take.out", TORCH_FN(take_out), TORCH_FN(take_out_served));
  pack.impl("aten::put_", TORCH_FN(put_), TORCH_FN(put_served));
  pack.impl("aten::index.Tensor", TORCH_FN(index), TORCH_FN(index_served));
  pack.impl("aten::index.Tensor_out", TORCH_FN(index_out), TORCH_FN(index_out_served));
  pack.impl("aten::_index_put_impl_", TORCH_FN(index_put_), TORCH_FN(index_put_served));
  pack.impl("aten::masked_select", TORCH_FN(masked_select), TORCH_FN(masked_select_served));
  pack.impl("aten::masked_select.out", TORCH_FN(masked_select_out), TORCH_FN(masked_select_out_served));
  pack.impl("aten::masked_scatter_", TORCH_FN(masked_scatter_), TORCH_FN(masked_scatter_served));
}

} // namespace musa_ops_mudnn
