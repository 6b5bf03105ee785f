// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Reflection and replication padding. Each output computes its source position; in the backward pass each input
// gathers from the outputs that show it: the one inside, and those in the borders on both sides.
#include <ATen/core/Tensor.h>
#include <musa_runtime/argument_checks.h>

#include <algorithm>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/Padding.h"
#include "kernels/volume.h"

namespace musa_ops_ported {
namespace {

enum class Border { Reflected, Replicated };

// The outputs that show one input position, along one dimension.
struct Shown {
  Span parts[3];
  C10_HOST_DEVICE int64_t count() const {
    return parts[0].end - parts[0].begin + parts[1].end - parts[1].begin + parts[2].end - parts[2].begin;
  }
  C10_HOST_DEVICE int64_t operator[](int64_t k) const {
    for (int part = 0; part < 2; ++part) {
      const int64_t length = parts[part].end - parts[part].begin;
      if (k < length) {
        return parts[part].begin + k;
      }
      k -= length;
    }
    return parts[2].begin + k;
  }
};

struct Frame {
  Border border;
  int64_t in[kSpatial], out[kSpatial], before[kSpatial] = {0, 0, 0};

  // torch lists the padding of the last dimension first.
  Frame(Border border, const Volume& input, const Volume& output, at::IntArrayRef padding) : border(border) {
    std::copy_n(input.size, kSpatial, in);
    std::copy_n(output.size, kSpatial, out);
    for (size_t d = 0; d < padding.size() / 2; ++d) {
      before[kSpatial - 1 - d] = padding[2 * d];
    }
  }
  C10_HOST_DEVICE int64_t source(int d, int64_t o) const {
    const int64_t at = o - before[d];
    const int64_t last = in[d] - 1;
    if (at < 0) {
      return border == Border::Replicated ? 0 : -at;
    }
    if (at > last) {
      return border == Border::Replicated ? last : 2 * last - at;
    }
    return at;
  }
  C10_HOST_DEVICE Span cut(int d, int64_t begin, int64_t end) const {
    begin = begin < 0 ? 0 : begin;
    end = end < out[d] ? end : out[d];
    return {begin, end > begin ? end : begin};
  }
  C10_HOST_DEVICE Shown shown(int d, int64_t i) const {
    const int64_t last = in[d] - 1;
    const int64_t inside = i + before[d];
    const int64_t first = before[d], end = before[d] + in[d]; // the range of outputs inside the borders
    Shown result{cut(d, inside, inside + 1), {0, 0}, {0, 0}};
    if (border == Border::Replicated) {
      if (i == 0) {
        result.parts[1] = cut(d, 0, first);
      }
      if (i == last) {
        result.parts[2] = cut(d, end, out[d]);
      }
    } else {
      if (i > 0) {
        result.parts[1] = cut(d, first - i, first - i + 1);
      }
      if (i < last) {
        result.parts[2] = cut(d, end - 1 + last - i, end + last - i);
      }
    }
    return result;
  }
};

void pad(Border border, const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  const int spatial = static_cast<int>(padding.size() / 2);
  const Volume in(self, spatial), to(out, spatial);
  const Frame frame(border, in, to, padding);
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const from = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const result = elements_of<Bytes>(out, self);
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place o = to.place(i);
      result[to.offset(o)] =
          from[in.plane(o) + in.inside(frame.source(0, o.at[0]), frame.source(1, o.at[1]), frame.source(2, o.at[2]))];
    });
  });
}

// Returns the shape of the padded input.
at::DimVector padded_shape(const at::Tensor& self, at::IntArrayRef padding) {
  at::DimVector shape(self.sizes());
  for (size_t d = 0; d < padding.size() / 2; ++d) {
    shape[shape.size() - 1 - d] += padding[2 * d] + padding[2 * d + 1];
  }
  return shape;
}

