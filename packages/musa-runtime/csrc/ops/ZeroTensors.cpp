// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_efficientzerotensor.h>
#include <c10/core/TensorOptions.h>
#include <c10/musa/MUSAFunctions.h>
#include <musa_runtime/op_pack.h>

// Zero tensors have a shape and no memory. Forward-mode differentiation uses them for tangents of constants. torch's
// dispatcher gives most operators ordinary tensors of zeros instead, but passes zero tensors on to dot and vdot. The kernels
// of packs decline them, and the product is a zero tensor, as on other devices.

namespace musa_runtime {
namespace {

using at::Tensor;

Tensor efficient_zero_tensor(
    at::IntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout> layout,
    std::optional<at::Device> device, std::optional<bool> /*pin_memory*/) {
  TORCH_CHECK(c10::layout_or_default(layout) == at::kStrided, "Zero tensors are strided, not ", *layout);
  const at::Device place(
      c10::DeviceType::PrivateUse1, c10::musa::resolve_device_index(c10::device_or_default(device).index()));
  at::native::ZeroTensorAllocator allocator(place);
  constexpr c10::DispatchKeySet keys{c10::DispatchKey::PrivateUse1, c10::DispatchKey::ZeroTensor};
  return at::detail::empty_generic(size, &allocator, keys, c10::dtype_or_default(dtype), std::nullopt);
}

bool is_product_with_zeros(const Tensor& self, const Tensor& other) {
  return self._is_zerotensor() || other._is_zerotensor();
}

Tensor product_with_zeros(const Tensor& self, const Tensor& other) {
  TORCH_CHECK(
      self.dim() == 1 && other.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", other.dim(),
      "D tensors");
  TORCH_CHECK(
      self.scalar_type() == other.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
      self.scalar_type(), " and ", other.scalar_type());
  TORCH_CHECK(
      self.numel() == other.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [",
      other.numel(), "] to have the same number of elements, but got ", self.numel(), " and ", other.numel(),
      " elements respectively");
  TORCH_CHECK(
      self.device() == other.device(), "Expected all tensors to be on the same device. Found: ", self.device(), ", ",
      other.device());
  return at::_efficientzerotensor({}, self.options());
}

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::_efficientzerotensor", TORCH_FN(efficient_zero_tensor))
      .impl("aten::dot", TORCH_FN(product_with_zeros), TORCH_FN(is_product_with_zeros))
      .impl("aten::vdot", TORCH_FN(product_with_zeros), TORCH_FN(is_product_with_zeros));
}

} // namespace
} // namespace musa_runtime
