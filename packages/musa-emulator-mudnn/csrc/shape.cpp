// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Concat, Permute, Pad.
#include <ATen/ScalarOps.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat_cpu_dispatch.h>
#include <ATen/ops/copy_native.h>
#include <ATen/ops/fill_cpu_dispatch.h>
#include <ATen/ops/flip_cpu_dispatch.h>
#include <ATen/ops/index_select_cpu_dispatch.h>

#include <c10/util/ArrayRef.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "support/alias.h"
#include "support/call.h"
#include "support/outputs.h"
#include "support/shapes.h"

namespace musa::dnn {
namespace {

using namespace musa_emulator::dnn;

using Sizes = std::array<int64_t, Tensor::kMaxDims>;

int64_t bytes_of_element(const Tensor& tensor) {
  return static_cast<int64_t>(c10::elementSize(scalar_type(TensorAccess::type(tensor))));
}

// Describes the elements starts[i] + k * steps[i] of each dimension, for k < dims[i]. Without steps, every element.
Tensor part_of(const Tensor& whole, const int64_t* starts, const int64_t* steps, const int64_t* dims) {
  const int ndim = TensorAccess::ndim(whole);
  Sizes strides{};
  int64_t offset = 0;
  for (int i = 0; i < ndim; ++i) {
    const int64_t stride = TensorAccess::strides(whole)[i];
    offset += starts[i] * stride;
    strides[static_cast<size_t>(i)] = steps != nullptr ? steps[i] * stride : stride;
  }
  Tensor part = whole;
  part.SetAddr(static_cast<const char*>(TensorAccess::address(whole)) + offset * bytes_of_element(whole));
  part.SetNdInfo(ndim, dims, strides.data());
  return part;
}

bool packed(const Tensor& tensor) { return has_type(tensor, {Tensor::Type::QINT4}); }

// Checks that call() makes of its operands, for arrays of operands, which are not passed to it.
Status accept(const Handle& handle, const char* name, std::initializer_list<const Tensor*> operands) {
  Call call(name, handle, operands);
  call.accept_operands();
  return call.status();
}

// Whether the operands are contiguous and small: torch's function would take longer to start.
bool is_small(const Tensor& out, c10::ArrayRef<Tensor> inputs) {
  constexpr int64_t most = 16 << 10; // bytes
  return kOnHost && TensorAccess::elements(out) * bytes_of_element(out) <= most && TensorAccess::contiguous(out) &&
      std::all_of(inputs.begin(), inputs.end(), TensorAccess::contiguous);
}

void join_small(const Tensor& out, c10::ArrayRef<Tensor> inputs, int axis) {
  const auto product = [](const int64_t* from, const int64_t* to) {
    return std::accumulate(from, to, int64_t{1}, std::multiplies<>());
  };
  const int64_t* const dims = TensorAccess::dims(out);
  const int64_t rows = product(dims, dims + axis);
  // of one step along the axis
  const int64_t bytes = product(dims + axis + 1, dims + TensorAccess::ndim(out)) * bytes_of_element(out);
  auto* to = static_cast<char*>(TensorAccess::address(out));
  for (int64_t row = 0; row < rows; ++row) {
    for (const Tensor& input : inputs) {
      const auto width = static_cast<size_t>(TensorAccess::dims(input)[axis] * bytes);
      std::memcpy(to, static_cast<const char*>(TensorAccess::address(input)) + static_cast<size_t>(row) * width, width);
      to += width;
    }
  }
}

// An operand with dimensions reversed such that no stride is negative, as torch requires.
struct Turned {
  Tensor tensor;
  std::array<bool, Tensor::kMaxDims> reversed{};
};

Turned turn(const Tensor& tensor) {
  const int ndim = TensorAccess::ndim(tensor);
  Turned result{.tensor = tensor, .reversed = {}};
  Sizes starts{};
  Sizes steps{};
  for (size_t i = 0; i < static_cast<size_t>(ndim); ++i) {
    result.reversed[i] = TensorAccess::strides(tensor)[i] < 0;
    starts[i] = result.reversed[i] ? TensorAccess::dims(tensor)[i] - 1 : 0;
    steps[i] = result.reversed[i] ? -1 : 1;
  }
  result.tensor = part_of(tensor, starts.data(), steps.data(), TensorAccess::dims(tensor));
  return result;
}

void copy_elements(const Tensor& out, const Tensor& in) {
  const Turned to = turn(as_bits(out));
  const Turned from = turn(as_bits(in));
  std::vector<int64_t> flipped;
  for (size_t i = 0; i < static_cast<size_t>(TensorAccess::ndim(out)); ++i) {
    if (to.reversed[i] != from.reversed[i]) {
      flipped.push_back(static_cast<int64_t>(i));
    }
  }
  at::Tensor result = alias(to.tensor);
  const at::Tensor source = alias(from.tensor);
  at::native::copy_(result, flipped.empty() ? source : ops::flip(source, flipped));
}

// Returns the source index, in a dimension of size `size`, of position `at` of the padded dimension. `at` counts from
// the first element of the input.
int64_t source_of(Pad::Mode mode, int64_t at, int64_t size) {
  switch (mode) {
    case Pad::Mode::REFLECT: return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
    case Pad::Mode::CIRCULAR: return (at % size + size) % size;
    case Pad::Mode::REPLICATE:
    case Pad::Mode::CONSTANT: break;
  }
  return std::clamp<int64_t>(at, 0, size - 1);
}

// Returns source_of() for each position from -left on.
at::Tensor sources_of(Pad::Mode mode, int64_t padded_size, int64_t left, int64_t size) {
  if constexpr (!kOnHost) {
    const at::Tensor at = at::arange(-left, padded_size - left, options_of(at::kLong));
    switch (mode) {
      case Pad::Mode::REFLECT: return at.abs().sub(size - 1).abs().neg().add(size - 1);
      case Pad::Mode::CIRCULAR: return at.remainder(size);
      default: return at.clamp(0, size - 1);
    }
  }
  at::Tensor sources = new_tensor({padded_size}, at::kLong);
  auto* const positions = sources.mutable_data_ptr<int64_t>();
  for (int64_t k = 0; k < padded_size; ++k) {
    positions[k] = source_of(mode, k - left, size);
  }
  return sources;
}

struct Padding {
  int64_t left = 0;
  int64_t right = 0;
};
using Paddings = std::array<Padding, Tensor::kMaxDims>; // indexed by dimension

void pad_constant(const Tensor& out, const Tensor& in, const Paddings& paddings, double value) {
  at::Tensor whole = alias(out);
  if (kOnHost) {
    at::native::copy_(whole, at::native::wrapped_scalar_tensor(value));
  } else {
    ops::fill_(whole, at::Scalar(value)); // a copy from the host cannot be captured
  }
  Sizes to{};
  Sizes from{};
  Sizes dims{};
  for (size_t i = 0; i < static_cast<size_t>(TensorAccess::ndim(in)); ++i) {
    const auto [left, right] = paddings[i];
    to[i] = std::max<int64_t>(left, 0);
    from[i] = std::max<int64_t>(-left, 0);
    dims[i] = TensorAccess::dims(in)[i] + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0);
  }
  copy_elements(part_of(out, to.data(), nullptr, dims.data()), part_of(in, from.data(), nullptr, dims.data()));
}

// Pads one dimension after the other.
void pad_from_input(Pad::Mode mode, const Tensor& out, const Tensor& in, const Paddings& paddings) {
  at::Tensor padded = alias(as_bits(in));
  for (size_t i = 0; i < static_cast<size_t>(TensorAccess::ndim(in)); ++i) {
    const auto [left, right] = paddings[i];
    if (left == 0 && right == 0) {
      continue;
    }
    const int64_t size = TensorAccess::dims(in)[i];
    const int64_t padded_size = TensorAccess::dims(out)[i];
    padded = ops::index_select(padded, static_cast<int64_t>(i), sources_of(mode, padded_size, left, size));
  }
  at::Tensor result = alias(as_bits(out));
  at::native::copy_(result, padded);
}

// Whether the input has enough elements in a dimension of size `size` to pad one side.
bool supplies(Pad::Mode mode, int64_t pad, int64_t size) {
  return mode == Pad::Mode::REFLECT ? pad < size : mode == Pad::Mode::CIRCULAR ? pad <= size : true;
}

} // namespace

