// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Scatter, ScatterND, GatherX, MaskedSelect, MaskedScatter.
#include <ATen/ops/arange.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/gather_cpu_dispatch.h>
#include <ATen/ops/index_add_cpu_dispatch.h>
#include <ATen/ops/index_copy_cpu_dispatch.h>
#include <ATen/ops/index_select_cpu_dispatch.h>
#include <ATen/ops/masked_scatter_cpu_dispatch.h>
#include <ATen/ops/masked_select_cpu_dispatch.h>
#include <ATen/ops/neg_cpu_dispatch.h>
#include <ATen/ops/scatter_add_cpu_dispatch.h>
#include <ATen/ops/scatter_cpu_dispatch.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"
#include "support/small.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using Type = Tensor::Type;
using Dims = std::vector<int64_t>;

Tensor reshaped(const Tensor& contiguous, const Dims& dims) {
  Tensor result = contiguous;
  result.SetNdInfo(static_cast<int64_t>(dims.size()), dims.data());
  return result;
}

int64_t product(const int64_t* first, const int64_t* last) {
  return std::accumulate(first, last, int64_t{1}, std::multiplies<>());
}

int64_t product(const Dims& dims) { return product(dims.data(), dims.data() + dims.size()); }

// Returns the sizes of the dimensions first <= i < last.
Dims dims_of(const Tensor& tensor, int first, int last) {
  return {TensorAccess::dims(tensor) + first, TensorAccess::dims(tensor) + std::max(first, last)};
}

bool has_dims(const Tensor& tensor, const Dims& dims) {
  return static_cast<size_t>(std::max(TensorAccess::ndim(tensor), 0)) == dims.size() &&
      std::equal(dims.begin(), dims.end(), TensorAccess::dims(tensor));
}

