// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <ATen/native/Normalization.h>
#include <ATen/native/TensorIterator.h>

#include "engines/dispatch.h"
#include "engines/pointwise.muh"

namespace musa_ops_ported {
namespace {

// The factor that limits a slice of this norm to maxnorm.
void scale_factor(at::TensorIteratorBase& iter, double maxnorm) {
  MUSA_DISPATCH(iter.common_dtype(), "renorm", (MUSA_FLOATING), {
    const op_t most = static_cast<op_t>(maxnorm);
    pointwise(iter, [most] __host__ __device__(scalar_t norm) -> scalar_t {
      const op_t x = static_cast<op_t>(norm);
      constexpr op_t epsilon = static_cast<op_t>(1e-7);
      return static_cast<scalar_t>(x > most ? most / (x + epsilon) : op_t(1));
    });
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(renorm_scale_factor_stub, &musa_ops_ported::scale_factor)
} // namespace at::native
