// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Max unpooling: writes values to the positions that max pooling recorded, and zeros elsewhere.
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/MaxUnpooling.h"
#include "kernels/volume.h"

namespace musa_ops_ported {
namespace {

void check(
    const at::Tensor& self, const at::Tensor& indices, const at::Tensor& out, at::IntArrayRef output_size,
    int spatial) {
  TORCH_CHECK(
      indices.scalar_type() == at::kLong,
      "elements in indices should be type int64 but got type: ", indices.scalar_type());
  TORCH_CHECK(
      self.scalar_type() == out.scalar_type(), "expected dtype ", self.scalar_type(), " for `output` but got dtype ",
      out.scalar_type());
  if (spatial == 2) {
    TORCH_CHECK(
        output_size.size() == 2, "There should be exactly two elements (height, width) in output_size, but got ",
        output_size.size(), " elements.");
  } else {
    TORCH_CHECK(
        output_size.size() == 3,
        "There should be exactly three elements (depth, height, width) in output_size, but "
        "got ",
        output_size.size(), " elements.");
  }
  TORCH_CHECK(
      self.dim() == spatial + 1 || self.dim() == spatial + 2, "Input to max_unpooling", spatial, "d should be a ",
      spatial + 1, "d or ", spatial + 2, "d Tensor, but got a tensor with ", self.dim(), " dimensions.");
  TORCH_CHECK(
      self.sizes() == indices.sizes(), "Expected shape of indices to be same as that of the input tensor (",
      self.sizes(), ") but got indices tensor with shape: ", indices.sizes());
  for (int64_t d = 1; d < self.dim(); ++d) {
    TORCH_CHECK(
        self.size(d) > 0, "max_unpooling", spatial,
        "d_forward_out(): Expected input to have non-zero size for "
        "non-batch dimensions, but got ",
        self.sizes(), " with dimension ", d, " being empty.");
  }
}

void unpool(
    const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size, int spatial, at::Tensor& out) {
  at::globalContext().alertNotDeterministic(
      spatial == 2 ? "max_unpooling2d_forward_out" : "max_unpooling3d_forward_out");
  check(self, indices, out, output_size, spatial);
  at::DimVector shape(self.sizes());
  std::copy(output_size.begin(), output_size.end(), shape.end() - spatial);
  const bool has_format = spatial == 2 && self.dim() == 4;
  out.resize_(shape, has_format ? self.suggest_memory_format() : at::MemoryFormat::Contiguous);
  out.zero_();
  if (self.numel() == 0) {
    return;
  }
  const Volume in(self, spatial), places(indices, spatial), to(out, spatial);
  const int64_t most = to.size[0] * to.size[1] * to.size[2];
  const int64_t* const from_place = indices.const_data_ptr<int64_t>();
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const from = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const result = elements_of<Bytes>(out, self);
    for_each(in.count(), [=] __device__(int64_t i) {
      const Place at = in.place(i);
      const int64_t number = from_place[places.offset(at)];
      CUDA_KERNEL_ASSERT(number >= 0 && number < most && "max_unpool: index out of the output");
      const int64_t row = quotient(number, to.size[2]);
      const int64_t z = quotient(row, to.size[1]);
      result[to.plane(at) + to.inside(z, row - z * to.size[1], number - row * to.size[2])] = from[in.offset(at)];
    });
  });
}

void check_steps(at::IntArrayRef stride, at::IntArrayRef padding) {
  TORCH_CHECK(
      stride.size() == 3,
      "There should be exactly three elements (depth, height, width) in stride, but got: ", stride.size(),
      " elements.");
  TORCH_CHECK(
      padding.size() == 3,
      "There should be exactly three elements (depth, height, width) in padding, but got: ", padding.size(),
      " elements.");
  TORCH_CHECK(
      stride[0] > 0 && stride[1] > 0 && stride[2] > 0, "strides should be greater than zero, but got stride: ", stride);
}

} // namespace

at::Tensor max_unpool2d(const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size) {
  at::Tensor out = aten::empty({0}, self.options());
  unpool(self, indices, output_size, 2, out);
  return out;
}
at::Tensor& max_unpool2d_out(
    const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size, at::Tensor& out) {
  unpool(self, indices, output_size, 2, out);
  return out;
}
at::Tensor max_unpool3d(
    const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
    at::IntArrayRef padding) {
  at::Tensor out = aten::empty({0}, self.options());
  return max_unpool3d_out(self, indices, output_size, stride, padding, out);
}
at::Tensor& max_unpool3d_out(
    const at::Tensor& self, const at::Tensor& indices, at::IntArrayRef output_size, at::IntArrayRef stride,
    at::IntArrayRef padding, at::Tensor& out) {
  check_steps(stride, padding);
  unpool(self, indices, output_size, 3, out);
  return out;
}

} // namespace musa_ops_ported
