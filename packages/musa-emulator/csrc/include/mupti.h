// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The profiling interface of the MUSA SDK: activity records, and callbacks for API calls.
#ifndef MUPTI_H
#define MUPTI_H

#include "mupti_activity.h"
#include "mupti_callbacks.h"
#include "mupti_driver_cbid.h"
#include "mupti_result.h"
#include "mupti_runtime_cbid.h"
#include "mupti_version.h"

#endif
