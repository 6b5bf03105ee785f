// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/mm.h>
#include <c10/core/DispatchKeySet.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <musa_runtime/op_pack.h>

// Products with a given dtype: that of the factors, or FLOAT for factors of 16 bits. Widening the factors is exact, whereas
// rounding the product is not. torch has no CPU kernel for these overloads, so errors are raised here.

namespace musa_runtime {
namespace {

// The operands in the dtype of the result. While it exists, operators run below autograd and autocast, which have
// handled the outer call: autocast would round the factors again.
class Widened {
 public:
  Widened(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) : a(checked(a, b, dtype)), b(b.to(dtype)) {}
  Widened(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, const at::Tensor& out)
      : Widened(a, b, dtype) {
    TORCH_CHECK(
        out.scalar_type() == dtype, "out_dtype must be the dtype of out. It is ", dtype, ", and out is ",
        out.scalar_type(), ".");
  }

  // Returns the addend in the dtype of the result, which it may have instead of the dtype of the factors.
  at::Tensor addend(const at::Tensor& self, const at::Tensor& factor) const {
    TORCH_CHECK(
        self.scalar_type() == a.scalar_type() || self.scalar_type() == factor.scalar_type(),
        "The added tensor must have the dtype of the inputs or out_dtype. It is ", self.scalar_type(),
        ", the inputs are ", factor.scalar_type(), ", and out_dtype is ", a.scalar_type(), ".");
    return self.to(a.scalar_type());
  }

 private:
  const at::AutoDispatchBelowADInplaceOrView below_autograd_;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast_{c10::autocast_dispatch_keyset};

  static at::Tensor checked(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
    const at::ScalarType own = a.scalar_type();
    TORCH_CHECK(
        own == b.scalar_type(), "input dtypes must be the same. They are ", own, " and ", b.scalar_type(),
        ".\nFix: convert one of them with .to(dtype).");
    TORCH_CHECK(
        dtype == own || (dtype == at::kFloat && (own == at::kHalf || own == at::kBFloat16)),
        "out_dtype must be the same as input dtype, or Float for Half and BFloat16. It is ", dtype,
        ", and the inputs are ", own, ".\nFix: convert the inputs or the result with .to(dtype).");
    return a.to(dtype);
  }

 public:
  const at::Tensor a;
  const at::Tensor b;
};

template <int64_t dims>
struct Wide {
  static at::Tensor product(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype) {
    const Widened wide(a, b, dtype);
    return dims == 2 ? at::mm(wide.a, wide.b) : at::bmm(wide.a, wide.b);
  }

  static at::Tensor& product_out(const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, at::Tensor& out) {
    const Widened wide(a, b, dtype, out);
    return dims == 2 ? at::mm_out(out, wide.a, wide.b) : at::bmm_out(out, wide.a, wide.b);
  }

  static at::Tensor sum(
      const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, const at::Scalar& beta,
      const at::Scalar& alpha) {
    const Widened wide(a, b, dtype);
    const at::Tensor added = wide.addend(self, a);
    return dims == 2 ? at::addmm(added, wide.a, wide.b, beta, alpha) : at::baddbmm(added, wide.a, wide.b, beta, alpha);
  }

  static at::Tensor& sum_out(
      const at::Tensor& self, const at::Tensor& a, const at::Tensor& b, at::ScalarType dtype, const at::Scalar& beta,
      const at::Scalar& alpha, at::Tensor& out) {
    const Widened wide(a, b, dtype, out);
    const at::Tensor added = wide.addend(self, a);
    return dims == 2 ? at::addmm_out(out, added, wide.a, wide.b, beta, alpha)
                     : at::baddbmm_out(out, added, wide.a, wide.b, beta, alpha);
  }
};

MUSA_OP_PACK(runtime, pack) {
  pack.impl("aten::mm.dtype", TORCH_FN(Wide<2>::product));
  pack.impl("aten::mm.dtype_out", TORCH_FN(Wide<2>::product_out));
  pack.impl("aten::bmm.dtype", TORCH_FN(Wide<3>::product));
  pack.impl("aten::bmm.dtype_out", TORCH_FN(Wide<3>::product_out));
  pack.impl("aten::addmm.dtype", TORCH_FN(Wide<2>::sum));
  pack.impl("aten::addmm.dtype_out", TORCH_FN(Wide<2>::sum_out));
  pack.impl("aten::baddbmm.dtype", TORCH_FN(Wide<3>::sum));
  pack.impl("aten::baddbmm.dtype_out", TORCH_FN(Wide<3>::sum_out));
}

} // namespace
} // namespace musa_runtime
