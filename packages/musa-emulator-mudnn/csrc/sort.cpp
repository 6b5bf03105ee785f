// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sort, SortByKey, TopK, Unique, Nonzero.
#include <ATen/ops/_unique2_cpu_dispatch.h>
#include <ATen/ops/clone_native.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather_cpu_dispatch.h>
#include <ATen/ops/index_select_cpu_dispatch.h>
#include <ATen/ops/nonzero_cpu_dispatch.h>
#include <ATen/ops/sort_cpu_dispatch.h>
#include <ATen/ops/topk_cpu_dispatch.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <vector>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using Type = Tensor::Type;

bool accept_outs(Call& call, std::initializer_list<const Tensor*> outs) {
  for (const Tensor* out : outs) {
    if (!call.require(TensorAccess::present(*out), Status::INVALID_PARAMETER, "an output is absent") ||
        !call.require(!same_spot_twice(*out), Status::INVALID_PARAMETER, "elements of an output share memory")) {
      return false;
    }
  }
  return true;
}

bool accept_ins(Call& call, std::initializer_list<const Tensor*> ins) {
  for (const Tensor* in : ins) {
    if (!call.require(TensorAccess::present(*in), Status::INVALID_PARAMETER, "an input is absent") ||
        !call.require(
            has_type(
                *in,
                {Type::HALF, Type::BFLOAT16, Type::FLOAT, Type::DOUBLE, Type::BOOL, Type::INT8, Type::INT16,
                 Type::INT32, Type::INT64, Type::UINT8}),
            Status::NOT_SUPPORTED, "the type of an input is not supported")) {
      return false;
    }
  }
  return true;
}

bool accept_dim(Call& call, int dim, const Tensor& in) {
  const int ndim = std::max(TensorAccess::ndim(in), 1);
  return call.require(dim >= -ndim && dim < ndim, Status::INVALID_PARAMETER, "the dimension is out of range");
}

// For outputs whose shape is set by the operation: checks that there is room for the worst case.
bool accept_room(Call& call, const Tensor& out, int64_t elements) {
  return call.require(
             TensorAccess::contiguous(out), Status::INVALID_PARAMETER,
             "an output with variable length is not contiguous") &&
      call.require(
          TensorAccess::elements(out) >= elements, Status::INVALID_PARAMETER,
          "an output is too small for the longest result");
}

// Workspace for a second pair of keys and indices: sort passes alternate between the two.
size_t second_pair(const Tensor& in) {
  const size_t element = c10::elementSize(scalar_type(TensorAccess::type(in))) + sizeof(int64_t);
  return static_cast<size_t>(TensorAccess::elements(in)) * element;
}

// Writes the elements found to the start of an output.
void store_shaped(Tensor out, const at::Tensor& found) {
  out.SetNdInfo(found.dim(), found.sizes().data());
  at::Tensor result = alias(out);
  at::native::copy_(result, found);
}

struct Uniques {
  at::Tensor values;
  at::Tensor inverse; // contiguous
  at::Tensor counts;
};

// Changes the order from sorted values to first occurrences, so that no caller relies on sorted values in UNSORTED
// mode.
void order_by_occurrence(Uniques& unique) {
  at::Tensor order = at::empty_like(unique.counts);
  auto* const old_of = order.mutable_data_ptr<int64_t>();
  auto* const inverse = unique.inverse.mutable_data_ptr<int64_t>();
  std::vector<int64_t> new_of(static_cast<size_t>(order.numel()), -1);
  int64_t next = 0;
  for (int64_t i = 0; i < unique.inverse.numel(); ++i) {
    int64_t& place = new_of[static_cast<size_t>(inverse[i])];
    if (place < 0) {
      old_of[next] = inverse[i];
      place = next++;
    }
    inverse[i] = place;
  }
  unique.values = ops::index_select(unique.values, 0, order);
  unique.counts = ops::index_select(unique.counts, 0, order);
}

} // namespace

Status Sort::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Sort::SetDescending(bool descending) {
  descending_ = descending;
  return Status::SUCCESS;
}

Status Sort::SetStable(bool stable) {
  stable_ = stable;
  return Status::SUCCESS;
}

