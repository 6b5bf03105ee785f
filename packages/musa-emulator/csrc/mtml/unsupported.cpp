// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions of mtml.h that no device supports.
#include "mtml.h"

// One function under many names. The caller removes its arguments itself, in the calling conventions of all
// supported processors.
extern "C" __attribute__((used)) MtmlReturn mtml_not_supported(void) { return MTML_ERROR_NOT_SUPPORTED; }

// The names have other parameters than the function. clang does not warn.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wattribute-alias"
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif
#define NOT_SUPPORTED(name) extern "C" decltype(name) name __attribute__((alias("mtml_not_supported")))

NOT_SUPPORTED(mtmlLibrarySetMpcConfigurationInBatch);
NOT_SUPPORTED(mtmlLogSetConfiguration);
NOT_SUPPORTED(mtmlLogGetConfiguration);
NOT_SUPPORTED(mtmlDeviceReset);
NOT_SUPPORTED(mtmlDeviceGetGpuPath);
NOT_SUPPORTED(mtmlDeviceGetPrimaryPath);
NOT_SUPPORTED(mtmlDeviceGetRenderPath);
NOT_SUPPORTED(mtmlDeviceGetVbiosVersion);
NOT_SUPPORTED(mtmlDeviceGetMtBiosVersion);
NOT_SUPPORTED(mtmlDeviceGetFanRpm);
NOT_SUPPORTED(mtmlDeviceGetPcieSlotInfo);
NOT_SUPPORTED(mtmlDeviceCountDisplayInterface);
NOT_SUPPORTED(mtmlDeviceGetDisplayInterfaceSpec);
NOT_SUPPORTED(mtmlDeviceCountSupportedVirtTypes);
NOT_SUPPORTED(mtmlDeviceGetSupportedVirtTypes);
NOT_SUPPORTED(mtmlDeviceCountAvailVirtTypes);
NOT_SUPPORTED(mtmlDeviceGetAvailVirtTypes);
NOT_SUPPORTED(mtmlDeviceCountAvailVirtDevices);
NOT_SUPPORTED(mtmlDeviceCountActiveVirtDevices);
NOT_SUPPORTED(mtmlDeviceGetActiveVirtDeviceUuids);
NOT_SUPPORTED(mtmlDeviceCountMaxVirtDevices);
NOT_SUPPORTED(mtmlDeviceInitVirtDevice);
NOT_SUPPORTED(mtmlDeviceFreeVirtDevice);
NOT_SUPPORTED(mtmlDeviceGetVirtType);
NOT_SUPPORTED(mtmlDeviceGetPhyDeviceUuid);
NOT_SUPPORTED(mtmlDeviceCountDeviceByTopologyLevel);
NOT_SUPPORTED(mtmlDeviceGetDeviceByTopologyLevel);
NOT_SUPPORTED(mtmlDeviceSetMpcMode);
NOT_SUPPORTED(mtmlDeviceGetMpcMode);
NOT_SUPPORTED(mtmlDeviceCountSupportedMpcProfiles);
NOT_SUPPORTED(mtmlDeviceGetSupportedMpcProfiles);
NOT_SUPPORTED(mtmlDeviceCountSupportedMpcConfigurations);
NOT_SUPPORTED(mtmlDeviceGetSupportedMpcConfigurations);
NOT_SUPPORTED(mtmlDeviceGetMpcConfiguration);
NOT_SUPPORTED(mtmlDeviceGetMpcConfigurationByName);
NOT_SUPPORTED(mtmlDeviceSetMpcConfiguration);
NOT_SUPPORTED(mtmlDeviceCountMpcInstancesByProfileId);
NOT_SUPPORTED(mtmlDeviceGetMpcInstancesByProfileId);
NOT_SUPPORTED(mtmlDeviceCountMpcInstances);
NOT_SUPPORTED(mtmlDeviceGetMpcInstances);
NOT_SUPPORTED(mtmlDeviceGetMpcInstanceByIndex);
NOT_SUPPORTED(mtmlDeviceGetMpcParentDevice);
NOT_SUPPORTED(mtmlDeviceGetMpcProfileInfo);
NOT_SUPPORTED(mtmlDeviceGetMpcInstanceIndex);
NOT_SUPPORTED(mtmlDeviceGetMtLinkSpec);
NOT_SUPPORTED(mtmlDeviceGetMtLinkState);
NOT_SUPPORTED(mtmlDeviceGetMtLinkRemoteDevice);
NOT_SUPPORTED(mtmlDeviceGetMtLinkCapStatus);
NOT_SUPPORTED(mtmlDeviceCountMtLinkShortestPaths);
NOT_SUPPORTED(mtmlDeviceGetMtLinkShortestPaths);
NOT_SUPPORTED(mtmlDeviceCountMtLinkLayouts);
NOT_SUPPORTED(mtmlDeviceGetMtLinkLayouts);
NOT_SUPPORTED(mtmlMemoryGetUsedSystem);
NOT_SUPPORTED(mtmlMemoryGetBandwidth);
NOT_SUPPORTED(mtmlMemoryGetSpeed);
NOT_SUPPORTED(mtmlMemoryGetVendor);
NOT_SUPPORTED(mtmlMemoryGetType);
NOT_SUPPORTED(mtmlMemoryGetEccMode);
NOT_SUPPORTED(mtmlMemoryGetRetiredPagesCount);
NOT_SUPPORTED(mtmlMemoryGetRetiredPages);
NOT_SUPPORTED(mtmlMemoryGetRetiredPagesPendingStatus);
NOT_SUPPORTED(mtmlMemoryGetEccErrorCounter);
NOT_SUPPORTED(mtmlMemoryClearEccErrorCounts);
NOT_SUPPORTED(mtmlDeviceInitVpu);
NOT_SUPPORTED(mtmlDeviceFreeVpu);
NOT_SUPPORTED(mtmlVpuGetClock);
NOT_SUPPORTED(mtmlVpuGetMaxClock);
NOT_SUPPORTED(mtmlVpuGetUtilization);
NOT_SUPPORTED(mtmlVpuGetCodecCapacity);
NOT_SUPPORTED(mtmlVpuGetEncoderSessionStates);
NOT_SUPPORTED(mtmlVpuGetEncoderSessionMetrics);
NOT_SUPPORTED(mtmlVpuGetDecoderSessionStates);
NOT_SUPPORTED(mtmlVpuGetDecoderSessionMetrics);
