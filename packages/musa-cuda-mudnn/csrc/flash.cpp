// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <mudnn_backend/flash.h>

#include <tuple>

namespace musa_emulator::dnn {
namespace {

// torch's flash attention takes HALF and BFLOAT16. The heads of q, k and v have one size, a multiple of 8 up to 256.
bool serves(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t dim = q.size(-1);
  return at::isReducedFloatingType(q.scalar_type()) && dim == k.size(-1) && dim == v.size(-1) && dim % 8 == 0 && dim <= 256;
}

} // namespace

bool device_flash(
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    bool causal, double scale) {
  if (!serves(q, k, v)) {
    return false;
  }
  const auto result = at::_scaled_dot_product_flash_attention(q, k, v, /*dropout_p=*/0.0, causal, false, scale);
  out.copy_(std::get<0>(result));
  lse.copy_(std::get<1>(result).narrow(2, 0, lse.size(2)));
  return true;
}

bool device_flash_backward(
    const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v, const at::Tensor& grad_out,
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
    bool causal, double scale) {
  if (!serves(q, k, v)) {
    return false;
  }
  const at::Tensor unused = new_tensor({2}, at::kLong); // the state of dropout, of which there is none
  const auto gradients = at::_scaled_dot_product_flash_attention_backward(
      grad_out, q, k, v, out, lse, {}, {}, q.size(2), k.size(2), /*dropout_p=*/0.0, causal, unused, unused, scale);
  grad_q.copy_(std::get<0>(gradients));
  grad_k.copy_(std::get<1>(gradients));
  grad_v.copy_(std::get<2>(gradients));
  return true;
}

} // namespace musa_emulator::dnn
