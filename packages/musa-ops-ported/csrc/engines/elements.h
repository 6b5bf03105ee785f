// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/TensorBase.h>
#include <c10/util/Exception.h>

namespace musa_ops_ported {

// Returns the elements of `out`, to which a kernel moves elements of `source` without computing (MUSA_BY_SIZE). Raises an error
// if the dtypes differ: elements of another size would be written past the end of an out= argument.
template <typename Bytes>
Bytes* elements_of(const at::TensorBase& out, const at::TensorBase& source) {
  TORCH_CHECK(
      out.scalar_type() == source.scalar_type(), "Expected out tensor to have dtype ", source.scalar_type(),
      ", but got ", out.scalar_type(), " instead");
  return static_cast<Bytes*>(out.mutable_data_ptr());
}

} // namespace musa_ops_ported
