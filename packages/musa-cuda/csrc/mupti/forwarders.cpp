// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// libmupti: an entry point for each function of the profiling headers.
#include "mupti/support.h"

static_assert((int)MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE == (int)CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE);
static_assert((int)MUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT == (int)CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT);

#include "mupti_forwarders.inc"
