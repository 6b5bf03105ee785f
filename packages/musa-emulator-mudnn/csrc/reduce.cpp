// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reduce, Cum.
#include "cpu_stubs.h"

#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/ReduceOps.h>
#include <ATen/ops/all_cpu_dispatch.h>
#include <ATen/ops/amax_cpu_dispatch.h>
#include <ATen/ops/amin_cpu_dispatch.h>
#include <ATen/ops/any_cpu_dispatch.h>
#include <ATen/ops/argmax_cpu_dispatch.h>
#include <ATen/ops/argmin_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/cumprod_cpu_dispatch.h>
#include <ATen/ops/cumsum_cpu_dispatch.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/eq_cpu_dispatch.h>
#include <ATen/ops/linalg_vector_norm_cpu_dispatch.h>
#include <ATen/ops/masked_fill_cpu_dispatch.h>
#include <ATen/ops/max_cpu_dispatch.h>
#include <ATen/ops/mean_cpu_dispatch.h>
#include <ATen/ops/min_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/prod_cpu_dispatch.h>
#include <ATen/ops/std_cpu_dispatch.h>
#include <ATen/ops/sum_cpu_dispatch.h>
#include <ATen/ops/var_cpu_dispatch.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <optional>
#include <vector>

#include "support/call.h"
#include "support/alias.h"
#include "support/outputs.h"
#include "support/shapes.h"
#include "support/small.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using at::Scalar;
using Type = Tensor::Type;
using DimSet = std::bitset<Tensor::kMaxDims>;

bool floating_type(Type type) {
  return type == Type::HALF || type == Type::BFLOAT16 || type == Type::FLOAT || type == Type::DOUBLE;
}

bool integer(Type type) {
  return type == Type::INT8 || type == Type::INT16 || type == Type::INT32 || type == Type::INT64 || type == Type::UINT8;
}

// Whether `out` can hold sums and products of values of `in`: the same type, or a wider one of the same kind.
bool holds(Type out, Type in) {
  const bool wider = c10::elementSize(scalar_type(out)) > c10::elementSize(scalar_type(in));
  if (floating_type(in)) {
    return out == in || (floating_type(out) && wider);
  }
  return integer(out) && (out == in || in == Type::BOOL || wider);
}

// Returns the type for intermediate products, so that they are not rounded to 16 bits at each step.
c10::ScalarType accumulator(const at::Tensor& out) {
  const c10::ScalarType type = out.scalar_type();
  return type == c10::kHalf || type == c10::kBFloat16 ? c10::kFloat : type;
}

bool accept_out(Call& call, const Tensor& out) {
  return call.require(TensorAccess::present(out), Status::INVALID_PARAMETER, "an output is absent") &&
      call.require(!same_spot_twice(out), Status::INVALID_PARAMETER, "elements of an output share memory");
}

bool accept_in(Call& call, const Tensor& in) {
  const Type type = TensorAccess::type(in);
  return call.require(TensorAccess::present(in), Status::INVALID_PARAMETER, "the input is absent") &&
      call.require(
          floating_type(type) || integer(type) || type == Type::BOOL, Status::NOT_SUPPORTED,
          "the type of the input is not supported");
}

// A checked input with at least one dimension, and the dimensions to reduce, at least one.
struct Reduction {
  Tensor in;
  c10::SmallVector<int64_t, Tensor::kMaxDims> dims;

  DimSet set() const {
    DimSet set;
    for (const int64_t dim : dims) {
      set.set(static_cast<size_t>(dim));
    }
    return set;
  }
  bool of_all() const { return static_cast<int>(dims.size()) == TensorAccess::ndim(in); }
};

