// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The first two derivatives of lgamma, to which polygamma delegates orders 0 and 1.
#pragma once

namespace at {
struct TensorIteratorBase;
}

namespace musa_ops_ported {

void digamma(at::TensorIteratorBase& iter);
void trigamma(at::TensorIteratorBase& iter);

} // namespace musa_ops_ported