Dims joined(Dims first, const Dims& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Whether out has the shape of params with dimension `axis` replaced by the sizes first to last.
bool is_spliced(const Tensor& out, const Tensor& params, int axis, const int64_t* first, const int64_t* last) {
  const int64_t* const dims = TensorAccess::dims(params);
  const int64_t* const own = TensorAccess::dims(out);
  const auto count = static_cast<int>(last - first);
  const int ndim = TensorAccess::ndim(params);
  return TensorAccess::ndim(out) == ndim - 1 + count && std::equal(dims, dims + axis, own) &&
      std::equal(first, last, own + axis) && std::equal(dims + axis + 1, dims + ndim, own + axis + count);
}

// A 0-dim tensor counts as 1-d. Returns -1 if the dimension does not exist.
int wrapped(int dim, const Tensor& tensor) {
  const int ndim = std::max(TensorAccess::ndim(tensor), 1);
  return dim >= -ndim && dim < ndim ? (dim + ndim) % ndim : -1;
}

// Checks that all operations share, for the tensor that is accessed through indices and the other one.
bool accepts(Call& call, const Tensor& written, const Tensor& other) {
  return call.require(
             TensorAccess::present(written) && TensorAccess::present(other), Status::INVALID_PARAMETER,
             "an operand is absent") &&
      call.require(
          has_type(other, {TensorAccess::type(written)}), Status::INVALID_PARAMETER,
          "the operands other than the indices differ in type") &&
      call.require(
          !has_type(written, {Type::QINT4}), Status::NOT_SUPPORTED,
          "QINT4 is not supported, because two elements share a byte");
}

bool accepts_indexed(
    Call& call, const Tensor& written, const Tensor& indices, const Tensor& other,
    std::initializer_list<Type> index_types) {
  return accepts(call, written, other) &&
      call.require(TensorAccess::present(indices), Status::INVALID_PARAMETER, "the indices are absent") &&
      call.require(
          has_type(indices, index_types), Status::INVALID_PARAMETER, "the type of the indices is not supported") &&
      call.require(
          TensorAccess::contiguous(written) && TensorAccess::contiguous(indices) && TensorAccess::contiguous(other),
          Status::NOT_SUPPORTED, "an operand is not contiguous");
}

bool computes_in(const Tensor& tensor) {
  return has_type(
      tensor,
      {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE, Type::INT8, Type::INT16, Type::INT32, Type::INT64,
       Type::UINT8});
}

// Whether the sizes of `small` are at most those of `large`, except in dimension `except`.
bool within(const Tensor& small, const Tensor& large, int except) {
  if (TensorAccess::ndim(small) != TensorAccess::ndim(large)) {
    return false;
  }
  for (int i = 0; i < TensorAccess::ndim(small); ++i) {
    if (i != except && TensorAccess::dims(small)[i] > TensorAccess::dims(large)[i]) {
      return false;
    }
  }
  return true;
}

// Converts the indices to INT64, the type that torch requires.
at::Tensor as_long(const Tensor& indices) {
  const at::Tensor given = alias(indices);
  if (given.scalar_type() == at::kLong) {
    return given;
  }
  at::Tensor longs = new_tensor(given.sizes(), at::kLong);
  at::native::copy_(longs, given);
  return longs;
}

// The indices are coordinates in dimensions of the given sizes. Returns the row for each index, with these dimensions
// and the preceding batch dimensions flattened.
at::Tensor rows_of(const Tensor& indices, const Dims& sizes, int64_t batches) {
  if (sizes.size() == 1 && batches == 1) { // unchanged; torch's functions check the range
    return as_long(reshaped(indices, {TensorAccess::elements(indices)}));
  }
  const at::Tensor given = as_long(indices);
  const auto depth = static_cast<int64_t>(sizes.size());
  const int64_t rows = given.numel() / depth;
  const int64_t rows_per_batch = rows / batches;
  if constexpr (!kOnHost) { // the range is not checked
    const at::Tensor coordinates = given.reshape({rows, depth});
    at::Tensor result = at::arange(rows, options_of(at::kLong)).floor_divide(rows_per_batch);
    for (int64_t i = 0; i < depth; ++i) {
      result = result.mul(sizes[static_cast<size_t>(i)]).add(coordinates.select(1, i));
    }
    return result;
  }
  at::Tensor result = new_tensor({rows}, at::kLong);
  const auto* coordinate = given.const_data_ptr<int64_t>();
  auto* const row = result.mutable_data_ptr<int64_t>();
  for (int64_t k = 0; k < rows; ++k) {
    row[k] = k / rows_per_batch;
    for (const int64_t size : sizes) {
      if (*coordinate < 0 || *coordinate >= size) {
        throw std::out_of_range(
            "index " + std::to_string(*coordinate) + " is out of range for a dimension of size " +
            std::to_string(size));
      }
      row[k] = row[k] * size + *coordinate++;
    }
  }
  return result;
}

// Rows of one element need no second dimension; torch is faster without it.
Dims as_rows(int64_t rows, int64_t elements) { return elements == 1 ? Dims{rows} : Dims{rows, elements}; }

// Workspace for one float per element that is accumulated in a 16-bit type.
size_t bytes_to_accumulate(const Tensor& inout, bool computes) {
  const bool reduced = has_type(inout, {Type::HALF, Type::BFLOAT16});
  return computes && reduced ? static_cast<size_t>(TensorAccess::elements(inout)) * sizeof(float) : 0;
}

// Workspace for the position of each element among the selected ones.
size_t bytes_for_places(int64_t elements) { return static_cast<size_t>(elements) * sizeof(int64_t); }

} // namespace

