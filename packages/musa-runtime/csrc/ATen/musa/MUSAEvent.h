// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAEvent.h>

// Ported code spells the class both ways.
namespace at::musa {
using c10::musa::MUSAEvent;
} // namespace at::musa
