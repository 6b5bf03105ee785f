// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The pack's C++ side over torch's stable ABI. Of torch it includes only headers in torch/csrc/stable and
// torch/headeronly.
#include <musa_runtime/stable_pack.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/ops.h>

#include "kernels.h"

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

musaStream_t stream_of(const Tensor& tensor) {
  return static_cast<musaStream_t>(musa_runtime::stable::current_stream(tensor.get_device_index()));
}

void check_launch() {
  const musaError_t status = musaGetLastError();
  STD_TORCH_CHECK(
      status == musaSuccess, "a kernel of the stable demo pack was not launched: ", musaGetErrorString(status));
}

// ---- an operator of torch

Tensor relu(const Tensor& self) {
  Tensor out = musa_runtime::stable::new_empty(self, self.sizes());
  if (self.numel() != 0) {
    const torch::stable::accelerator::DeviceGuard guard(self.get_device_index());
    musa_stable_demo::launch_relu(
        self.const_data_ptr<float>(), out.mutable_data_ptr<float>(), self.numel(), stream_of(self));
    check_launch();
  }
  return out;
}

// The next provider serves other dtypes and strided tensors.
bool serves_relu(const Tensor& self) { return self.scalar_type() == ScalarType::Float && self.is_contiguous(); }

// ---- a new operator

Tensor scale_shift(const Tensor& self, double scale, double shift) {
  STD_TORCH_CHECK(self.scalar_type() == ScalarType::Float, "scale_shift: expected a float32 tensor");
  const Tensor in = torch::stable::contiguous(self);
  Tensor out = musa_runtime::stable::new_empty(in, in.sizes());
  if (in.numel() != 0) {
    const torch::stable::accelerator::DeviceGuard guard(in.get_device_index());
    musa_stable_demo::launch_scale_shift(
        in.const_data_ptr<float>(), static_cast<float>(scale), static_cast<float>(shift), out.mutable_data_ptr<float>(),
        in.numel(), stream_of(in));
    check_launch();
  }
  return out;
}

} // namespace

STABLE_TORCH_LIBRARY(musa_stable_demo, library) {
  library.def("scale_shift(Tensor self, float scale, float shift) -> Tensor");
}

MUSA_STABLE_OP_PACK(stable_demo, pack) {
  pack.impl<&relu, &serves_relu>("aten::relu");
  pack.impl<&scale_shift>("musa_stable_demo::scale_shift");
}
