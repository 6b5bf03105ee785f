// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Bessel and Airy functions and functions of the normal distribution, in single and double precision; polygamma.
#include <ATen/native/Math.h>
#include <ATen/native/UnaryOps.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"
#include "kernels/digamma.h"

namespace musa_ops_ported {
namespace {

MUSA_UNARY(airy_ai, ::airy_ai_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(bessel_j0, ::bessel_j0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(bessel_j1, ::bessel_j1_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(bessel_y0, ::bessel_y0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(bessel_y1, ::bessel_y1_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(modified_bessel_i0, ::modified_bessel_i0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(modified_bessel_i1, ::modified_bessel_i1_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(modified_bessel_k0, ::modified_bessel_k0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(modified_bessel_k1, ::modified_bessel_k1_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(scaled_modified_bessel_k0, ::scaled_modified_bessel_k0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(scaled_modified_bessel_k1, ::scaled_modified_bessel_k1_forward(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(spherical_bessel_j0, ::spherical_bessel_j0_forward(x), AT_EXPAND(AT_FLOATING_TYPES))

MUSA_UNARY(ndtri, ::calc_ndtri(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(log_ndtr, ::calc_log_ndtr(x), AT_EXPAND(AT_FLOATING_TYPES))
MUSA_UNARY(erfcx, ::calc_erfcx(x), AT_EXPAND(AT_FLOATING_TYPES))

void polygamma(at::TensorIteratorBase& iter, int64_t n) {
  if (n == 0) {
    digamma(iter);
  } else if (n == 1) {
    trigamma(iter);
  } else {
    MUSA_DISPATCH(iter.common_dtype(), "polygamma", (MUSA_FLOATING), {
      pointwise(iter, [n] __host__ __device__(scalar_t x) -> scalar_t {
        return static_cast<scalar_t>(::calc_polygamma(at::opmath_type<scalar_t>(x), static_cast<int>(n)));
      });
    });
  }
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(polygamma_stub, &musa_ops_ported::polygamma)
REGISTER_PRIVATEUSE1_DISPATCH(special_ndtri_stub, &musa_ops_ported::ndtri)
REGISTER_PRIVATEUSE1_DISPATCH(special_log_ndtr_stub, &musa_ops_ported::log_ndtr)
REGISTER_PRIVATEUSE1_DISPATCH(special_erfcx_stub, &musa_ops_ported::erfcx)
REGISTER_PRIVATEUSE1_DISPATCH(special_airy_ai_stub, &musa_ops_ported::airy_ai)
REGISTER_PRIVATEUSE1_DISPATCH(special_bessel_j0_stub, &musa_ops_ported::bessel_j0)
REGISTER_PRIVATEUSE1_DISPATCH(special_bessel_j1_stub, &musa_ops_ported::bessel_j1)
REGISTER_PRIVATEUSE1_DISPATCH(special_bessel_y0_stub, &musa_ops_ported::bessel_y0)
REGISTER_PRIVATEUSE1_DISPATCH(special_bessel_y1_stub, &musa_ops_ported::bessel_y1)
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_i0_stub, &musa_ops_ported::modified_bessel_i0)
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_i1_stub, &musa_ops_ported::modified_bessel_i1)
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_k0_stub, &musa_ops_ported::modified_bessel_k0)
REGISTER_PRIVATEUSE1_DISPATCH(special_modified_bessel_k1_stub, &musa_ops_ported::modified_bessel_k1)
REGISTER_PRIVATEUSE1_DISPATCH(special_scaled_modified_bessel_k0_stub, &musa_ops_ported::scaled_modified_bessel_k0)
REGISTER_PRIVATEUSE1_DISPATCH(special_scaled_modified_bessel_k1_stub, &musa_ops_ported::scaled_modified_bessel_k1)
REGISTER_PRIVATEUSE1_DISPATCH(special_spherical_bessel_j0_stub, &musa_ops_ported::spherical_bessel_j0)
} // namespace at::native