Status Scatter::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Scatter::Run(
    Handle& handle, Tensor& inout, const Tensor& indices, const Tensor& source, int dim,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Scatter::Run">(handle, {&inout, &indices, &source}, [&](Call& call) {
    if (!accepts_indexed(call, inout, indices, source, {Type::INT64})) {
      return call.status();
    }
    const int axis = wrapped(dim, inout);
    if (!call.require(axis >= 0, Status::INVALID_PARAMETER, "inout has no dimension `dim`") ||
        !call.require(
            within(indices, source, -1) && within(indices, inout, axis), Status::INVALID_PARAMETER,
            "the indices are larger than source, or larger than inout in a dimension other than `dim`") ||
        !call.require(
            mode_ == Mode::UPDATE_ONLY || computes_in(inout), Status::NOT_SUPPORTED,
            "the mode does not support the type of inout")) {
      return call.status();
    }
    const size_t bytes = bytes_to_accumulate(inout, mode_ != Mode::UPDATE_ONLY);
    return call.enqueue(workspace, bytes, [mode = mode_, axis, inout = inout, indices = indices, source = source] {
      const bool moves = mode == Mode::UPDATE_ONLY;
      at::Tensor result = alias(moves ? as_bits(inout) : inout);
      const at::Tensor from = alias(moves ? as_bits(source) : source);
      const at::Tensor to = alias(indices);
      switch (mode) {
        case Mode::UPDATE_ONLY: ops::scatter_(result, axis, to, from); return;
        case Mode::ADD: ops::scatter_add_(result, axis, to, from); return;
        case Mode::SUB: ops::scatter_add_(result, axis, to, ops::neg(from)); return;
        case Mode::MUL: ops::scatter_(result, axis, to, from, "multiply"); return;
      }
    });
  });
}

Status ScatterND::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status ScatterND::Run(
    Handle& handle, Tensor& inout, const Tensor& indices, const Tensor& updates,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::ScatterND::Run">(handle, {&inout, &indices, &updates}, [&](Call& call) {
    if (!accepts_indexed(call, inout, indices, updates, {Type::INT32, Type::INT64})) {
      return call.status();
    }
    const int ndim = TensorAccess::ndim(inout);
    const int last = TensorAccess::ndim(indices) - 1;
    if (!call.require(
            last >= 0 && TensorAccess::dims(indices)[last] <= ndim, Status::INVALID_PARAMETER,
            "the last dimension of the indices is 0 or larger than the rank of inout")) {
      return call.status();
    }
    const int depth = static_cast<int>(TensorAccess::dims(indices)[last]);
    const Dims rest = dims_of(inout, depth, ndim);
    if (!call.require(
            has_dims(updates, joined(dims_of(indices, 0, last), rest)), Status::INVALID_PARAMETER,
            "the shape of updates is not that of the indices without the last dimension, plus the rest of inout") ||
        !call.require(
            mode_ == Mode::UPDATE_ONLY || computes_in(inout), Status::NOT_SUPPORTED,
            "the mode does not support the type of inout")) {
      return call.status();
    }
    // No workspace is requested, because some known callers pass an empty maintainer.
    return call.enqueue(
        workspace, 0,
        [mode = mode_, sizes = dims_of(inout, 0, depth), elements = product(rest), inout = inout, indices = indices,
         updates = updates] {
          const at::Tensor rows = rows_of(indices, sizes, 1);
          const Tensor whole = reshaped(inout, as_rows(product(sizes), elements));
          const Tensor parts = reshaped(updates, as_rows(rows.numel(), elements));
          const bool moves = mode == Mode::UPDATE_ONLY;
          at::Tensor result = alias(moves ? as_bits(whole) : whole);
          const at::Tensor from = alias(moves ? as_bits(parts) : parts);
          switch (mode) {
            case Mode::UPDATE_ONLY: ops::index_copy_(result, 0, rows, from); return;
            case Mode::ADD: ops::index_add_(result, 0, rows, from); return;
            case Mode::SUB: ops::index_add_(result, 0, rows, ops::neg(from)); return;
          }
        });
  });
}

Status GatherX::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status GatherX::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status GatherX::SetBatchDims(int batch_dims) {
  if (batch_dims < 0) {
    return Status::INVALID_PARAMETER;
  }
  batch_dims_ = batch_dims;
  return Status::SUCCESS;
}