Status Sort::Run(
    Handle& handle, Tensor& values, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Sort::Run">(handle, {&values, &indices, &in}, [&](Call& call) {
    if (!accept_ins(call, {&in}) || !accept_outs(call, {&values, &indices}) || !accept_dim(call, dim_, in) ||
        !call.require(
            same_shape(values, in) && same_shape(indices, in), Status::INVALID_PARAMETER,
            "values and indices differ in shape from the input") ||
        !call.require(
            TensorAccess::type(values) == TensorAccess::type(in), Status::INVALID_PARAMETER,
            "values and input differ in type") ||
        !call.require(has_type(indices, {Type::INT64}), Status::INVALID_PARAMETER, "the indices are not INT64")) {
      return call.status();
    }
    return call.enqueue(
        workspace, second_pair(in),
        [dim = dim_, descending = descending_, stable = stable_, values = values, indices = indices, in = in] {
          at::Tensor sorted = alias(values);
          at::Tensor places = alias(indices);
          const Outputs given(sorted, places);
          ops::sort_out(sorted, places, alias(in), stable, dim, descending);
          given.keep();
        });
  });
}

Status SortByKey::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status SortByKey::SetDescending(bool descending) {
  descending_ = descending;
  return Status::SUCCESS;
}

Status SortByKey::SetStable(bool stable) {
  stable_ = stable;
  return Status::SUCCESS;
}

Status SortByKey::Run(
    Handle& handle, Tensor& keys_out, Tensor& values_out, const Tensor& keys, const Tensor& values,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::SortByKey::Run">(handle, {&keys_out, &values_out, &keys, &values}, [&](Call& call) {
    if (!accept_ins(call, {&keys, &values}) || !accept_outs(call, {&keys_out, &values_out}) ||
        !accept_dim(call, dim_, keys) ||
        !call.require(
            same_shape(values, keys) && same_shape(keys_out, keys) && same_shape(values_out, keys),
            Status::INVALID_PARAMETER, "the keys and values of input and output differ in shape") ||
        !call.require(
            TensorAccess::type(keys_out) == TensorAccess::type(keys) &&
                TensorAccess::type(values_out) == TensorAccess::type(values),
            Status::INVALID_PARAMETER, "an output differs in type from its input")) {
      return call.status();
    }
    return call.enqueue(
        workspace, second_pair(keys),
        [dim = dim_, descending = descending_, stable = stable_, keys_out = keys_out, values_out = values_out,
         keys = keys, values = values] {
          at::Tensor sorted = alias(keys_out);
          at::Tensor followed = alias(values_out);
          at::Tensor source = alias(values);
          // Values may be reordered in place, which torch's gather does not support.
          if (TensorAccess::address(values) == TensorAccess::address(values_out)) {
            source = at::native::clone(source, at::MemoryFormat::Contiguous);
          }
          at::Tensor order = at::empty_like(source, source.options().dtype(at::kLong));
          const Outputs given(sorted, followed);
          ops::sort_out(sorted, order, alias(keys), stable, dim, descending);
          ops::gather_out(followed, source, dim, order);
          given.keep();
        });
  });
}

Status TopK::SetK(int k) {
  if (k < 0) {
    return Status::INVALID_PARAMETER;
  }
  k_ = k;
  return Status::SUCCESS;
}

Status TopK::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status TopK::SetLargest(bool largest) {
  largest_ = largest;
  return Status::SUCCESS;
}

Status TopK::SetSorted(bool sorted) {
  sorted_ = sorted;
  return Status::SUCCESS;
}

