// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A libnvidia-ml.so.1 with two devices of known readings. The second has no fan and no power sensor.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "nvml.h"

namespace {

int opened = 0;

unsigned index_of(nvmlDevice_t device) { return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)) - 1; }

nvmlReturn_t set(unsigned* to, unsigned value) {
  *to = value;
  return opened > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t text(char* to, unsigned size, const char* value) {
  if (std::strlen(value) >= size) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  std::strcpy(to, value);
  return NVML_SUCCESS;
}

} // namespace

extern "C" {

nvmlReturn_t nvmlInit_v2() {
  const char* status = std::getenv("FAKE_NVML_STATUS");
  if (status != nullptr) {
    return static_cast<nvmlReturn_t>(std::atoi(status));
  }
  ++opened;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlShutdown() {
  --opened;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlSystemGetDriverVersion(char* to, unsigned size) { return text(to, size, "580.1.2"); }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) { return set(count, 2); }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  *device = reinterpret_cast<nvmlDevice_t>(static_cast<uintptr_t>(index) + 1);
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t, char* to, unsigned size) { return text(to, size, "NVIDIA X1"); }
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* to, unsigned size) {
  return text(
      to, size,
      index_of(device) == 0 ? "GPU-00000000-1111-2222-3333-444444444444" : "GPU-99999999-1111-2222-3333-444444444444");
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* info) {
  info->domain = 0;
  info->bus = 0x41 + index_of(device);
  info->device = 0;
  info->pciDeviceId = 0x233510DE;
  info->pciSubSystemId = 0x18BE10DE;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t, unsigned* to) { return set(to, 4); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t, unsigned* to) { return set(to, 5); }
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t, unsigned* to) { return set(to, 8); }
nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t, unsigned* to) { return set(to, 16); }
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  memory->total = 1024ULL << 20;
  memory->used = (100ULL + index_of(device)) << 20;
  memory->free = memory->total - memory->used;
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t, nvmlUtilization_t* rates) {
  *rates = {37, 11};
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t, int sensor, unsigned* to) {
  return sensor == NVML_TEMPERATURE_GPU ? set(to, 54) : NVML_ERROR_INVALID_ARGUMENT;
}
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* to) {
  return index_of(device) == 0 ? set(to, 123450) : NVML_ERROR_NOT_SUPPORTED;
}
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t, int clock, unsigned* to) {
  return set(to, clock == NVML_CLOCK_SM ? 1410 : 1593);
}
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t, int clock, unsigned* to) {
  return set(to, clock == NVML_CLOCK_SM ? 1980 : 2619);
}
nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, unsigned* to) { return set(to, index_of(device) == 0 ? 1 : 0); }
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t, unsigned* to) { return set(to, 30); }
// More processes than the first call has room for, the last one with unknown memory.
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t* infos) {
  const unsigned present = index_of(device) == 0 ? 100 : 0;
  const unsigned room = *count;
  *count = present;
  if (room < present) {
    return NVML_ERROR_INSUFFICIENT_SIZE;
  }
  for (unsigned i = 0; i < present; ++i) {
    infos[i] = {4000000 + i, i + 1 == present ? ~0ULL : (i + 1ULL) << 20, 0, 0};
  }
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t, nvmlDevice_t, int, int* status) {
  *status = 5; // not supported
  return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t, unsigned size, unsigned long* set) {
  std::memset(set, 0, size * sizeof *set);
  set[0] = 0xF0;
  return NVML_SUCCESS;
}

} // extern "C"
