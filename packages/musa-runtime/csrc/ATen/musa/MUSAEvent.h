// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/musa/MUSAEvent.h>

// Ported code uses both names of the class.
namespace at::musa {
using c10::musa::MUSAEvent;
} // namespace at::musa
