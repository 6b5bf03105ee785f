// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Operators that move elements: copies, concatenation, padding, roll.
#include <ATen/native/Resize.h>
#include <ATen/ops/cat_meta.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/reflection_pad1d_meta.h>
#include <ATen/ops/reflection_pad3d_meta.h>
#include <ATen/ops/replication_pad1d_meta.h>
#include <ATen/ops/replication_pad2d_meta.h>
#include <ATen/ops/replication_pad3d_meta.h>
#include <c10/core/SymIntArrayRef.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "families.h"
#include "support/call.h"
#include "support/elementwise.h"
#include "support/structured.h"

namespace musa_ops_mudnn {
namespace {

using PadMode = dnn::Pad::Mode;

// ---- cat ----------------------------------------------------------------------------------------------------------

// Tensors without elements may have any shape: torch skips them or raises an error.
bool cat_served(const at::ITensorListRef& tensors, int64_t /*dim*/) {
  std::optional<at::Device> device;
  bool elements = false;
  for (const at::Tensor& tensor : tensors) {
    device = device.value_or(tensor.device());
    elements = elements || tensor.numel() > 0;
    const bool served = tensor.numel() > 0
        ? serves<all_types>(tensor)
        : tensor.is_privateuseone() && tensor.layout() == at::kStrided && contains(all_types, tensor.scalar_type());
    if (!served || tensor.device() != device) {
      return false;
    }
  }
  return elements;
}

void cat(const at::ITensorListRef& tensors, int64_t dim, const at::Tensor& out) {
  c10::SmallVector<Operand, 4> converted; // outlives the descriptions
  c10::SmallVector<dnn::Tensor, 4> inputs;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.numel() > 0) {
      converted.push_back(in_dtype(tensor, out.scalar_type()));
      inputs.push_back(operand(converted.back()));
    }
  }
  if (inputs.empty()) {
    return;
  }
  dnn::Concat op;
  check(op.SetAxis(static_cast<int>(dim < 0 ? dim + out.dim() : dim)), "Concat::SetAxis");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(
      op.Run(on.handle(), result, static_cast<int>(inputs.size()), inputs.data()), "Concat::Run",
      {&out, &*converted.front(), &*converted.back()});
}

// ---- padding ------------------------------------------------------------------------------------------------------

void run_pad(PadMode mode, const at::Tensor& out, const at::Tensor& in, at::IntArrayRef padding, double value = 0) {
  const std::vector<int> pads(padding.begin(), padding.end());
  dnn::Pad op;
  check(op.SetMode(mode), "Pad::SetMode");
  check(op.SetValue(value), "Pad::SetValue");
  check(op.SetPaddingInfo(static_cast<int>(pads.size()), pads.data()), "Pad::SetPaddingInfo");
  const OnDevice on(out);
  dnn::Tensor result = describe(out);
  check(op.Run(on.handle(), result, operand(in)), "Pad::Run", {&out, &in});
}

// The dimension that padding[2 * i] and padding[2 * i + 1] apply to.
int64_t padded_dim(const at::Tensor& self, size_t i) { return self.dim() - 1 - static_cast<int64_t>(i); }

at::DimVector padded_sizes(const at::Tensor& self, at::IntArrayRef padding) {
  at::DimVector sizes(self.sizes());
  for (size_t i = 0; 2 * i < padding.size(); ++i) {
    sizes[static_cast<size_t>(padded_dim(self, i))] += padding[2 * i] + padding[2 * i + 1];
  }
  return sizes;
}

bool is_small(int64_t pad) { return std::abs(pad) <= std::numeric_limits<int>::max() / 2; }

// Reflection and replication padding of the last `dims` dimensions, with or without a batch. Negative padding, which
// crops, is left to other providers.
template <PadMode mode, int dims>
bool pad_served(const at::Tensor& self, at::IntArrayRef padding) {
  if (!serves<number_types>(self) || padding.size() != 2 * dims || (self.dim() != dims + 1 && self.dim() != dims + 2)) {
    return false;
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t size = self.size(padded_dim(self, i / 2));
    if (padding[i] < 0 || !is_small(padding[i]) || (mode == PadMode::REFLECT && padding[i] >= size)) {
      return false;
    }
  }
  return true;
}

template <PadMode mode>
void pad(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  if (mode == PadMode::REPLICATE && self.suggest_memory_format() != at::MemoryFormat::Contiguous &&
      out.is_contiguous()) {
    // The meta function makes a contiguous result, and torch's CPU kernel changes it. An out= with gaps keeps its strides.
    out.unsafeGetTensorImpl()->empty_tensor_restride(self.suggest_memory_format());
  }
  if (out.numel() == 0) {
    return;
  }
  run_pad(mode, out, self, padding);
}

