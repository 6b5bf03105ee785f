// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

// The names that text-porting ATen/cuda/Exceptions.h yields. A port of that header would include SDK libraries that may not
// be installed; here the check of a library is defined only if its header exists.
#include <ATen/Context.h>
#include <c10/musa/MUSAException.h>

#define AT_MUSA_CHECK(EXPR) C10_MUSA_CHECK(EXPR)

#if __has_include(<mublas.h>)
#include <mublas.h>
#define TORCH_MUSABLAS_CHECK(EXPR) \
  do { \
    const mublasStatus_t status_ = EXPR; \
    TORCH_CHECK(status_ == MUBLAS_STATUS_SUCCESS, #EXPR " returned muBLAS status ", int(status_)); \
  } while (0)
#endif
