// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The management library: devices of the machine and their readings. Independent of MUSA_VISIBLE_DEVICES.
//
// A function whose reading a device does not have returns MTML_ERROR_NOT_SUPPORTED and leaves its results unchanged.
// Handles are valid until mtmlLibraryShutDown. Strings end with a null character; `length` is the size of the buffer.
#ifndef MTML_H
#define MTML_H

#include "host_defines.h"

#define MTML_LIBRARY_VERSION_BUFFER_SIZE 32
#define MTML_DRIVER_VERSION_BUFFER_SIZE 80
#define MTML_DEVICE_NAME_BUFFER_SIZE 32
#define MTML_DEVICE_UUID_BUFFER_SIZE 48
#define MTML_DEVICE_MTBIOS_VERSION_BUFFER_SIZE 64
#define MTML_DEVICE_PATH_BUFFER_SIZE 64
#define MTML_DEVICE_PCI_SBDF_BUFFER_SIZE 32
#define MTML_DEVICE_SERIAL_NUMBER_BUFFER_SIZE 64
#define MTML_MEMORY_VENDOR_BUFFER_SIZE 64

typedef enum {
  MTML_SUCCESS = 0,
  MTML_ERROR_DRIVER_NOT_LOADED = 1,
  MTML_ERROR_DRIVER_FAILURE = 2,
  MTML_ERROR_INVALID_ARGUMENT = 3,
  MTML_ERROR_NOT_SUPPORTED = 4,
  MTML_ERROR_NO_PERMISSION = 5,
  MTML_ERROR_INSUFFICIENT_SIZE = 6,
  MTML_ERROR_NOT_FOUND = 7,
  MTML_ERROR_INSUFFICIENT_MEMORY = 8,
  MTML_ERROR_DRIVER_TOO_OLD = 9,
  MTML_ERROR_DRIVER_TOO_NEW = 10,
  MTML_ERROR_TIMEOUT = 11,
  MTML_ERROR_RESOURCE_IS_BUSY = 12,
  MTML_ERROR_UNKNOWN = 999
} MtmlReturn;

typedef enum { MTML_BRAND_MTT = 0, MTML_BRAND_UNKNOWN = 1, MTML_BRAND_COUNT = 2 } MtmlBrandType;
typedef enum { MTML_MEM_TYPE_LPDDR4 = 0, MTML_MEM_TYPE_GDDR6 = 1 } MtmlMemoryType;
typedef enum {
  MTML_TOPOLOGY_INTERNAL = 0,
  MTML_TOPOLOGY_SINGLE = 1,
  MTML_TOPOLOGY_MULTIPLE = 2,
  MTML_TOPOLOGY_HOSTBRIDGE = 3,
  MTML_TOPOLOGY_NODE = 4,
  MTML_TOPOLOGY_SYSTEM = 5
} MtmlDeviceTopologyLevel;
typedef enum {
  MTML_P2P_STATUS_OK = 0,
  MTML_P2P_STATUS_CHIPSET_NOT_SUPPORTED = 1,
  MTML_P2P_STATUS_GPU_NOT_SUPPORTED = 2,
  MTML_P2P_STATUS_UNKNOWN = 3
} MtmlDeviceP2PStatus;
typedef enum { MTML_P2P_CAPS_READ = 0, MTML_P2P_CAPS_WRITE = 1 } MtmlDeviceP2PCaps;
typedef enum {
  MTML_GPU_ENGINE_GEOMETRY = 0,
  MTML_GPU_ENGINE_2D = 1,
  MTML_GPU_ENGINE_3D = 2,
  MTML_GPU_ENGINE_COMPUTE = 3,
  MTML_GPU_ENGINE_MAX = 4
} MtmlGpuEngine;

typedef struct MtmlLibrary MtmlLibrary;
typedef struct MtmlSystem MtmlSystem;
typedef struct MtmlDevice MtmlDevice;
typedef struct MtmlGpu MtmlGpu;
typedef struct MtmlMemory MtmlMemory;
typedef struct MtmlVpu MtmlVpu;

typedef struct {
  char sbdf[MTML_DEVICE_PCI_SBDF_BUFFER_SIZE]; // segment:bus:device.function
  unsigned int segment;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId; // device id in the upper, vendor id in the lower 16 bits
  unsigned int pciSubsystemId;
  unsigned int busWidth;
  float pciMaxSpeed; // GT/s; 0 if unknown, as all fields below
  float pciCurSpeed;
  unsigned int pciMaxWidth;
  unsigned int pciCurWidth;
  unsigned int pciMaxGen;
  unsigned int pciCurGen;
  int rsvd[6];
} MtmlPciInfo;

