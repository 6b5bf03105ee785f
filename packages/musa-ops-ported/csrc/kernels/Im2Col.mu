// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Copies sliding blocks of an image to the columns of a matrix, and sums columns back into an image.
#include <ATen/core/Tensor.h>
#include <ATen/native/UnfoldBackward.h>
#include <ATen/native/im2col_shape_check.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Load.h>
#include <musa_runtime/argument_checks.h>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/Im2Col.h"
#include "kernels/volume.h"

namespace musa_ops_ported {
namespace {

// The blocks along one dimension.
struct Blocks {
  int64_t size, kernel, dilation, padding, stride, count;

  Blocks(int64_t size, int64_t kernel, int64_t dilation, int64_t padding, int64_t stride)
      : size(size),
        kernel(kernel),
        dilation(dilation),
        padding(padding),
        stride(stride),
        count(div_rtn<int64_t>(size + 2 * padding - dilation * (kernel - 1) - 1, stride) + 1) {}

  // The input position of element k of a block, which may be outside the image.
  C10_HOST_DEVICE int64_t place(int64_t block, int64_t k) const { return block * stride - padding + k * dilation; }
  // The block whose element k is at this position, or -1.
  C10_HOST_DEVICE int64_t block(int64_t place, int64_t k) const {
    const int64_t begin = place + padding - k * dilation;
    const int64_t block = begin < 0 ? -1 : quotient(begin, stride);
    return begin >= 0 && block * stride == begin && block < count ? block : -1;
  }
};

void check_pairs(std::initializer_list<std::pair<const char*, at::IntArrayRef>> arguments) {
  for (const auto& [name, values] : arguments) {
    TORCH_CHECK(values.size() == 2, "It is expected ", name, " equals to 2, but got size ", values.size());
  }
}

void to_columns(
    const at::Tensor& self, at::IntArrayRef kernel, at::IntArrayRef dilation, at::IntArrayRef padding,
    at::IntArrayRef stride, at::Tensor& out) {
  check_pairs({{"kernel_size", kernel}, {"dilation", dilation}, {"padding", padding}, {"stride", stride}});
  at::native::im2col_shape_check(
      self, at::Tensor(), kernel[0], kernel[1], dilation[0], dilation[1], padding[0], padding[1], stride[0], stride[1]);
  const Volume image(self, 2);
  const Blocks rows(image.size[1], kernel[0], dilation[0], padding[0], stride[0]);
  const Blocks columns(image.size[2], kernel[1], dilation[1], padding[1], stride[1]);
  at::DimVector shape{image.channels * rows.kernel * columns.kernel, rows.count * columns.count};
  if (self.dim() == 4) {
    shape.insert(shape.begin(), image.batches);
  }
  out.resize_(shape);
  const Volume to(out, 1); // the rows of the matrix are the channels
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const from = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const result = elements_of<Bytes>(out, self);
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place o = to.place(i);
      const int64_t over = quotient(o.channel, columns.kernel), x = o.channel - over * columns.kernel;
      const int64_t channel = quotient(over, rows.kernel), y = over - channel * rows.kernel;
      const int64_t row_block = quotient(o.at[2], columns.count);
      const int64_t row = rows.place(row_block, y);
      const int64_t column = columns.place(o.at[2] - row_block * columns.count, x);
      const bool inside = row >= 0 && row < rows.size && column >= 0 && column < columns.size;
      result[to.offset(o)] = inside
          ? from[o.batch * image.batch_stride + channel * image.channel_stride + image.inside(0, row, column)]
          : Bytes{};
    });
  });
}