std::optional<Reduction> reduction(Call& call, const Tensor& in, c10::ArrayRef<int> chosen) {
  if (!accept_in(call, in)) {
    return std::nullopt;
  }
  Reduction result{as_vector(in), {}};
  const int ndim = TensorAccess::ndim(result.in);
  DimSet seen;
  for (const int dim : chosen) {
    if (!call.require(dim >= -ndim && dim < ndim, Status::INVALID_PARAMETER, "a dimension is out of range")) {
      return std::nullopt;
    }
    const auto place = static_cast<size_t>(dim < 0 ? dim + ndim : dim);
    if (!call.require(!seen[place], Status::INVALID_PARAMETER, "a dimension is set twice")) {
      return std::nullopt;
    }
    seen.set(place);
  }
  if (chosen.empty()) {
    // Callers set no dimension for a scalar. The meaning for other inputs is not documented.
    if (!call.require(TensorAccess::elements(in) == 1, Status::INVALID_PARAMETER, "no dimension to reduce was set")) {
      return std::nullopt;
    }
    seen = DimSet((1U << static_cast<unsigned>(ndim)) - 1);
  }
  bool broadcast = false;
  bool reduces_broadcast = false;
  for (int i = 0; i < ndim; ++i) {
    const bool repeats = TensorAccess::dims(result.in)[i] > 1 && TensorAccess::strides(result.in)[i] == 0;
    broadcast |= repeats;
    reduces_broadcast |= repeats && seen[static_cast<size_t>(i)];
    if (seen[static_cast<size_t>(i)]) {
      result.dims.push_back(i);
    }
  }
  // In this case the hardware divides by zero, or writes only the first result.
  if (!call.require(!reduces_broadcast, Status::NOT_SUPPORTED, "a reduced dimension is broadcast (stride 0)") ||
      !call.require(
          !broadcast || result.dims.size() == 1, Status::NOT_SUPPORTED,
          "several dimensions of a broadcast input are reduced")) {
    return std::nullopt;
  }
  return result;
}

// Returns the output with the reduced dimensions as size 1, whether or not the caller's shape includes them.
std::optional<Tensor> with_reduced(Call& call, const Tensor& out, const Reduction& reduction) {
  if (!accept_out(call, out)) {
    return std::nullopt;
  }
  const DimSet reduced = reduction.set();
  const int ndim = TensorAccess::ndim(reduction.in);
  const int own = TensorAccess::ndim(out);
  const bool kept = own == ndim;
  // Some callers pass the shape [1] for a scalar.
  const bool scalar = reduction.of_all() && own == 1 && TensorAccess::dims(out)[0] == 1;
  bool fits = kept || scalar || own == ndim - static_cast<int>(reduced.count());
  std::array<int64_t, Tensor::kMaxDims> dims{};
  std::array<int64_t, Tensor::kMaxDims> strides{};
  for (int i = 0, from = 0; fits && i < ndim; ++i) {
    const auto place = static_cast<size_t>(i);
    dims[place] = reduced[place] ? 1 : TensorAccess::dims(reduction.in)[i];
    strides[place] = 1;
    if (kept || !reduced[place]) {
      fits = TensorAccess::dims(out)[from] == dims[place];
      strides[place] = TensorAccess::strides(out)[from];
      ++from;
    }
  }
  if (!call.require(fits, Status::INVALID_PARAMETER, "the shape of an output is not that of the result")) {
    return std::nullopt;
  }
  Tensor result = out;
  result.SetNdInfo(ndim, dims.data(), strides.data());
  return result;
}

bool accept_types(Call& call, Reduce::Mode mode, Type out, Type in) {
  using M = Reduce::Mode;
  switch (mode) {
    case M::AND:
    case M::OR:
      return call.require(out == Type::BOOL, Status::INVALID_PARAMETER, "out is not BOOL, which the mode requires");
    case M::MAX:
    case M::MIN:
    case M::MAX_UNSTABLE:
    case M::MIN_UNSTABLE: return call.require(out == in, Status::INVALID_PARAMETER, "out and in differ in type");
    case M::MEAN:
    case M::NORM:
    case M::VARIANCE:
    case M::STD:
    case M::L2LOSS:
      if (!call.require(floating_type(in), Status::NOT_SUPPORTED, "the mode supports floating types only")) {
        return false;
      }
      break;
    case M::PROD:
    case M::MUL:
    case M::MUL_NO_ZEROS:
      // Reported for the library on hardware.
      if (!call.require(in != Type::BOOL, Status::NOT_SUPPORTED, "products of BOOL are not supported")) {
        return false;
      }
      break;
    case M::ADD: break;
  }
  return call.require(holds(out, in), Status::INVALID_PARAMETER, "the type of out cannot hold the result");
}

