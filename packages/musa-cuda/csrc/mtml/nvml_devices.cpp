// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The NVIDIA GPUs of the machine, as NVML reports them.
#include <dlfcn.h>

#include <array>
#include <string_view>

#include "mtml/device.h"
#include "nvml.h"

namespace mtml {
namespace {

// NVML's functions by name. A function that this driver's library lacks returns NVML_ERROR_FUNCTION_NOT_FOUND.
struct Nvml {
#define MUSA_CUDA_DECLARE(name, parameters) nvmlReturn_t(*name) parameters = nullptr;
  MUSA_CUDA_NVML_FUNCTIONS(MUSA_CUDA_DECLARE)
#undef MUSA_CUDA_DECLARE
};
Nvml nvml;

template <class Function, class... Arguments>
nvmlReturn_t call(Function function, Arguments... arguments) {
  return function != nullptr ? function(arguments...) : NVML_ERROR_FUNCTION_NOT_FOUND;
}

MtmlReturn translated(nvmlReturn_t status) {
  switch (status) {
    case NVML_SUCCESS: return MTML_SUCCESS;
    case NVML_ERROR_INVALID_ARGUMENT: return MTML_ERROR_INVALID_ARGUMENT;
    case NVML_ERROR_FUNCTION_NOT_FOUND:
    case NVML_ERROR_NOT_SUPPORTED: return MTML_ERROR_NOT_SUPPORTED;
    case NVML_ERROR_NO_PERMISSION: return MTML_ERROR_NO_PERMISSION;
    case NVML_ERROR_NOT_FOUND: return MTML_ERROR_NOT_FOUND;
    case NVML_ERROR_INSUFFICIENT_SIZE: return MTML_ERROR_INSUFFICIENT_SIZE;
    case NVML_ERROR_DRIVER_NOT_LOADED: return MTML_ERROR_DRIVER_NOT_LOADED;
    case NVML_ERROR_TIMEOUT: return MTML_ERROR_TIMEOUT;
    case NVML_ERROR_IN_USE: return MTML_ERROR_RESOURCE_IS_BUSY;
    case NVML_ERROR_MEMORY: return MTML_ERROR_INSUFFICIENT_MEMORY;
    case NVML_ERROR_GPU_IS_LOST:
    case NVML_ERROR_UNINITIALIZED: return MTML_ERROR_DRIVER_FAILURE;
    case NVML_ERROR_UNKNOWN: break;
  }
  return MTML_ERROR_UNKNOWN;
}

// NVML writes UUIDs as "GPU-<uuid>".
constexpr std::string_view kUuidPrefix = "GPU-";

class NvmlDevice : public Device {
 public:
  explicit NvmlDevice(nvmlDevice_t handle) : handle_(handle) {
    text(nvml.nvmlDeviceGetName, &name_);
    text(nvml.nvmlDeviceGetUUID, &uuid_);
    if (uuid_.starts_with(kUuidPrefix)) {
      uuid_.erase(0, kUuidPrefix.size());
    }
  }

  std::string name() const override { return name_; }
  std::string uuid() const override { return uuid_; }
  MtmlBrandType brand() const override { return MTML_BRAND_UNKNOWN; }

  MtmlReturn pci(MtmlPciInfo* info) const override {
    nvmlPciInfo_t found = {};
    const nvmlReturn_t status = call(nvml.nvmlDeviceGetPciInfo_v3, handle_, &found);
    if (status != NVML_SUCCESS) {
      return translated(status);
    }
    info->segment = found.domain;
    info->bus = found.bus;
    info->device = found.device;
    info->pciDeviceId = found.pciDeviceId;
    info->pciSubsystemId = found.pciSubSystemId;
    // A device without a PCIe link leaves them 0.
    call(nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle_, &info->pciCurGen);
    call(nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle_, &info->pciMaxGen);
    call(nvml.nvmlDeviceGetCurrPcieLinkWidth, handle_, &info->pciCurWidth);
    call(nvml.nvmlDeviceGetMaxPcieLinkWidth, handle_, &info->pciMaxWidth);
    return MTML_SUCCESS;
  }

  MtmlReturn serial(std::string* number) const override { return text(nvml.nvmlDeviceGetSerial, number); }

  MtmlReturn memory(uint64_t* total, uint64_t* used) override {
    nvmlMemory_t found = {};
    const nvmlReturn_t status = call(nvml.nvmlDeviceGetMemoryInfo, handle_, &found);
    if (status == NVML_SUCCESS) {
      *total = found.total;
      *used = found.used;
    }
    return translated(status);
  }