void pad_gradient(Border border, const at::Tensor& gradient, at::IntArrayRef padding, const at::Tensor& grad_input) {
  if (grad_input.numel() == 0) {
    return;
  }
  musa_runtime::check_shape("pad_backward", "grad_output", gradient, padded_shape(grad_input, padding));
  const int spatial = static_cast<int>(padding.size() / 2);
  const Volume out(gradient, spatial), to(grad_input, spatial);
  const Frame frame(border, to, out, padding);
  MUSA_DISPATCH(gradient.scalar_type(), "pad_backward", (MUSA_FLOATING, AT_EXPAND(AT_COMPLEX_TYPES)), {
    const scalar_t* const from = gradient.const_data_ptr<scalar_t>();
    scalar_t* const result = grad_input.mutable_data_ptr<scalar_t>();
    for_each(to.count(), [=] __device__(int64_t i) {
      const Place at = to.place(i);
      const scalar_t* const plane = from + out.plane(at);
      const Shown zs = frame.shown(0, at.at[0]), ys = frame.shown(1, at.at[1]), xs = frame.shown(2, at.at[2]);
      op_t sum = 0;
      for (int64_t z = 0; z < zs.count(); ++z) {
        for (int64_t y = 0; y < ys.count(); ++y) {
          for (int64_t x = 0; x < xs.count(); ++x) {
            sum += static_cast<op_t>(plane[out.inside(zs[z], ys[y], xs[x])]);
          }
        }
      }
      result[to.offset(at)] = static_cast<scalar_t>(sum);
    });
  });
}

void check_reflection(const at::Tensor& self, at::IntArrayRef padding) {
  for (int64_t d = 0; d < 2; ++d) {
    const int64_t dim = self.dim() - 1 - d;
    TORCH_CHECK(
        padding[2 * d] < self.size(dim) && padding[2 * d + 1] < self.size(dim), "Argument #", 4 + 2 * d,
        ": Padding size should be less than the corresponding input dimension, but got: padding (", padding[2 * d],
        ", ", padding[2 * d + 1], ") at dimension ", dim, " of input ", self.sizes());
  }
}

void check_padding(at::IntArrayRef padding, int spatial) {
  TORCH_CHECK(
      static_cast<int>(padding.size()) == 2 * spatial, "padding size is expected to be ", 2 * spatial,
      ", but got: ", padding.size());
}

// torch has such a function in each minor, with other parameters in 2.15.
void check_image(const at::Tensor& self) {
  const at::IntArrayRef sizes = self.sizes();
  const bool has_batch = sizes.size() == 4;
  const bool is_filled = std::all_of(sizes.begin() + has_batch, sizes.end(), [](int64_t size) { return size != 0; });
  TORCH_CHECK(
      (has_batch || sizes.size() == 3) && is_filled,
      "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size "
      "and other non-zero dimensions for input, but got: ",
      sizes);
}

void reflect_2d(const at::Tensor& self, at::IntArrayRef padding, at::Tensor& out) {
  check_padding(padding, 2);
  check_image(self);
  check_reflection(self, padding);
  const at::DimVector shape = padded_shape(self, padding);
  const int64_t height = shape[shape.size() - 2], width = shape[shape.size() - 1];
  TORCH_CHECK(
      height >= 1 || width >= 1, "input (H: ", self.size(-2), " W: ", self.size(-1),
      ") is too small. Calculated "
      "output H: ",
      height, " W: ", width);
  out.resize_(shape, self.dim() == 4 ? self.suggest_memory_format() : at::MemoryFormat::Contiguous);
  pad(Border::Reflected, self, padding, out);
}