// Workspace for one partial result with its index per block of the input.
size_t partial_results(const Tensor& in) {
  constexpr size_t block = 1024;
  const size_t blocks = (static_cast<size_t>(TensorAccess::elements(in)) + block - 1) / block;
  return blocks > 1 ? blocks * 2 * sizeof(int64_t) : 0;
}

at::Tensor converted(const at::Tensor& in, c10::ScalarType type) {
  at::Tensor copy = at::empty_like(in, in.options().dtype(type));
  at::native::copy_(copy, in);
  return copy;
}

// torch reduces one dimension per call.
void run_product(at::Tensor& out, const at::Tensor& in, at::IntArrayRef dims) {
  const c10::ScalarType type = accumulator(out);
  if (dims.size() == 1 && type == out.scalar_type()) {
    ops::prod_out(out, in, dims[0], /*keepdim=*/true, type);
    return;
  }
  at::Tensor product = in;
  for (const int64_t dim : dims) {
    product = ops::prod(product, dim, /*keepdim=*/true, type);
  }
  at::native::copy_(out, product);
}

void run_reduce(
    Reduce::Mode mode, double order, double correction, at::Tensor& out, const at::Tensor& in, at::IntArrayRef dims) {
  using M = Reduce::Mode;
  const c10::ScalarType type = out.scalar_type();
  switch (mode) {
    case M::ADD:
      // out already has the shape that the kernel requires, so sum_out's preparation is skipped. sum_out also sums
      // 16-bit types in FLOAT, which the kernel alone does not do if it accumulates into out more than once.
      if (kOnHost && in.scalar_type() == type && !at::isReducedFloatingType(type)) {
        at::TensorIterator iter = at::TensorIterator::reduce_op(out, in);
        at::native::sum_stub(at::kCPU, iter);
      } else {
        ops::sum_out(out, in, dims, true, type);
      }
      return;
    case M::MEAN: ops::mean_out(out, in, dims, true, type); return;
    case M::MAX:
    case M::MAX_UNSTABLE: ops::amax_out(out, in, dims, true); return;
    case M::MIN:
    case M::MIN_UNSTABLE: ops::amin_out(out, in, dims, true); return;
    case M::PROD:
    case M::MUL: run_product(out, in, dims); return;
    case M::AND: ops::all_out(out, in, dims, true); return;
    case M::OR: ops::any_out(out, in, dims, true); return;
    case M::NORM: ops::linalg_vector_norm_out(out, in, Scalar(order), dims, true, type); return;
    case M::VARIANCE: ops::var_out(out, in, dims, Scalar(correction), true); return;
    case M::STD: ops::std_out(out, in, dims, Scalar(correction), true); return;
    case M::MUL_NO_ZEROS: { // zeros are skipped
      at::Tensor factors = converted(in, accumulator(out));
      ops::masked_fill_(factors, ops::eq(factors, Scalar(0)), Scalar(1));
      run_product(out, factors, dims);
      return;
    }
    case M::L2LOSS: { // half the sum of the squares
      at::Tensor squares = converted(in, accumulator(out));
      ops::mul_(squares, squares);
      const at::Tensor sums = ops::sum(squares, dims, true);
      at::native::copy_(out, ops::mul(sums, at::native::wrapped_scalar_tensor(Scalar(0.5))));
      return;
    }
  }
}

