// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// In the layout of SDK 5, mudnn.h is muDNN's C interface; the C++ interface is <mudnncxx/mudnn.h>. The emulator has the
// types of the C interface but no functions, so that a program that includes the wrong header fails to compile.
#ifndef MUDNN_C_INTERFACE_H
#define MUDNN_C_INTERFACE_H

#include "musa_runtime_api.h"

typedef struct mudnnContext* mudnnHandle_t;
typedef enum { MUDNN_STATUS_SUCCESS, MUDNN_STATUS_NOT_SUPPORTED } mudnnStatus_t;

#endif
