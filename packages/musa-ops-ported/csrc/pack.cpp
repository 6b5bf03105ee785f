// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/op_pack.h>

#include "kernels/Copy.h"

namespace musa_ops_ported {
void declare_operators(musa_runtime::OpPack& pack); // generated
} // namespace musa_ops_ported

MUSA_OP_PACK(ported, pack) {
  musa_ops_ported::declare_operators(pack);
  pack.impl(
      "torch_musa::_copy_on_device", TORCH_FN(musa_ops_ported::copy_on_device),
      TORCH_FN(musa_ops_ported::copy_on_device_served));
}