void reduce_into(Reduce::Mode mode, double order, double correction, const Tensor& out, const Reduction& what) {
  at::Tensor& result = lent_alias(out);
  const Outputs given(result);
  run_reduce(mode, order, correction, result, lent_alias(what.in), what.dims);
  given.keep();
}

bool largest(Reduce::Mode mode) { return mode == Reduce::Mode::MAX || mode == Reduce::Mode::MAX_UNSTABLE; }

bool has_indices(Call& call, Reduce::Mode mode) {
  return call.require(
      largest(mode) || mode == Reduce::Mode::MIN || mode == Reduce::Mode::MIN_UNSTABLE, Status::INVALID_PARAMETER,
      "the mode does not support indices");
}

// An index counts along one dimension, or through all elements in order.
bool accept_indices(Call& call, const Tensor& indices, const Reduction& reduction) {
  return call.require(
             reduction.dims.size() == 1 || reduction.of_all(), Status::INVALID_PARAMETER,
             "indices are supported for one dimension or all dimensions only") &&
      call.require(has_type(indices, {Type::INT64}), Status::INVALID_PARAMETER, "the indices are not INT64");
}

void run_indices(bool largest, at::Tensor& indices, const Reduction& reduction) {
  const std::optional<int64_t> dim =
      reduction.dims.size() == 1 ? std::optional<int64_t>(reduction.dims[0]) : std::nullopt;
  Tensor in = reduction.in;
  if (TensorAccess::type(in) == Type::BOOL) {
    in.SetType(Type::UINT8); // torch does not support booleans here
  }
  const Outputs given(indices);
  (largest ? ops::argmax_out : ops::argmin_out)(indices, alias(in), dim, /*keepdim=*/true);
  given.keep();
}

} // namespace

Status Reduce::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Reduce::SetDim(std::initializer_list<int> dims) { return SetDim(static_cast<int>(dims.size()), dims.begin()); }

Status Reduce::SetDim(int count, const int* dims) {
  if (count < 0 || count > Tensor::kMaxDims || (count > 0 && dims == nullptr) ||
      std::any_of(dims, dims + count, [](int dim) { return dim < -Tensor::kMaxDims || dim >= Tensor::kMaxDims; })) {
    return Status::INVALID_PARAMETER;
  }
  count_ = count;
  std::copy_n(dims, count, dims_);
  return Status::SUCCESS;
}

Status Reduce::SetNormOrd(float order) {
  if (std::isnan(order)) {
    return Status::INVALID_PARAMETER;
  }
  order_ = order;
  return Status::SUCCESS;
}

Status Reduce::SetCorrection(double correction) {
  if (!std::isfinite(correction)) {
    return Status::INVALID_PARAMETER;
  }
  correction_ = correction;
  return Status::SUCCESS;
}

Status Reduce::Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Reduce::Run">(handle, {&out, &in}, [&](Call& call) {
    const auto what = reduction(call, in, {dims_, static_cast<size_t>(count_)});
    const auto place = what ? with_reduced(call, out, *what) : std::nullopt;
    if (!place || !accept_types(call, mode_, TensorAccess::type(out), TensorAccess::type(in))) {
      return call.status();
    }
    return call.enqueue(
        workspace, partial_results(in),
        [mode = mode_, order = order_, correction = correction_, out = *place, what = *what] {
          if (mode == Mode::MEAN && is_small(Unary::Mode::DIV, out, out)) {
            // torch's mean is the same sum and division, but plans both.
            reduce_into(Mode::ADD, order, correction, out, what);
            const int64_t count = TensorAccess::elements(what.in) / TensorAccess::elements(out);
            run_small(Unary::Mode::DIV, c10::Scalar(count), out, out);
            return;
          }
          reduce_into(mode, order, correction, out, what);
        });
  });
}