typedef struct {
  unsigned int virtCap : 1;
  unsigned int virtRole : 3;
  unsigned int mpcCap : 1;
  unsigned int mpcType : 3;
  unsigned int mtLinkCap : 1;
  unsigned int rsvd : 23;
  unsigned int rsvd2 : 32;
} MtmlDeviceProperty;

// Results of functions that are not supported.
typedef struct MtmlPciSlotInfo MtmlPciSlotInfo;
typedef struct MtmlDispIntfSpec MtmlDispIntfSpec;
typedef struct MtmlVirtType MtmlVirtType;
typedef struct MtmlCodecUtil MtmlCodecUtil;
typedef struct MtmlCodecSessionMetrics MtmlCodecSessionMetrics;
typedef struct MtmlLogConfiguration MtmlLogConfiguration;
typedef struct MtmlMpcProfile MtmlMpcProfile;
typedef struct MtmlMpcConfiguration MtmlMpcConfiguration;
typedef struct MtmlMtLinkSpec MtmlMtLinkSpec;
typedef struct MtmlMtLinkLayout MtmlMtLinkLayout;
typedef struct MtmlPageRetirementCount MtmlPageRetirementCount;
typedef struct MtmlPageRetirement MtmlPageRetirement;

MUSA_EXTERN_C_BEGIN

