// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The rules of torch.autocast("musa"). The lists are torch's AT_FORALL_* macros, which the rules for CUDA use too, so
// they match the installed torch. An operator without a rule runs unchanged, through the fallthrough kernel that
// musa_runtime registers.
#include <ATen/Operators.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace {

// The AT_FORALL_* macros use these types without a namespace.
#if __has_include(<ATen/core/Dimname.h>)
using at::Dimname;
using at::DimnameList;
#endif
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

Tensor refuse_binary_cross_entropy(
    const Tensor& /*self*/, const Tensor& /*target*/, const std::optional<Tensor>& /*weight*/, int64_t /*reduction*/) {
  TORCH_CHECK(
      false,
      "binary_cross_entropy and BCELoss are unsafe under autocast: in a 16-bit type a sigmoid before them often rounds "
      "to exactly 0 or 1, whose logarithm has no finite gradient.\n"
      "Fix: use torch.nn.functional.binary_cross_entropy_with_logits (BCEWithLogitsLoss) on the input of the sigmoid, "
      "or compute the loss in float32 with autocast disabled: torch.autocast(\"musa\", enabled=False).");
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER_PRECISION(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
  AT_FORALL_LOWER_PRECISION_FP(LOWER_PRECISION)
#undef LOWER_PRECISION

#define IN_FLOAT32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
  AT_FORALL_FP32(IN_FLOAT32)
#undef IN_FLOAT32

#define TO_FLOAT32_UNLESS_TOLD(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
  AT_FORALL_FP32_SET_OPT_DTYPE(TO_FLOAT32_UNLESS_TOLD)
#undef TO_FLOAT32_UNLESS_TOLD

  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)

#define PROMOTED(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_PROMOTE(PROMOTED)
#undef PROMOTED

  m.impl("binary_cross_entropy", TORCH_FN(refuse_binary_cross_entropy));
}

} // namespace
