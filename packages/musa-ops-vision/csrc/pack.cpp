// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <musa_runtime/op_pack.h>

#include "operators.h"

MUSA_OP_PACK(vision, pack) {
  namespace vision = musa_ops_vision;
  pack.impl("torchvision::nms", TORCH_FN(vision::nms));
  pack.impl("torchvision::roi_align", TORCH_FN(vision::roi_align));
  pack.impl("torchvision::_roi_align_backward", TORCH_FN(vision::roi_align_backward));
  pack.impl("torchvision::roi_pool", TORCH_FN(vision::roi_pool));
  pack.impl("torchvision::_roi_pool_backward", TORCH_FN(vision::roi_pool_backward));
  pack.impl("torchvision::ps_roi_align", TORCH_FN(vision::ps_roi_align));
  pack.impl("torchvision::_ps_roi_align_backward", TORCH_FN(vision::ps_roi_align_backward));
  pack.impl("torchvision::ps_roi_pool", TORCH_FN(vision::ps_roi_pool));
  pack.impl("torchvision::_ps_roi_pool_backward", TORCH_FN(vision::ps_roi_pool_backward));
  pack.impl("torchvision::deform_conv2d", TORCH_FN(vision::deform_conv2d));
  pack.impl("torchvision::_deform_conv2d_backward", TORCH_FN(vision::deform_conv2d_backward));
}