bool reflection_pad2d_served(const at::Tensor& self, c10::SymIntArrayRef padding) {
  return pad_served<PadMode::REFLECT, 2>(self, C10_AS_INTARRAYREF_SLOW(padding));
}

bool reflection_pad2d_out_served(const at::Tensor& self, c10::SymIntArrayRef padding, at::Tensor& out) {
  return reflection_pad2d_served(self, padding) && writable(out) && out.scalar_type() == self.scalar_type() &&
      out.device() == self.device();
}

at::Tensor reflection_pad2d(const at::Tensor& self, c10::SymIntArrayRef sym_padding) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(sym_padding);
  at::Tensor out = at::empty(padded_sizes(self, padding), self.options().memory_format(self.suggest_memory_format()));
  run_pad(PadMode::REFLECT, out, self, padding);
  return out;
}

at::Tensor& reflection_pad2d_out(const at::Tensor& self, c10::SymIntArrayRef sym_padding, at::Tensor& out) {
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(sym_padding);
  at::native::resize_output(out, padded_sizes(self, padding));
  run_pad(PadMode::REFLECT, out, self, padding);
  return out;
}

// Returns the value as a double, which is muDNN's type, or nullopt if torch would write another value into the tensor.
std::optional<double> padding_value(at::ScalarType dtype, const at::Scalar& value) {
  if (value.isComplex() || value.isSymbolic()) {
    return std::nullopt;
  }
  const double number = value.toDouble();
  if (dtype == at::kBool) {
    return number != 0 ? 1.0 : 0.0;
  }
  if (at::isFloatingType(dtype)) {
    const double limit = dtype == at::kHalf ? 65504.0 : dtype == at::kDouble ? HUGE_VAL : 3.38e38;
    return !std::isfinite(number) || std::abs(number) <= limit ? std::optional(number) : std::nullopt;
  }
  const double whole = std::trunc(number);
  const double span = std::ldexp(1.0, std::min(static_cast<int>(8 * c10::elementSize(dtype)), 54) - 1);
  const bool fits = dtype == at::kByte ? whole >= 0 && whole < 2 * span : whole >= -span && whole < span;
  return std::isfinite(number) && fits ? std::optional(whole) : std::nullopt;
}

bool constant_pad_nd_served(const at::Tensor& self, c10::SymIntArrayRef sym_pad, const at::Scalar& value) {
  if (!serves<all_types>(self) || sym_pad.size() % 2 != 0 || sym_pad.size() > 2 * static_cast<size_t>(self.dim()) ||
      !padding_value(self.scalar_type(), value).has_value()) {
    return false;
  }
  const at::IntArrayRef padding = C10_AS_INTARRAYREF_SLOW(sym_pad);
  for (size_t i = 0; 2 * i < padding.size(); ++i) {
    const int64_t left = padding[2 * i];
    const int64_t right = padding[2 * i + 1];
    const int64_t kept = self.size(padded_dim(self, i)) + std::min<int64_t>(left, 0) + std::min<int64_t>(right, 0);
    if (!is_small(left) || !is_small(right) || kept <= 0) {
      return false;
    }
  }
  return true;
}

at::Tensor constant_pad_nd(const at::Tensor& self, c10::SymIntArrayRef sym_pad, const at::Scalar& value) {
  at::DimVector padding(C10_AS_INTARRAYREF_SLOW(sym_pad));
  at::Tensor out = at::empty(padded_sizes(self, padding), self.options().memory_format(self.suggest_memory_format()));
  // Negative padding crops.
  at::Tensor kept = self;
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 0) {
      const int64_t dim = padded_dim(self, i / 2);
      kept = kept.narrow(dim, i % 2 == 0 ? -padding[i] : 0, kept.size(dim) + padding[i]);
      padding[i] = 0;
    }
  }
  run_pad(PadMode::CONSTANT, out, kept, padding, *padding_value(self.scalar_type(), value));
  return out;
}

// ---- roll ---------------------------------------------------------------------------------------------------------

// Without dims, the tensor is rolled as if it were flattened. Each rolled dimension doubles the number of copies.
bool roll_served(const at::Tensor& self, c10::SymIntArrayRef shifts, at::IntArrayRef dims) {
  if (!serves<all_types>(self) || shifts.empty() || shifts.size() > 3) {
    return false;
  }
  for (const int64_t dim : dims) {
    if (dim < -self.dim() || dim >= self.dim()) {
      return false;
    }
  }
  return dims.empty() ? shifts.size() == 1 : shifts.size() == dims.size();
}

