// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <c10/core/Device.h>
#include <c10/musa/MUSAMacros.h>

namespace c10::musa {

// Whether work of `device` can address memory of `peer`; if it can, access is enabled by the first call. Without access the
// SDK copies between the two through memory of the host. Raises if the SDK fails, and then the next call tries again.
C10_MUSA_API bool get_p2p_access(DeviceIndex device, DeviceIndex peer);

} // namespace c10::musa