// Checks the arguments here, because the operator has no meta function.
void checked_gradient(
    Border border, const at::Tensor& gradient, const at::Tensor& self, at::IntArrayRef padding, int spatial,
    at::Tensor& grad_input) {
  check_padding(padding, spatial);
  TORCH_CHECK(
      self.dim() == spatial + 1 || self.dim() == spatial + 2, "Expected ", spatial + 1, "D or ", spatial + 2,
      "D (batch mode) input, but got: ", self.sizes());
  if (border == Border::Reflected) {
    check_reflection(self, padding);
  }
  const at::DimVector expected = padded_shape(self, padding);
  TORCH_CHECK(
      gradient.dim() == self.dim(), "grad_output of ", self.dim(), " dimensions expected, but got: ", gradient.sizes());
  const char* const names[] = {"width", "height", "depth"};
  for (int d = 0; d < spatial; ++d) {
    const int64_t want = expected[expected.size() - 1 - d];
    TORCH_CHECK(
        want == gradient.size(-1 - d), "grad_output ", names[d], " unexpected. Expected: ", want,
        ", Got: ", gradient.size(-1 - d));
  }
  grad_input.resize_(self.sizes(), self.suggest_memory_format());
  pad_gradient(border, gradient, padding, grad_input);
}

at::Tensor made_gradient(
    Border border, const at::Tensor& gradient, const at::Tensor& self, at::IntArrayRef padding, int spatial) {
  at::Tensor grad_input = aten::empty({0}, self.options());
  checked_gradient(border, gradient, self, padding, spatial, grad_input);
  return grad_input;
}

// Gives the result the memory format of the input, as torch's CPU kernels do; its meta functions make it contiguous.
void keep_format(const at::Tensor& self, const at::Tensor& out) {
  const at::MemoryFormat format = self.suggest_memory_format();
  if (format != at::MemoryFormat::Contiguous && out.is_contiguous()) { // an out= with gaps keeps its strides
    out.unsafeGetTensorImpl()->empty_tensor_restride(format);
  }
}

} // namespace

void reflection_pad1d(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  pad(Border::Reflected, self, padding, out);
}
void reflection_pad3d(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  pad(Border::Reflected, self, padding, out);
}
at::Tensor reflection_pad2d(const at::Tensor& self, at::IntArrayRef padding) {
  at::Tensor out = aten::empty({0}, self.options());
  reflect_2d(self, padding, out);
  return out;
}
at::Tensor& reflection_pad2d_out(const at::Tensor& self, at::IntArrayRef padding, at::Tensor& out) {
  reflect_2d(self, padding, out);
  return out;
}
void reflection_pad1d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& grad_input) {
  pad_gradient(Border::Reflected, grad_output, padding, grad_input);
}
void reflection_pad3d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& grad_input) {
  pad_gradient(Border::Reflected, grad_output, padding, grad_input);
}
at::Tensor reflection_pad2d_backward(const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding) {
  return made_gradient(Border::Reflected, grad_output, self, padding, 2);
}
at::Tensor& reflection_pad2d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, at::Tensor& grad_input) {
  checked_gradient(Border::Reflected, grad_output, self, padding, 2, grad_input);
  return grad_input;
}

void replication_pad1d(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  pad(Border::Replicated, self, padding, out);
}
void replication_pad2d(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  keep_format(self, out);
  pad(Border::Replicated, self, padding, out);
}
void replication_pad3d(const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& out) {
  keep_format(self, out);
  pad(Border::Replicated, self, padding, out);
}
void replication_pad1d_backward(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, const at::Tensor& grad_input) {
  pad_gradient(Border::Replicated, grad_output, padding, grad_input);
}
at::Tensor replication_pad2d_backward(const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding) {
  return made_gradient(Border::Replicated, grad_output, self, padding, 2);
}
at::Tensor& replication_pad2d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, at::Tensor& grad_input) {
  checked_gradient(Border::Replicated, grad_output, self, padding, 2, grad_input);
  return grad_input;
}
at::Tensor replication_pad3d_backward(const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding) {
  return made_gradient(Border::Replicated, grad_output, self, padding, 3);
}
at::Tensor& replication_pad3d_backward_grad_input(
    const at::Tensor& grad_output, const at::Tensor& self, at::IntArrayRef padding, at::Tensor& grad_input) {
  checked_gradient(Border::Replicated, grad_output, self, padding, 3, grad_input);
  return grad_input;
}

} // namespace musa_ops_ported
