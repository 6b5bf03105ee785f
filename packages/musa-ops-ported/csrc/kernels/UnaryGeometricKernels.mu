// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/UnaryOps.h>
#include <c10/util/complex.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

MUSA_UNARY(sin, std::sin(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(cos, std::cos(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(tan, std::tan(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(asin, std::asin(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(acos, std::acos(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(atan, std::atan(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(sinh, std::sinh(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(cosh, std::cosh(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(tanh, std::tanh(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(asinh, std::asinh(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(acosh, std::acosh(x), MUSA_FLOATING_AND_COMPLEX)
MUSA_UNARY(atanh, std::atanh(x), MUSA_FLOATING_AND_COMPLEX)

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(sin_stub, &musa_ops_ported::sin)
REGISTER_PRIVATEUSE1_DISPATCH(cos_stub, &musa_ops_ported::cos)
REGISTER_PRIVATEUSE1_DISPATCH(tan_stub, &musa_ops_ported::tan)
REGISTER_PRIVATEUSE1_DISPATCH(asin_stub, &musa_ops_ported::asin)
REGISTER_PRIVATEUSE1_DISPATCH(acos_stub, &musa_ops_ported::acos)
REGISTER_PRIVATEUSE1_DISPATCH(atan_stub, &musa_ops_ported::atan)
REGISTER_PRIVATEUSE1_DISPATCH(sinh_stub, &musa_ops_ported::sinh)
REGISTER_PRIVATEUSE1_DISPATCH(cosh_stub, &musa_ops_ported::cosh)
REGISTER_PRIVATEUSE1_DISPATCH(tanh_stub, &musa_ops_ported::tanh)
REGISTER_PRIVATEUSE1_DISPATCH(asinh_stub, &musa_ops_ported::asinh)
REGISTER_PRIVATEUSE1_DISPATCH(acosh_stub, &musa_ops_ported::acosh)
REGISTER_PRIVATEUSE1_DISPATCH(atanh_stub, &musa_ops_ported::atanh)
} // namespace at::native