Status Concat::SetAxis(int axis) {
  axis_ = axis;
  return Status::SUCCESS;
}

Status Concat::Run(Handle& handle, Tensor& out, int count, const Tensor* inputs) const {
  constexpr auto name = "musa::dnn::Concat::Run";
  return call<"musa::dnn::Concat::Run">(handle, {&out}, [&](Call& call) {
    const int ndim = TensorAccess::ndim(out);
    const int axis = axis_ < 0 ? axis_ + ndim : axis_;
    if (!call.require(count > 0 && inputs != nullptr, Status::INVALID_PARAMETER, "there are no inputs") ||
        !call.require(TensorAccess::present(out), Status::INVALID_PARAMETER, "out is absent") ||
        !call.require(0 <= axis && axis < ndim, Status::INVALID_PARAMETER, "out has no dimension `axis`") ||
        !call.require(!packed(out), Status::NOT_SUPPORTED, "QINT4 is not supported")) {
      return call.status();
    }
    int64_t size = 0; // of the inputs together
    for (int k = 0; k < count; ++k) {
      const Tensor& input = inputs[k];
      if (!call.require(TensorAccess::present(input), Status::INVALID_PARAMETER, "an input is absent")) {
        return call.status();
      }
      if (const Status status = accept(handle, name, {&input}); status != Status::SUCCESS) {
        return status;
      }
      bool fits = TensorAccess::ndim(input) == ndim;
      for (int i = 0; fits && i < ndim; ++i) {
        fits = i == axis || TensorAccess::dims(input)[i] == TensorAccess::dims(out)[i];
      }
      if (!call.require(
              fits, Status::INVALID_PARAMETER, "an input and out differ in shape in a dimension other than `axis`") ||
          !call.require(
              has_type(input, {TensorAccess::type(out)}), Status::INVALID_PARAMETER,
              "an input and out differ in type") ||
          !call.require(
              !has_type(out, {Tensor::Type::QINT8}) || TensorAccess::scale(input) == TensorAccess::scale(out),
              Status::NOT_SUPPORTED, "a QINT8 input and out differ in scale")) {
        return call.status();
      }
      size += TensorAccess::dims(input)[axis];
    }
    if (!call.require(
            size == TensorAccess::dims(out)[axis], Status::INVALID_PARAMETER,
            "the total size of the inputs in dimension `axis` is not that of out")) {
      return call.status();
    }
    const c10::ArrayRef<Tensor> given(inputs, static_cast<size_t>(count));
    if (is_small(out, given)) {
      return call.enqueue_brief(
          [axis, &out, given] { join_small(out, given, axis); },
          [axis, &out, given] {
            return [axis, out = out, operands = given.vec()] { join_small(out, operands, axis); };
          });
    }
    return call.enqueue([axis, out = out, operands = given.vec()] {
      std::vector<at::Tensor> pieces;
      pieces.reserve(operands.size());
      for (const Tensor& operand : operands) {
        pieces.push_back(alias(as_bits(operand)));
      }
      at::Tensor result = alias(as_bits(out));
      const Outputs given(result);
      ops::cat_out(result, pieces, axis);
      given.keep();
    });
  });
}