// ---- library and system
MUSA_PUBLIC const char* mtmlErrorString(MtmlReturn result);
MUSA_PUBLIC MtmlReturn mtmlLibraryInit(MtmlLibrary** library);
MUSA_PUBLIC MtmlReturn mtmlLibraryShutDown(MtmlLibrary* library);
MUSA_PUBLIC MtmlReturn mtmlLibraryGetVersion(const MtmlLibrary* library, char* version, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlLibraryCountDevice(const MtmlLibrary* library, unsigned int* count);
MUSA_PUBLIC MtmlReturn
mtmlLibraryInitDeviceByIndex(const MtmlLibrary* library, unsigned int index, MtmlDevice** device);
MUSA_PUBLIC MtmlReturn mtmlLibraryInitDeviceByUuid(const MtmlLibrary* library, const char* uuid, MtmlDevice** device);
MUSA_PUBLIC MtmlReturn
mtmlLibraryInitDeviceByPciSbdf(const MtmlLibrary* library, const char* sbdf, MtmlDevice** device);
MUSA_PUBLIC MtmlReturn mtmlLibraryFreeDevice(MtmlDevice* device);
MUSA_PUBLIC MtmlReturn mtmlLibraryInitSystem(const MtmlLibrary* library, MtmlSystem** system);
MUSA_PUBLIC MtmlReturn mtmlLibraryFreeSystem(MtmlSystem* system);
MUSA_PUBLIC MtmlReturn mtmlSystemGetDriverVersion(const MtmlSystem* system, char* version, unsigned int length);

// ---- device
MUSA_PUBLIC MtmlReturn mtmlDeviceInitGpu(const MtmlDevice* device, MtmlGpu** gpu);
MUSA_PUBLIC MtmlReturn mtmlDeviceFreeGpu(MtmlGpu* gpu);
MUSA_PUBLIC MtmlReturn mtmlDeviceInitMemory(const MtmlDevice* device, MtmlMemory** memory);
MUSA_PUBLIC MtmlReturn mtmlDeviceFreeMemory(MtmlMemory* memory);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetIndex(const MtmlDevice* device, unsigned int* index);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetName(const MtmlDevice* device, char* name, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetUUID(const MtmlDevice* device, char* uuid, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetBrand(const MtmlDevice* device, MtmlBrandType* brand);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetSerialNumber(const MtmlDevice* device, unsigned int length, char* number);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetPciInfo(const MtmlDevice* device, MtmlPciInfo* info);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetProperty(const MtmlDevice* device, MtmlDeviceProperty* property);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetPowerUsage(const MtmlDevice* device, unsigned int* milliwatts);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountGpuCores(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountFan(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetFanSpeed(const MtmlDevice* device, unsigned int index, unsigned int* percent);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetTopologyLevel(const MtmlDevice* first, const MtmlDevice* second, MtmlDeviceTopologyLevel* level);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetP2PStatus(
    const MtmlDevice* first, const MtmlDevice* second, MtmlDeviceP2PCaps capability, MtmlDeviceP2PStatus* status);
// Bit n of the set: processor n, or NUMA node n. `size`: number of elements of the set.
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetCpuAffinityWithinNode(const MtmlDevice* device, unsigned int size, unsigned long* set);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetMemoryAffinityWithinNode(const MtmlDevice* device, unsigned int size, unsigned long* set);

// ---- GPU and memory; clocks in MHz, utilisations in percent
MUSA_PUBLIC MtmlReturn mtmlGpuGetUtilization(const MtmlGpu* gpu, unsigned int* percent);
MUSA_PUBLIC MtmlReturn mtmlGpuGetEngineUtilization(const MtmlGpu* gpu, MtmlGpuEngine engine, unsigned int* percent);
MUSA_PUBLIC MtmlReturn mtmlGpuGetTemperature(const MtmlGpu* gpu, unsigned int* celsius);
MUSA_PUBLIC MtmlReturn mtmlGpuGetClock(const MtmlGpu* gpu, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlGpuGetMaxClock(const MtmlGpu* gpu, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetTotal(const MtmlMemory* memory, unsigned long long* bytes);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetUsed(const MtmlMemory* memory, unsigned long long* bytes);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetUtilization(const MtmlMemory* memory, unsigned int* percent);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetClock(const MtmlMemory* memory, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetMaxClock(const MtmlMemory* memory, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetBusWidth(const MtmlMemory* memory, unsigned int* bits);

// ---- MTML_ERROR_NOT_SUPPORTED for every device
MUSA_PUBLIC MtmlReturn mtmlLibrarySetMpcConfigurationInBatch(
    const MtmlLibrary* library, unsigned int count, MtmlDevice** devices, unsigned int* configurations);
MUSA_PUBLIC MtmlReturn mtmlLogSetConfiguration(const MtmlLogConfiguration* configuration);
MUSA_PUBLIC MtmlReturn mtmlLogGetConfiguration(MtmlLogConfiguration* configuration);
MUSA_PUBLIC MtmlReturn mtmlDeviceReset(const MtmlDevice* device);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetGpuPath(const MtmlDevice* device, char* path, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetPrimaryPath(const MtmlDevice* device, char* path, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetRenderPath(const MtmlDevice* device, char* path, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetVbiosVersion(const MtmlDevice* device, char* version, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtBiosVersion(const MtmlDevice* device, char* version, unsigned int length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetFanRpm(const MtmlDevice* device, unsigned int index, unsigned int* rpm);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetPcieSlotInfo(const MtmlDevice* device, MtmlPciSlotInfo* info);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountDisplayInterface(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetDisplayInterfaceSpec(const MtmlDevice* device, unsigned int index, MtmlDispIntfSpec* specification);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountSupportedVirtTypes(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetSupportedVirtTypes(const MtmlDevice* device, MtmlVirtType* types, unsigned int count);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountAvailVirtTypes(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetAvailVirtTypes(const MtmlDevice* device, MtmlVirtType* types, unsigned int count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceCountAvailVirtDevices(const MtmlDevice* device, const MtmlVirtType* type, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountActiveVirtDevices(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetActiveVirtDeviceUuids(
    const MtmlDevice* device, char* uuids, unsigned int entry_length, unsigned int entry_count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceCountMaxVirtDevices(const MtmlDevice* device, const MtmlVirtType* type, unsigned int* count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceInitVirtDevice(const MtmlDevice* device, const char* uuid, MtmlDevice** virtual_device);
MUSA_PUBLIC MtmlReturn mtmlDeviceFreeVirtDevice(MtmlDevice* virtual_device);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetVirtType(const MtmlDevice* virtual_device, MtmlVirtType* type);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetPhyDeviceUuid(const MtmlDevice* virtual_device, char* uuid, unsigned int length);
MUSA_PUBLIC MtmlReturn
mtmlDeviceCountDeviceByTopologyLevel(const MtmlDevice* device, MtmlDeviceTopologyLevel level, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetDeviceByTopologyLevel(
    const MtmlDevice* device, MtmlDeviceTopologyLevel level, unsigned int count, MtmlDevice** devices);
MUSA_PUBLIC MtmlReturn mtmlDeviceSetMpcMode(const MtmlDevice* device, unsigned int mode);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcMode(const MtmlDevice* device, unsigned int* mode);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountSupportedMpcProfiles(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetSupportedMpcProfiles(const MtmlDevice* device, unsigned int count, MtmlMpcProfile* profiles);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountSupportedMpcConfigurations(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetSupportedMpcConfigurations(
    const MtmlDevice* device, unsigned int count, MtmlMpcConfiguration* configurations);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcConfiguration(const MtmlDevice* device, MtmlMpcConfiguration* configuration);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetMpcConfigurationByName(const MtmlDevice* device, const char* name, MtmlMpcConfiguration* configuration);
MUSA_PUBLIC MtmlReturn mtmlDeviceSetMpcConfiguration(const MtmlDevice* device, unsigned int configuration);
MUSA_PUBLIC MtmlReturn
mtmlDeviceCountMpcInstancesByProfileId(const MtmlDevice* device, unsigned int profile, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcInstancesByProfileId(
    const MtmlDevice* device, unsigned int profile, unsigned int count, MtmlDevice** instances);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountMpcInstances(const MtmlDevice* device, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcInstances(const MtmlDevice* device, unsigned int count, MtmlDevice** instances);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetMpcInstanceByIndex(const MtmlDevice* device, unsigned int index, MtmlDevice** instance);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcParentDevice(const MtmlDevice* instance, MtmlDevice** parent);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcProfileInfo(const MtmlDevice* instance, MtmlMpcProfile* profile);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMpcInstanceIndex(const MtmlDevice* instance, unsigned int* index);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtLinkSpec(const MtmlDevice* device, MtmlMtLinkSpec* specification);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtLinkState(const MtmlDevice* device, unsigned int link, unsigned int* state);
MUSA_PUBLIC MtmlReturn
mtmlDeviceGetMtLinkRemoteDevice(const MtmlDevice* device, unsigned int link, MtmlDevice** remote);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtLinkCapStatus(
    const MtmlDevice* device, unsigned int link, unsigned int capability, unsigned int* status);
MUSA_PUBLIC MtmlReturn mtmlDeviceCountMtLinkShortestPaths(
    const MtmlDevice* local, const MtmlDevice* remote, unsigned int* count, unsigned int* length);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtLinkShortestPaths(
    const MtmlDevice* local, const MtmlDevice* remote, unsigned int count, unsigned int length, MtmlDevice** paths);
MUSA_PUBLIC MtmlReturn
mtmlDeviceCountMtLinkLayouts(const MtmlDevice* local, const MtmlDevice* remote, unsigned int* count);
MUSA_PUBLIC MtmlReturn mtmlDeviceGetMtLinkLayouts(
    const MtmlDevice* local, const MtmlDevice* remote, unsigned int count, MtmlMtLinkLayout* layouts);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetUsedSystem(const MtmlMemory* memory, unsigned long long* bytes);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetBandwidth(const MtmlMemory* memory, unsigned int* gigabytes_per_second);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetSpeed(const MtmlMemory* memory, unsigned int* megabits_per_second);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetVendor(const MtmlMemory* memory, unsigned int length, char* vendor);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetType(const MtmlMemory* memory, MtmlMemoryType* type);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetEccMode(const MtmlMemory* memory, unsigned int* current, unsigned int* pending);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetRetiredPagesCount(const MtmlMemory* memory, MtmlPageRetirementCount* count);
MUSA_PUBLIC MtmlReturn
mtmlMemoryGetRetiredPages(const MtmlMemory* memory, unsigned int cause, unsigned int count, MtmlPageRetirement* pages);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetRetiredPagesPendingStatus(const MtmlMemory* memory, unsigned int* pending);
MUSA_PUBLIC MtmlReturn mtmlMemoryGetEccErrorCounter(
    const MtmlMemory* memory, unsigned int error, unsigned int counter, unsigned int location,
    unsigned long long* count);
MUSA_PUBLIC MtmlReturn mtmlMemoryClearEccErrorCounts(const MtmlMemory* memory, unsigned int counter);
MUSA_PUBLIC MtmlReturn mtmlDeviceInitVpu(const MtmlDevice* device, MtmlVpu** vpu);
MUSA_PUBLIC MtmlReturn mtmlDeviceFreeVpu(MtmlVpu* vpu);
MUSA_PUBLIC MtmlReturn mtmlVpuGetClock(const MtmlVpu* vpu, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlVpuGetMaxClock(const MtmlVpu* vpu, unsigned int* clock);
MUSA_PUBLIC MtmlReturn mtmlVpuGetUtilization(const MtmlVpu* vpu, MtmlCodecUtil* utilization);
MUSA_PUBLIC MtmlReturn mtmlVpuGetCodecCapacity(const MtmlVpu* vpu, unsigned int* encoders, unsigned int* decoders);
MUSA_PUBLIC MtmlReturn mtmlVpuGetEncoderSessionStates(const MtmlVpu* vpu, int* states, unsigned int length);
MUSA_PUBLIC MtmlReturn
mtmlVpuGetEncoderSessionMetrics(const MtmlVpu* vpu, unsigned int session, MtmlCodecSessionMetrics* metrics);
MUSA_PUBLIC MtmlReturn mtmlVpuGetDecoderSessionStates(const MtmlVpu* vpu, int* states, unsigned int length);
MUSA_PUBLIC MtmlReturn
mtmlVpuGetDecoderSessionMetrics(const MtmlVpu* vpu, unsigned int session, MtmlCodecSessionMetrics* metrics);

MUSA_EXTERN_C_END

#endif
