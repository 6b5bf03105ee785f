// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/util/Exception.h>
#include <mccl.h>

#include <string>

namespace c10d::mccl {

// Returns "mcclCommInitRank failed: ...", with the likely causes in order and the fix.
std::string explain(mcclResult_t result, const char* call);

// Raises torch.distributed.DistBackendError with the text of explain().
[[noreturn]] void throw_mccl_error(mcclResult_t result, const char* call);

} // namespace c10d::mccl

#define MCCL_CHECK(EXPR) \
  do { \
    const mcclResult_t mccl_result_ = (EXPR); \
    if (C10_UNLIKELY(mccl_result_ != mcclSuccess)) { \
      ::c10d::mccl::throw_mccl_error(mccl_result_, #EXPR); \
    } \
  } while (0)
