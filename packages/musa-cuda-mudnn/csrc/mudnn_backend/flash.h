// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Attention by torch's CUDA kernels.
#pragma once

#include <mudnn_backend/device.h>

namespace musa_emulator::dnn {

// [N, H, L, E] each, with as many heads; lse is [N, H, L]. False, and nothing was done, for operands that the kernels do not take.
bool device_flash(
    const at::Tensor& out, const at::Tensor& lse, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
    bool causal, double scale);
bool device_flash_backward(
    const at::Tensor& grad_q, const at::Tensor& grad_k, const at::Tensor& grad_v, const at::Tensor& grad_out,
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
    bool causal, double scale);

} // namespace musa_emulator::dnn