// Copies `in` to `out`, rolled by shifts[i] in dimension i, where 0 <= shifts[i] < size. Handles dimensions from `dim`
// on.
void roll_blocks(const at::Tensor& out, const at::Tensor& in, at::IntArrayRef shifts, int64_t dim = 0) {
  while (dim < in.dim() && shifts[static_cast<size_t>(dim)] == 0) {
    ++dim;
  }
  if (dim == in.dim()) {
    convert(out, in);
    return;
  }
  const int64_t shift = shifts[static_cast<size_t>(dim)];
  const int64_t rest = in.size(dim) - shift;
  roll_blocks(out.narrow(dim, shift, rest), in.narrow(dim, 0, rest), shifts, dim + 1);
  roll_blocks(out.narrow(dim, 0, shift), in.narrow(dim, rest, shift), shifts, dim + 1);
}

at::Tensor roll(const at::Tensor& self, c10::SymIntArrayRef sym_shifts, at::IntArrayRef dims) {
  const at::IntArrayRef given = C10_AS_INTARRAYREF_SLOW(sym_shifts);
  const bool flat = dims.empty();
  const at::Tensor in = flat ? self.contiguous().view(-1) : self;
  at::DimVector shifts(static_cast<size_t>(in.dim()), 0);
  for (size_t i = 0; i < given.size(); ++i) {
    const int64_t dim = flat ? 0 : dims[i] < 0 ? dims[i] + in.dim() : dims[i];
    const int64_t size = in.size(dim);
    int64_t& shift = shifts[static_cast<size_t>(dim)];
    shift = ((shift + given[i] % size) % size + size) % size;
  }
  // Contiguous, like the result of the fake kernel; torch's CPU kernel keeps channels_last for some shifts.
  at::Tensor out = at::empty(in.sizes(), in.options());
  roll_blocks(out, in, shifts);
  return flat ? out.view(self.sizes()) : out;
}

// ---- copies -------------------------------------------------------------------------------------------------------

// The runtime's operator behind copy_: converts or rearranges. muDNN's CAST supports any strides, so it does both at
// once.
bool copy_on_device_served(const at::Tensor& self, const at::Tensor& src) { return serves<all_types>(self, src); }

void copy_on_device(const at::Tensor& self, const at::Tensor& src) {
  if (self.scalar_type() != src.scalar_type()) {
    convert(self, src);
    return;
  }
  const dnn::Permute op;
  const OnDevice on(self);
  dnn::Tensor result = describe(self);
  check(op.Run(on.handle(), result, operand(src)), "Permute::Run", {&self, &src});
}

} // namespace

void declare_shape(OpPack& pack) {
  using namespace at::meta;
  pack.impl("torch_musa::_copy_on_device", TORCH_FN(copy_on_device), TORCH_FN(copy_on_device_served));
  structured<structured_cat, cat, cat_served>(pack, {"aten::cat", "aten::cat.out"});
  structured<structured_reflection_pad1d, pad<PadMode::REFLECT>, pad_served<PadMode::REFLECT, 1>>(
      pack, {"aten::reflection_pad1d", "aten::reflection_pad1d.out"});
  structured<structured_reflection_pad3d, pad<PadMode::REFLECT>, pad_served<PadMode::REFLECT, 3>>(
      pack, {"aten::reflection_pad3d", "aten::reflection_pad3d.out"});
  structured<structured_replication_pad1d, pad<PadMode::REPLICATE>, pad_served<PadMode::REPLICATE, 1>>(
      pack, {"aten::replication_pad1d", "aten::replication_pad1d.out"});
  structured<structured_replication_pad2d, pad<PadMode::REPLICATE>, pad_served<PadMode::REPLICATE, 2>>(
      pack, {"aten::replication_pad2d", "aten::replication_pad2d.out"});
  structured<structured_replication_pad3d, pad<PadMode::REPLICATE>, pad_served<PadMode::REPLICATE, 3>>(
      pack, {"aten::replication_pad3d", "aten::replication_pad3d.out"});
  pack.impl("aten::reflection_pad2d", TORCH_FN(reflection_pad2d), TORCH_FN(reflection_pad2d_served));
  pack.impl("aten::reflection_pad2d.out", TORCH_FN(reflection_pad2d_out), TORCH_FN(reflection_pad2d_out_served));
  pack.impl("aten::constant_pad_nd", TORCH_FN(constant_pad_nd), TORCH_FN(constant_pad_nd_served));
  pack.impl("aten::roll", TORCH_FN(roll), TORCH_FN(roll_served));
}

} // namespace musa_ops_mudnn