Status GatherX::Run(Handle& handle, Tensor& out, const Tensor& indices, const Tensor& params) const {
  return call<"musa::dnn::GatherX::Run">(handle, {&out, &indices, &params}, [&](Call& call) {
    if (!accepts_indexed(call, out, indices, params, {Type::INT32, Type::INT64})) {
      return call.status();
    }
    const int ndim = TensorAccess::ndim(params);
    const int index_ndim = TensorAccess::ndim(indices);
    const int axis = wrapped(axis_, params);
    const char* const wrong_out = "the shape of out does not match the indices";

    if (mode_ == Mode::GATHER_ELEMENTS) { // out[i, j] = params[indices[i, j], j]
      if (!call.require(axis >= 0, Status::INVALID_PARAMETER, "params have no dimension `axis`") ||
          !call.require(
              within(indices, params, axis), Status::INVALID_PARAMETER,
              "the indices are larger than params in a dimension other than `axis`") ||
          !call.require(same_shape(out, indices), Status::INVALID_PARAMETER, wrong_out)) {
        return call.status();
      }
      return call.enqueue([axis, out = as_bits(out), indices = indices, params = as_bits(params)] {
        at::Tensor result = alias(out);
        const Outputs given(result);
        ops::gather_out(result, alias(params), axis, as_long(indices));
        given.keep();
      });
    }

    const int batch = batch_dims_;
    const int64_t* const dims = TensorAccess::dims(params);
    const int64_t* const index_dims = TensorAccess::dims(indices);
    if (!call.require(
            batch <= std::min(ndim, index_ndim) && std::equal(dims, dims + batch, index_dims),
            Status::INVALID_PARAMETER, "the indices and params differ in the batch dimensions")) {
      return call.status();
    }
    const int64_t batches = product(dims, dims + batch);

    if (mode_ == Mode::GATHER_ND) { // out[i] = params[indices[i, 0], indices[i, 1], ...]
      const int last = index_ndim - 1;
      if (!call.require(
              last >= batch && TensorAccess::dims(indices)[last] <= ndim - batch, Status::INVALID_PARAMETER,
              "the last dimension of the indices is 0 or larger than the rank of params")) {
        return call.status();
      }
      const int named = batch + static_cast<int>(TensorAccess::dims(indices)[last]);
      const Dims rest = dims_of(params, named, ndim);
      if (!call.require(has_dims(out, joined(dims_of(indices, 0, last), rest)), Status::INVALID_PARAMETER, wrong_out)) {
        return call.status();
      }
      return call.enqueue([batches, sizes = dims_of(params, batch, named), elements = product(rest), out = as_bits(out),
                           indices = indices, params = as_bits(params)] {
        const at::Tensor rows = rows_of(indices, sizes, batches);
        at::Tensor result = alias(reshaped(out, as_rows(rows.numel(), elements)));
        const at::Tensor from = alias(reshaped(params, as_rows(batches * product(sizes), elements)));
        const Outputs given(result);
        ops::index_select_out(result, from, 0, rows);
        given.keep();
      });
    }

    // GATHER: slices of params along the axis, in the order of the indices.
    if (!call.require(
            ndim > 0 && axis >= batch, Status::INVALID_PARAMETER,
            "params have no dimension `axis`, or it is a batch dimension") ||
        !call.require(
            is_spliced(out, params, axis, index_dims + batch, index_dims + index_ndim), Status::INVALID_PARAMETER,
            wrong_out)) {
      return call.status();
    }
    const int64_t outer = product(dims + batch, dims + axis);
    const int64_t size = dims[axis];
    const int64_t inner = product(dims + axis + 1, dims + ndim);
    const int64_t picks = product(index_dims + batch, index_dims + index_ndim);
    return call.enqueue([batches, outer, size, inner, picks, out = as_bits(out), indices = indices,
                         params = as_bits(params)] {
      const auto bytes = inner * static_cast<int64_t>(c10::elementSize(scalar_type(TensorAccess::type(params))));
      if (batches == 1 && is_small_pick(outer, picks, bytes) && pick_small(out, indices, params, outer, size, bytes)) {
        return; // otherwise torch reports the index that is out of range
      }
      if (batches == 1 && outer == 1) { // whole slices at once, which is fastest along the first dimension
        at::Tensor result = alias(reshaped(out, as_rows(picks, inner)));
        const Outputs given(result);
        ops::index_select_out(
            result, alias(reshaped(params, as_rows(size, inner))), 0, as_long(reshaped(indices, {picks})));
        given.keep();
        return;
      }
      if (batches == 1) {
        at::Tensor result = alias(reshaped(out, {outer, picks, inner}));
        const Outputs given(result);
        ops::index_select_out(
            result, alias(reshaped(params, {outer, size, inner})), 1, as_long(reshaped(indices, {picks})));
        given.keep();
        return;
      }
      at::Tensor result = alias(reshaped(out, {batches, outer, picks, inner}));
      Tensor spread = indices;
      spread.SetNdInfo({batches, outer, picks, inner}, {picks, 0, 1, 0});
      const Outputs given(result);
      ops::gather_out(result, alias(reshaped(params, {batches, outer, size, inner})), 2, as_long(spread));
      given.keep();
    });
  });
}