Status Permute::ConfigDimStride(Tensor& out, Tensor& in, int count, const int64_t* permutation) const {
  const int ndim = TensorAccess::ndim(in);
  if (!TensorAccess::shaped(in) || count != ndim || (count > 0 && permutation == nullptr)) {
    return Status::INVALID_PARAMETER;
  }
  Sizes dims{};
  Sizes strides{};
  std::array<bool, Tensor::kMaxDims> used{};
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const int64_t from = permutation[i];
    if (from < 0 || from >= ndim || used[static_cast<size_t>(from)]) {
      return Status::INVALID_PARAMETER;
    }
    used[static_cast<size_t>(from)] = true;
    dims[i] = TensorAccess::dims(in)[from];
    strides[i] = TensorAccess::strides(in)[from];
  }
  if (!TensorAccess::shaped(out)) {
    out.SetNdInfo(count, dims.data());
  } else if (
      TensorAccess::ndim(out) != count || !std::equal(dims.begin(), dims.begin() + count, TensorAccess::dims(out))) {
    return Status::INVALID_PARAMETER;
  }
  return in.SetNdInfo(count, dims.data(), strides.data());
}

Status Permute::ConfigDimStrideForSlice(Tensor& out, Tensor& in, const int64_t* starts, const int64_t* steps) const {
  const int ndim = TensorAccess::ndim(in);
  if (!TensorAccess::shaped(in) || TensorAccess::ndim(out) != ndim || (ndim > 0 && starts == nullptr)) {
    return Status::INVALID_PARAMETER;
  }
  if (packed(in)) {
    return Status::NOT_SUPPORTED; // elements are not byte-addressable
  }
  for (int i = 0; i < ndim; ++i) {
    const int64_t step = steps != nullptr ? steps[i] : 1;
    const int64_t last = starts[i] + (TensorAccess::dims(out)[i] - 1) * step;
    const int64_t size = TensorAccess::dims(in)[i];
    if (step == 0 || starts[i] < 0 || starts[i] >= size || last < 0 || last >= size) {
      return Status::INVALID_PARAMETER;
    }
  }
  in = part_of(in, starts, steps, TensorAccess::dims(out));
  return Status::SUCCESS;
}