Status TopK::Run(
    Handle& handle, Tensor& values, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::TopK::Run">(handle, {&values, &indices, &in}, [&](Call& call) {
    if (!accept_ins(call, {&in}) || !accept_outs(call, {&values, &indices}) || !accept_dim(call, dim_, in)) {
      return call.status();
    }
    const int ndim = TensorAccess::ndim(in);
    const int dim = dim_ < 0 ? dim_ + std::max(ndim, 1) : dim_;
    const int64_t size = ndim > 0 ? TensorAccess::dims(in)[dim] : 1;
    bool fits = TensorAccess::ndim(values) == ndim && same_shape(values, indices);
    for (int i = 0; fits && i < ndim; ++i) {
      fits = TensorAccess::dims(values)[i] == (i == dim ? k_ : TensorAccess::dims(in)[i]);
    }
    if (!call.require(k_ <= size, Status::INVALID_PARAMETER, "k is more than the size of the dimension") ||
        !call.require(fits, Status::INVALID_PARAMETER, "the shape of values or indices is not that of the result") ||
        !call.require(
            TensorAccess::type(values) == TensorAccess::type(in), Status::INVALID_PARAMETER,
            "values and input differ in type") ||
        !call.require(has_type(indices, {Type::INT64}), Status::INVALID_PARAMETER, "the indices are not INT64")) {
      return call.status();
    }
    Tensor chosen = values;
    Tensor source = in;
    if (has_type(in, {Type::BOOL})) { // torch does not support booleans here
      chosen.SetType(Type::UINT8);
      source.SetType(Type::UINT8);
    }
    return call.enqueue(
        workspace, second_pair(in),
        [k = k_, dim, largest = largest_, sorted = sorted_, values = chosen, indices = indices, in = source] {
          at::Tensor top = alias(values);
          at::Tensor places = alias(indices);
          const Outputs given(top, places);
          ops::topk_out(top, places, alias(in), k, dim, largest, sorted);
          given.keep();
        });
  });
}

Status Unique::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Unique::Run(
    Handle& handle, Tensor& values, Tensor& inverse, Tensor& counts, const Tensor& in,
    const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Unique::Run">(handle, {&values, &inverse, &counts, &in}, [&](Call& call) {
    const int64_t worst = TensorAccess::elements(in);
    if (!accept_ins(call, {&in}) || !accept_outs(call, {&values, &inverse, &counts}) ||
        !accept_room(call, values, worst) || !accept_room(call, counts, worst) ||
        !call.require(same_shape(inverse, in), Status::INVALID_PARAMETER, "inverse and input differ in shape") ||
        !call.require(
            TensorAccess::type(values) == TensorAccess::type(in), Status::INVALID_PARAMETER,
            "values and input differ in type") ||
        !call.require(
            has_type(inverse, {Type::INT32, Type::INT64}) && has_type(counts, {Type::INT32, Type::INT64}),
            Status::INVALID_PARAMETER, "inverse or counts are neither INT32 nor INT64")) {
      return call.status();
    }
    // The task may run after this call has returned, if waiting fails.
    const auto found = std::make_shared<int64_t>(0);
    const Status status = call.run_and_wait(
        workspace, second_pair(in),
        [found, mode = mode_, values = values, inverse = inverse, counts = counts, in = in] {
          Uniques unique;
          std::tie(unique.values, unique.inverse, unique.counts) =
              ops::_unique2(alias(in), /*sorted=*/true, /*return_inverse=*/true, /*return_counts=*/true);
          if (kOnHost && mode == Mode::UNSORTED) {
            order_by_occurrence(unique);
          }
          at::Tensor places = alias(inverse);
          at::native::copy_(places, unique.inverse);
          store_shaped(values, unique.values);
          store_shaped(counts, unique.counts);
          *found = unique.values.numel();
        });
    if (status == Status::SUCCESS) {
      values.SetNdInfo({*found});
      counts.SetNdInfo({*found});
    }
    return status;
  });
}

Status Nonzero::Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Nonzero::Run">(handle, {&out, &in}, [&](Call& call) {
    const int64_t ndim = TensorAccess::ndim(in);
    if (!accept_ins(call, {&in}) || !accept_outs(call, {&out}) ||
        !accept_room(call, out, TensorAccess::elements(in) * ndim) ||
        !call.require(has_type(out, {Type::INT64}), Status::INVALID_PARAMETER, "out is not INT64")) {
      return call.status();
    }
    const auto found = std::make_shared<int64_t>(0);
    const auto count = static_cast<size_t>(TensorAccess::elements(in));
    const Status status = call.run_and_wait(workspace, count * sizeof(int64_t), [found, out = out, in = in] {
      const at::Tensor places = ops::nonzero(alias(in));
      store_shaped(out, places);
      *found = places.size(0);
    });
    if (status == Status::SUCCESS) {
      out.SetNdInfo({*found, ndim});
    }
    return status;
  });
}

} // namespace musa::dnn
