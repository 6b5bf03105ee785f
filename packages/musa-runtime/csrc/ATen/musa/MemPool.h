// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAMemPool.h>

namespace at::musa {

using c10::CaptureId_t;
using c10::MempoolId_t;
using c10::musa::MemPool;

} // namespace at::musa