Status Permute::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::Permute::Run">(handle, {&out, &in}, [&](Call& call) {
    if (!call.require(
            TensorAccess::present(out) && TensorAccess::present(in), Status::INVALID_PARAMETER,
            "an operand is absent") ||
        !call.require(same_shape(out, in), Status::INVALID_PARAMETER, "out and in differ in shape") ||
        !call.require(
            has_type(in, {TensorAccess::type(out)}), Status::INVALID_PARAMETER, "out and in differ in type") ||
        !call.require(!packed(out), Status::NOT_SUPPORTED, "QINT4 is not supported")) {
      return call.status();
    }
    return call.enqueue([out = out, in = in] { copy_elements(out, in); });
  });
}

Status Pad::SetMode(Mode mode) {
  mode_ = mode;
  return Status::SUCCESS;
}

Status Pad::SetValue(double value) {
  value_ = value;
  return Status::SUCCESS;
}

Status Pad::SetPaddingInfo(int count, const int* pads) {
  if (count < 0 || count % 2 != 0 || count > 2 * Tensor::kMaxDims || (count > 0 && pads == nullptr)) {
    return Status::INVALID_PARAMETER;
  }
  pads_.assign(pads, pads + count);
  return Status::SUCCESS;
}

Status Pad::Run(Handle& handle, Tensor& out, const Tensor& in) const {
  return call<"musa::dnn::Pad::Run">(handle, {&out, &in}, [&](Call& call) {
    const auto ndim = static_cast<size_t>(std::max(TensorAccess::ndim(in), 0));
    if (!call.require(
            TensorAccess::present(out) && TensorAccess::present(in), Status::INVALID_PARAMETER,
            "an operand is absent") ||
        !call.require(
            has_type(in, {TensorAccess::type(out)}), Status::INVALID_PARAMETER, "out and in differ in type") ||
        !call.require(!packed(out), Status::NOT_SUPPORTED, "QINT4 is not supported") ||
        !call.require(
            !has_type(out, {Tensor::Type::QINT8}) || mode_ != Mode::CONSTANT || value_ == 0, Status::NOT_SUPPORTED,
            "QINT8 is padded with 0 only") ||
        !call.require(
            TensorAccess::ndim(out) == TensorAccess::ndim(in), Status::INVALID_PARAMETER,
            "out and in differ in rank") ||
        !call.require(
            pads_.size() <= 2 * ndim, Status::INVALID_PARAMETER, "there is padding for more dimensions than in has")) {
      return call.status();
    }
    Paddings paddings{};
    for (size_t i = 0; 2 * i < pads_.size(); ++i) {
      paddings[ndim - 1 - i] = {.left = pads_[2 * i], .right = pads_[2 * i + 1]};
    }
    for (size_t i = 0; i < ndim; ++i) {
      const auto [left, right] = paddings[i];
      const int64_t size = TensorAccess::dims(in)[i];
      if (!call.require(
              size + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0) > 0, Status::INVALID_PARAMETER,
              "negative padding removes all elements of a dimension") ||
          !call.require(
              supplies(mode_, left, size) && supplies(mode_, right, size), Status::INVALID_PARAMETER,
              "the padding is too large for a dimension in mode REFLECT or CIRCULAR") ||
          !call.require(
              TensorAccess::dims(out)[i] == size + left + right, Status::INVALID_PARAMETER,
              "the shape of out is not that of the padded input")) {
        return call.status();
      }
    }
    return call.enqueue([mode = mode_, value = value_, paddings, out = out, in = in] {
      if (mode == Mode::CONSTANT) {
        pad_constant(out, in, paddings, value);
      } else {
        pad_from_input(mode, out, in, paddings);
      }
    });
  });
}

} // namespace musa::dnn