Status MaskedSelect::Run(
    Handle& handle, Tensor& out, const Tensor& in, const Tensor& mask, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::MaskedSelect::Run">(handle, {&out, &in, &mask}, [&](Call& call) {
    const int64_t elements = TensorAccess::elements(in);
    if (!accepts(call, out, in) ||
        !call.require(
            TensorAccess::present(mask) && has_type(mask, {Type::BOOL}) && broadcast_to(in, {&in, &mask}),
            Status::INVALID_PARAMETER, "the mask is not a BOOL tensor that broadcasts to in") ||
        !call.require(
            TensorAccess::ndim(out) == 1 && TensorAccess::elements(out) >= elements, Status::INVALID_PARAMETER,
            "out is not 1-d with room for all elements of in") ||
        !call.require(TensorAccess::contiguous(out), Status::NOT_SUPPORTED, "out is not contiguous")) {
      return call.status();
    }
    // Shared, because the task may still run after the wait has failed.
    const auto found = std::make_shared<int64_t>(0);
    const Status status = call.run_and_wait(
        workspace, bytes_for_places(elements), [found, out = as_bits(out), in = as_bits(in), mask = mask] {
          const at::Tensor chosen = ops::masked_select(alias(in), alias(mask));
          at::Tensor result = alias(reshaped(out, {chosen.numel()}));
          at::native::copy_(result, chosen);
          *found = chosen.numel();
        });
    return status == Status::SUCCESS ? out.SetNdInfo({*found}) : status;
  });
}

Status MaskedScatter::Run(
    Handle& handle, Tensor& inout, const Tensor& mask, const Tensor& source, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::MaskedScatter::Run">(handle, {&inout, &mask, &source}, [&](Call& call) {
    if (!accepts(call, inout, source) ||
        !call.require(
            TensorAccess::present(mask) && has_type(mask, {Type::BOOL}) && broadcast_to(inout, {&inout, &mask}),
            Status::INVALID_PARAMETER, "the mask is not a BOOL tensor that broadcasts to inout")) {
      return call.status();
    }
    const size_t bytes = bytes_for_places(TensorAccess::elements(inout));
    return call.enqueue(workspace, bytes, [inout = as_bits(inout), mask = mask, source = as_bits(source)] {
      at::Tensor result = alias(inout);
      ops::masked_scatter_(result, alias(mask), alias(source));
    });
  });
}

} // namespace musa::dnn