Status Reduce::RunWithIndices(
    Handle& handle, Tensor& out, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Reduce::RunWithIndices">(handle, {&out, &indices, &in}, [&](Call& call) {
    if (!has_indices(call, mode_)) {
      return call.status();
    }
    const auto what = reduction(call, in, {dims_, static_cast<size_t>(count_)});
    const auto place = what ? with_reduced(call, out, *what) : std::nullopt;
    const auto index_place = place ? with_reduced(call, indices, *what) : std::nullopt;
    if (!index_place || !accept_types(call, mode_, TensorAccess::type(out), TensorAccess::type(in)) ||
        !accept_indices(call, indices, *what)) {
      return call.status();
    }
    return call.enqueue(
        workspace, partial_results(in), [largest = largest(mode_), out = *place, indices = *index_place, what = *what] {
          at::Tensor values = alias(out);
          at::Tensor places = alias(indices);
          const at::Tensor in = alias(what.in);
          const Outputs given(values, places);
          if (what.dims.size() == 1) {
            if (largest) {
              ops::max_out(values, places, in, what.dims[0], /*keepdim=*/true);
            } else {
              ops::min_out(values, places, in, what.dims[0], /*keepdim=*/true);
            }
          } else {
            (largest ? ops::amax_out : ops::amin_out)(values, in, what.dims, /*keepdim=*/true);
            run_indices(largest, places, what);
          }
          given.keep();
        });
  });
}

Status Reduce::RunIndices(Handle& handle, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Reduce::RunIndices">(handle, {&indices, &in}, [&](Call& call) {
    if (!has_indices(call, mode_)) {
      return call.status();
    }
    const auto what = reduction(call, in, {dims_, static_cast<size_t>(count_)});
    const auto place = what ? with_reduced(call, indices, *what) : std::nullopt;
    if (!place || !accept_indices(call, indices, *what)) {
      return call.status();
    }
    return call.enqueue(workspace, partial_results(in), [largest = largest(mode_), indices = *place, what = *what] {
      if (what.dims.size() == 1 && is_small_extreme(indices, what.in, what.dims[0])) {
        find_small(largest, indices, what.in);
        return;
      }
      at::Tensor places = alias(indices);
      run_indices(largest, places, what);
    });
  });
}

Status Cum::SetDim(int dim) {
  dim_ = dim;
  return Status::SUCCESS;
}

Status Cum::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Cum::Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const {
  return call<"musa::dnn::Cum::Run">(handle, {&out, &in}, [&](Call& call) {
    if (!accept_in(call, in) || !accept_out(call, out)) {
      return call.status();
    }
    const Tensor source = as_vector(in);
    const Tensor place = as_vector(out);
    const int ndim = TensorAccess::ndim(source);
    if (!call.require(same_shape(place, source), Status::INVALID_PARAMETER, "out and in differ in shape") ||
        !call.require(dim_ >= -ndim && dim_ < ndim, Status::INVALID_PARAMETER, "the dimension is out of range") ||
        !call.require(
            holds(TensorAccess::type(out), TensorAccess::type(in)), Status::INVALID_PARAMETER,
            "the type of out cannot hold the result")) {
      return call.status();
    }
    return call.enqueue(workspace, partial_results(in), [mode = mode_, dim = dim_, out = place, in = source] {
      at::Tensor result = alias(out);
      // torch's CUDA kernels would round every partial sum
      if (!kOnHost && at::isReducedFloatingType(result.scalar_type())) {
        at::native::copy_(
            result,
            mode == Mode::ADD ? ops::cumsum(alias(in), dim, at::kFloat) : ops::cumprod(alias(in), dim, at::kFloat));
        return;
      }
      const Outputs given(result);
      if (mode == Mode::ADD) {
        ops::cumsum_out(result, alias(in), dim, result.scalar_type());
      } else {
        ops::cumprod_out(result, alias(in), dim, result.scalar_type());
      }
      given.keep();
    });
  });
}

} // namespace musa::dnn
