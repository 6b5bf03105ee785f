// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Headers of torch that most kernels include, precompiled by mcc (musa_precompile_for_kernels). Each kernel still
// includes the headers that it uses, because other compilers do not precompile. Do not add headers that define
// kernels, nor ATen/ops/*.h and ATen/native/Resize.h: engines/aten.h has the reason.
#pragma once

#include <ATen/Dispatch_v2.h>
#include <ATen/MemoryOverlap.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Reduction.h>
#include <ATen/core/Tensor.h>
#include <ATen/detail/FunctionTraits.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/complex.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