  MtmlReturn reading(Reading reading, unsigned* value) override {
    nvmlUtilization_t rates = {};
    nvmlReturn_t status = NVML_ERROR_NOT_SUPPORTED;
    switch (reading) {
      case Reading::Utilization:
      case Reading::MemoryUtilization:
        status = call(nvml.nvmlDeviceGetUtilizationRates, handle_, &rates);
        if (status == NVML_SUCCESS) {
          *value = reading == Reading::Utilization ? rates.gpu : rates.memory;
        }
        break;
      case Reading::Temperature:
        status = call(nvml.nvmlDeviceGetTemperature, handle_, NVML_TEMPERATURE_GPU, value);
        break;
      case Reading::Power: status = call(nvml.nvmlDeviceGetPowerUsage, handle_, value); break;
      case Reading::Clock: status = call(nvml.nvmlDeviceGetClockInfo, handle_, NVML_CLOCK_SM, value); break;
      case Reading::MaxClock: status = call(nvml.nvmlDeviceGetMaxClockInfo, handle_, NVML_CLOCK_SM, value); break;
      case Reading::MemoryClock: status = call(nvml.nvmlDeviceGetClockInfo, handle_, NVML_CLOCK_MEM, value); break;
      case Reading::MemoryMaxClock:
        status = call(nvml.nvmlDeviceGetMaxClockInfo, handle_, NVML_CLOCK_MEM, value);
        break;
      case Reading::MemoryBusWidth: status = call(nvml.nvmlDeviceGetMemoryBusWidth, handle_, value); break;
      case Reading::Cores: status = call(nvml.nvmlDeviceGetNumGpuCores, handle_, value); break;
      case Reading::Fans: status = call(nvml.nvmlDeviceGetNumFans, handle_, value); break;
      case Reading::FanSpeed: status = call(nvml.nvmlDeviceGetFanSpeed, handle_, value); break;
    }
    return translated(status);
  }

  MtmlReturn processes(std::vector<MusaMtmlProcess>* found) override {
    std::vector<nvmlProcessInfo_t> infos(64);
    unsigned count = 0;
    nvmlReturn_t status = NVML_SUCCESS;
    do {
      infos.resize(infos.size() + count);
      count = static_cast<unsigned>(infos.size());
      status = call(nvml.nvmlDeviceGetComputeRunningProcesses_v3, handle_, &count, infos.data());
    } while (status == NVML_ERROR_INSUFFICIENT_SIZE); // a process has started since; `count` is the new number
    if (status == NVML_SUCCESS) {
      for (unsigned i = 0; i < count; ++i) {
        found->push_back({infos[i].pid, infos[i].usedGpuMemory}); // all ones if unknown, in both interfaces
      }
    }
    return translated(status);
  }

  MtmlReturn peer_access(const Device& other) const override {
    int peer = NVML_P2P_STATUS_OK;
    const nvmlReturn_t status = call(
        nvml.nvmlDeviceGetP2PStatus, handle_, static_cast<const NvmlDevice&>(other).handle_, NVML_P2P_CAPS_INDEX_READ,
        &peer);
    if (status != NVML_SUCCESS) {
      return translated(status);
    }
    return peer == NVML_P2P_STATUS_OK ? MTML_SUCCESS : MTML_ERROR_NOT_SUPPORTED;
  }

  MtmlReturn processor_set(std::vector<unsigned long>* set) const override {
    set->resize(16);
    return translated(call(nvml.nvmlDeviceGetCpuAffinity, handle_, static_cast<unsigned>(set->size()), set->data()));
  }

  MtmlReturn memory_node_set(std::vector<unsigned long>* set) const override {
    set->resize(16);
    return translated(call(
        nvml.nvmlDeviceGetMemoryAffinity, handle_, static_cast<unsigned>(set->size()), set->data(),
        unsigned{NVML_AFFINITY_SCOPE_NODE}));
  }

 private:
  template <class Function>
  MtmlReturn text(Function function, std::string* value) const {
    std::array<char, 96> buffer = {};
    const nvmlReturn_t status = call(function, handle_, buffer.data(), static_cast<unsigned>(buffer.size()));
    if (status == NVML_SUCCESS) {
      *value = buffer.data();
    }
    return translated(status);
  }

  nvmlDevice_t handle_;
  std::string name_;
  std::string uuid_;
};

} // namespace

MtmlReturn open_devices(std::vector<std::unique_ptr<Device>>* devices, std::string* driver) {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL); // not closed: threads of it may still run
  if (library == nullptr) {
    return MTML_ERROR_DRIVER_NOT_LOADED;
  }
#define MUSA_CUDA_FIND(name, parameters) \
  nvml.name = reinterpret_cast<nvmlReturn_t(*) parameters>(dlsym(library, #name));
  MUSA_CUDA_NVML_FUNCTIONS(MUSA_CUDA_FIND)
#undef MUSA_CUDA_FIND
  if (const nvmlReturn_t status = call(nvml.nvmlInit_v2); status != NVML_SUCCESS) {
    return translated(status);
  }
  std::array<char, 80> version = {};
  if (call(nvml.nvmlSystemGetDriverVersion, version.data(), static_cast<unsigned>(version.size())) == NVML_SUCCESS) {
    *driver = version.data();
  }
  unsigned count = 0;
  nvmlReturn_t status = call(nvml.nvmlDeviceGetCount_v2, &count);
  for (unsigned index = 0; status == NVML_SUCCESS && index < count; ++index) {
    nvmlDevice_t handle = nullptr;
    status = call(nvml.nvmlDeviceGetHandleByIndex_v2, index, &handle);
    if (status == NVML_SUCCESS) {
      devices->push_back(std::make_unique<NvmlDevice>(handle));
    } else if (status == NVML_ERROR_NO_PERMISSION) {
      status = NVML_SUCCESS; // a container may be given some of the devices
    }
  }
  if (status != NVML_SUCCESS) {
    devices->clear();
    call(nvml.nvmlShutdown);
  }
  return translated(status);
}

void close_devices() { call(nvml.nvmlShutdown); }

} // namespace mtml
