// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Included first in each .mu source that includes torch's headers.
#pragma once

#include <ATen/musa/Exceptions.h>
#include <c10/macros/Macros.h>
#include <c10/util/Half.h>
#include <musa_bf16.h>
#include <musa_fp16.h>

// nvcc's question whether the host may call a lambda. mcc has no such built-in; a lambda of a kernel is __host__ __device__.
#define __nv_is_extended_host_device_lambda_closure_type(T) true