void to_image(
    const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel, at::IntArrayRef dilation,
    at::IntArrayRef padding, at::IntArrayRef stride, at::Tensor& out) {
  check_pairs(
      {{"output_size", output_size},
       {"kernel_size", kernel},
       {"dilation", dilation},
       {"padding", padding},
       {"stride", stride}});
  at::native::col2im_shape_check(
      self, at::Tensor(), output_size[0], output_size[1], kernel[0], kernel[1], dilation[0], dilation[1], padding[0],
      padding[1], stride[0], stride[1]);
  const Volume in(self, 1);
  const Blocks rows(output_size[0], kernel[0], dilation[0], padding[0], stride[0]);
  const Blocks columns(output_size[1], kernel[1], dilation[1], padding[1], stride[1]);
  at::DimVector shape{in.channels / (rows.kernel * columns.kernel), rows.size, columns.size};
  if (self.dim() == 3) {
    shape.insert(shape.begin(), in.batches);
  }
  out.resize_(shape);
  const Volume to(out, 2);
  MUSA_DISPATCH(self.scalar_type(), "col2im", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES), at::kBool), {
    const scalar_t* const from = self.const_data_ptr<scalar_t>();
    scalar_t* const result = out.mutable_data_ptr<scalar_t>();
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place at = to.place(i);
      const scalar_t* const plane = from + at.batch * in.batch_stride;
      op_t sum = 0;
      for (int64_t y = 0; y < rows.kernel; ++y) {
        const int64_t row = rows.block(at.at[1], y);
        for (int64_t x = 0; row >= 0 && x < columns.kernel; ++x) {
          const int64_t column = columns.block(at.at[2], x);
          if (column >= 0) {
            const int64_t channel = (at.channel * rows.kernel + y) * columns.kernel + x;
            const int64_t block = row * columns.count + column;
            sum += static_cast<op_t>(c10::load(plane + channel * in.channel_stride + block * in.stride[2]));
          }
        }
      }
      result[to.offset(at)] = static_cast<scalar_t>(sum);
    });
  });
}

// out[i] is the sum of gradient[f, i - f * step] over the folds f that contain i.
void unfold_gradient(at::Tensor& out, const at::Tensor& gradient, int64_t dimension, int64_t size, int64_t step) {
  const bool number = out.dim() == 0;
  const int64_t dim = at::maybe_wrap_dim(dimension, out.dim());
  TORCH_CHECK(step > 0, "unfold_backward: expected a positive step, got ", step);
  at::DimVector expected(out.sizes());
  if (!number) {
    TORCH_CHECK(
        size >= 0 && size <= out.size(dim), "unfold_backward: size ", size, " exceeds dimension ", dim,
        " of the input, of ", out.size(dim), " elements");
    expected[dim] = (out.size(dim) - size) / step + 1;
  }
  expected.push_back(size);
  musa_runtime::check_shape("unfold_backward", "grad_in", gradient, expected);
  const int64_t folds = number ? 1 : gradient.size(dim);
  const int64_t fold_stride = number ? 0 : gradient.stride(dim), inner = gradient.stride(-1);
  at::DimVector strides(gradient.strides().slice(0, out.dim()));
  at::DimVector place(out.dim(), 0); // the position along dim, in elements
  if (!number) {
    strides[dim] = 0;
    place[dim] = 1;
  }
  MUSA_DISPATCH(gradient.scalar_type(), "unfold_backward", (MUSA_ALL), {
    const scalar_t* const from = gradient.const_data_ptr<scalar_t>();
    scalar_t* const to = out.mutable_data_ptr<scalar_t>();
    for_each_offset(
        out.sizes(),
        [=] __device__(int64_t, const auto& at) {
          const int64_t i = at[2];
          op_t sum = 0;
          const int64_t first = i < size ? 0 : quotient(i - size, step) + 1;
          for (int64_t f = first; f < folds && f * step <= i; ++f) {
            sum += static_cast<op_t>(c10::load(from + at[1] + f * fold_stride + (i - f * step) * inner));
          }
          to[at[0]] = static_cast<scalar_t>(sum);
        },
        out.strides(), strides, place);
  });
}

} // namespace

at::Tensor im2col(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding,
    at::IntArrayRef stride) {
  at::Tensor out = aten::empty({0}, self.options());
  to_columns(self, kernel_size, dilation, padding, stride, out);
  return out;
}
at::Tensor& im2col_out(
    const at::Tensor& self, at::IntArrayRef kernel_size, at::IntArrayRef dilation, at::IntArrayRef padding,
    at::IntArrayRef stride, at::Tensor& out) {
  to_columns(self, kernel_size, dilation, padding, stride, out);
  return out;
}
at::Tensor col2im(
    const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
    at::IntArrayRef padding, at::IntArrayRef stride) {
  at::Tensor out = aten::empty({0}, self.options());
  to_image(self, output_size, kernel_size, dilation, padding, stride, out);
  return out;
}
at::Tensor& col2im_out(
    const at::Tensor& self, at::IntArrayRef output_size, at::IntArrayRef kernel_size, at::IntArrayRef dilation,
    at::IntArrayRef padding, at::IntArrayRef stride, at::Tensor& out) {
  to_image(self, output_size, kernel_size, dilation, padding, stride, out);
  return out;
}

} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(unfold_backward_stub, &musa_ops_ported::unfold_gradient)
} // namespace at::native
