// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions of NVML that libmtml calls. NVML comes with the driver, so it is loaded at run time; its types are
// declared here, as in NVIDIA's documentation of the interface, because its header is in none of the packages that the
// build needs.
#pragma once

extern "C" {

typedef struct nvmlDevice_st* nvmlDevice_t;
typedef enum {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_TIMEOUT = 10,
  NVML_ERROR_FUNCTION_NOT_FOUND = 13,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_IN_USE = 19,
  NVML_ERROR_MEMORY = 20,
  NVML_ERROR_UNKNOWN = 999
} nvmlReturn_t;
typedef struct {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
} nvmlMemory_t;
typedef struct {
  unsigned int gpu;
  unsigned int memory;
} nvmlUtilization_t;
typedef struct {
  char busIdLegacy[16];
  unsigned int domain;
  unsigned int bus;
  unsigned int device;
  unsigned int pciDeviceId;
  unsigned int pciSubSystemId;
  char busId[32];
} nvmlPciInfo_t;
typedef struct {
  unsigned int pid;
  unsigned long long usedGpuMemory;
  unsigned int gpuInstanceId;
  unsigned int computeInstanceId;
} nvmlProcessInfo_t;

enum { NVML_TEMPERATURE_GPU = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_AFFINITY_SCOPE_NODE = 0 };
enum { NVML_P2P_CAPS_INDEX_READ = 0, NVML_P2P_STATUS_OK = 0 };

// Each X(name, parameters): a function that returns nvmlReturn_t.
#define MUSA_CUDA_NVML_FUNCTIONS(X) \
  X(nvmlInit_v2, ()) \
  X(nvmlShutdown, ()) \
  X(nvmlSystemGetDriverVersion, (char*, unsigned)) \
  X(nvmlDeviceGetCount_v2, (unsigned*)) \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, nvmlDevice_t*)) \
  X(nvmlDeviceGetName, (nvmlDevice_t, char*, unsigned)) \
  X(nvmlDeviceGetUUID, (nvmlDevice_t, char*, unsigned)) \
  X(nvmlDeviceGetSerial, (nvmlDevice_t, char*, unsigned)) \
  X(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t, nvmlPciInfo_t*)) \
  X(nvmlDeviceGetCurrPcieLinkGeneration, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetMaxPcieLinkGeneration, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetCurrPcieLinkWidth, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetMaxPcieLinkWidth, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t, nvmlMemory_t*)) \
  X(nvmlDeviceGetMemoryBusWidth, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetUtilizationRates, (nvmlDevice_t, nvmlUtilization_t*)) \
  X(nvmlDeviceGetTemperature, (nvmlDevice_t, int, unsigned*)) \
  X(nvmlDeviceGetPowerUsage, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetClockInfo, (nvmlDevice_t, int, unsigned*)) \
  X(nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, int, unsigned*)) \
  X(nvmlDeviceGetNumGpuCores, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetNumFans, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetFanSpeed, (nvmlDevice_t, unsigned*)) \
  X(nvmlDeviceGetComputeRunningProcesses_v3, (nvmlDevice_t, unsigned*, nvmlProcessInfo_t*)) \
  X(nvmlDeviceGetP2PStatus, (nvmlDevice_t, nvmlDevice_t, int, int*)) \
  X(nvmlDeviceGetCpuAffinity, (nvmlDevice_t, unsigned, unsigned long*)) \
  X(nvmlDeviceGetMemoryAffinity, (nvmlDevice_t, unsigned, unsigned long*, unsigned))

} // extern "C"
