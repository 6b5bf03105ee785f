// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN, the C++ interface of SDK 4.
#pragma once

#include "mudnn_base.h"
#include "mudnn_math.h"
#include "mudnn_nn.h"
#include "mudnn_version.h"
#include "mudnn_xmma.h"
