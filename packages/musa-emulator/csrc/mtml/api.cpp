// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions of mtml.h that return a value for some device: checks of handles and arguments.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>

#include "mtml/device.h"

using mtml::Reading;

// Handles of the parts of a device are addresses in its entry.
struct MtmlGpu {
  const MtmlDevice* device;
};
struct MtmlMemory {
  const MtmlDevice* device;
};
struct MtmlDevice {
  unsigned index;
  std::unique_ptr<mtml::Device> source;
  MtmlGpu gpu{this};
  MtmlMemory memory{this};

  MtmlDevice(unsigned i, std::unique_ptr<mtml::Device> s) : index(i), source(std::move(s)) {}
};
struct MtmlSystem {};
struct MtmlLibrary {
  unsigned opened = 0; // calls of mtmlLibraryInit without their mtmlLibraryShutDown
  std::vector<std::unique_ptr<MtmlDevice>> devices;
  std::string driver;
  MtmlSystem system;
};

namespace {

constexpr const char* kVersion = "2.2.0"; // of the interface

std::mutex mutex; // guards the library and all readings
// Never destroyed: a handle may be used while the process exits.
MtmlLibrary& library() {
  static MtmlLibrary* instance = new MtmlLibrary;
  return *instance;
}

MtmlReturn write_text(std::string_view text, char* buffer, unsigned length) {
  if (buffer == nullptr) {
    return MTML_ERROR_INVALID_ARGUMENT;
  }
  if (text.size() >= length) {
    return MTML_ERROR_INSUFFICIENT_SIZE;
  }
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return MTML_SUCCESS;
}

// Calls `body` with the lock held, if no pointer is null. Exceptions must not reach C callers.
template <class Body, class... Pointer>
MtmlReturn guarded(Body&& body, const Pointer*... pointers) {
  if (((pointers == nullptr) || ...)) {
    return MTML_ERROR_INVALID_ARGUMENT;
  }
  try {
    const std::lock_guard<std::mutex> lock(mutex);
    return body();
  } catch (const std::bad_alloc&) {
    return MTML_ERROR_INSUFFICIENT_MEMORY;
  } catch (...) {
    return MTML_ERROR_UNKNOWN;
  }
}

// As guarded(), for functions of the open library.
template <class Body, class... Pointer>
MtmlReturn of_library(const MtmlLibrary* handle, Body&& body, const Pointer*... pointers) {
  return guarded([&] { return handle->opened == 0 ? MTML_ERROR_INVALID_ARGUMENT : body(); }, handle, pointers...);
}

MtmlReturn read(const MtmlDevice* device, Reading reading, unsigned* value) {
  return guarded([&] { return device->source->reading(reading, value); }, device, value);
}

template <class Part>
MtmlReturn read_part(const Part* part, Reading reading, unsigned* value) {
  return part == nullptr ? MTML_ERROR_INVALID_ARGUMENT : read(part->device, reading, value);
}

template <class Matches>
MtmlReturn find_device(const MtmlLibrary* handle, MtmlDevice** device, Matches&& matches) {
  for (const auto& candidate : handle->devices) {
    if (matches(*candidate)) {
      *device = candidate.get();
      return MTML_SUCCESS;
    }
  }
  return MTML_ERROR_NOT_FOUND;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

// Writes the words of a set; those that the source lacks are 0.
MtmlReturn read_set(
    const MtmlDevice* device, MtmlReturn (mtml::Device::*source)(std::vector<unsigned long>*) const, unsigned size,
    unsigned long* to) {
  return guarded(
      [&] {
        std::vector<unsigned long> found;
        const MtmlReturn status = (device->source.get()->*source)(&found);
        for (unsigned i = 0; status == MTML_SUCCESS && i < size; ++i) {
          to[i] = i < found.size() ? found[i] : 0;
        }
        return status;
      },
      device);
}

struct Bytes {
  uint64_t total = 0, used = 0;
};
MtmlReturn read_memory(const MtmlMemory* memory, uint64_t Bytes::* which, unsigned long long* bytes) {
  return guarded(
      [&] {
        Bytes found;
        const MtmlReturn status = memory->device->source->memory(&found.total, &found.used);
        if (status == MTML_SUCCESS) {
          *bytes = found.*which;
        }
        return status;
      },
      memory, bytes);
}

} // namespace

const char* mtmlErrorString(MtmlReturn result) {
  switch (result) {
    case MTML_SUCCESS: return "Success";
    case MTML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case MTML_ERROR_DRIVER_FAILURE: return "Driver Failure";
    case MTML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case MTML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case MTML_ERROR_NO_PERMISSION: return "No Permission";
    case MTML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case MTML_ERROR_NOT_FOUND: return "Not Found";
    case MTML_ERROR_INSUFFICIENT_MEMORY: return "Insufficient Memory";
    case MTML_ERROR_DRIVER_TOO_OLD: return "Driver Too Old";
    case MTML_ERROR_DRIVER_TOO_NEW: return "Driver Too New";
    case MTML_ERROR_TIMEOUT: return "Timeout";
    case MTML_ERROR_RESOURCE_IS_BUSY: return "Resource Is Busy";
    case MTML_ERROR_UNKNOWN: break;
  }
  return "Unknown Error";
}

MtmlReturn mtmlLibraryInit(MtmlLibrary** handle) {
  return guarded(
      [&] {
        MtmlLibrary& shared = library();
        if (shared.opened == 0) {
          std::vector<std::unique_ptr<mtml::Device>> found;
          if (const MtmlReturn status = mtml::open_devices(&found, &shared.driver); status != MTML_SUCCESS) {
            return status;
          }
          for (auto& device : found) {
            const auto index = static_cast<unsigned>(shared.devices.size());
            shared.devices.push_back(std::make_unique<MtmlDevice>(index, std::move(device)));
          }
        }
        ++shared.opened;
        *handle = &shared;
        return MTML_SUCCESS;
      },
      handle);
}

MtmlReturn mtmlLibraryShutDown(MtmlLibrary* handle) {
  return of_library(handle, [&] {
    if (--handle->opened == 0) {
      handle->devices.clear();
      mtml::close_devices();
    }
    return MTML_SUCCESS;
  });
}

MtmlReturn mtmlLibraryGetVersion(const MtmlLibrary* handle, char* version, unsigned int length) {
  return of_library(handle, [&] { return write_text(kVersion, version, length); });
}

MtmlReturn mtmlLibraryCountDevice(const MtmlLibrary* handle, unsigned int* count) {
  return of_library(
      handle,
      [&] {
        *count = static_cast<unsigned>(handle->devices.size());
        return MTML_SUCCESS;
      },
      count);
}

MtmlReturn mtmlLibraryInitDeviceByIndex(const MtmlLibrary* handle, unsigned int index, MtmlDevice** device) {
  return of_library(
      handle,
      [&] { return find_device(handle, device, [index](const MtmlDevice& entry) { return entry.index == index; }); },
      device);
}

MtmlReturn mtmlLibraryInitDeviceByUuid(const MtmlLibrary* handle, const char* uuid, MtmlDevice** device) {
  return of_library(
      handle,
      [&] {
        return find_device(handle, device, [uuid](const MtmlDevice& entry) {
          return equal_ignoring_case(entry.source->uuid(), uuid);
        });
      },
      uuid, device);
}

MtmlReturn mtmlLibraryInitDeviceByPciSbdf(const MtmlLibrary* handle, const char* sbdf, MtmlDevice** device) {
  return of_library(
      handle,
      [&] {
        unsigned segment = 0;
        unsigned bus = 0;
        unsigned slot = 0;
        if (std::sscanf(sbdf, "%x:%x:%x", &segment, &bus, &slot) != 3) {
          return MTML_ERROR_INVALID_ARGUMENT;
        }
        return find_device(handle, device, [&](const MtmlDevice& entry) {
          MtmlPciInfo info = {};
          return entry.source->pci(&info) == MTML_SUCCESS && info.segment == segment && info.bus == bus &&
              info.device == slot;
        });
      },
      sbdf, device);
}

MtmlReturn mtmlLibraryFreeDevice(MtmlDevice* device) {
  return guarded([] { return MTML_SUCCESS; }, device);
}

MtmlReturn mtmlLibraryInitSystem(const MtmlLibrary* handle, MtmlSystem** system) {
  return of_library(
      handle,
      [&] {
        *system = &library().system;
        return MTML_SUCCESS;
      },
      system);
}

MtmlReturn mtmlLibraryFreeSystem(MtmlSystem* system) {
  return guarded([] { return MTML_SUCCESS; }, system);
}

MtmlReturn mtmlSystemGetDriverVersion(const MtmlSystem* system, char* version, unsigned int length) {
  return guarded([&] { return write_text(library().driver, version, length); }, system);
}

MtmlReturn mtmlDeviceInitGpu(const MtmlDevice* device, MtmlGpu** gpu) {
  return guarded(
      [&] {
        *gpu = const_cast<MtmlGpu*>(&device->gpu);
        return MTML_SUCCESS;
      },
      device, gpu);
}

MtmlReturn mtmlDeviceFreeGpu(MtmlGpu* gpu) {
  return guarded([] { return MTML_SUCCESS; }, gpu);
}

MtmlReturn mtmlDeviceInitMemory(const MtmlDevice* device, MtmlMemory** memory) {
  return guarded(
      [&] {
        *memory = const_cast<MtmlMemory*>(&device->memory);
        return MTML_SUCCESS;
      },
      device, memory);
}

MtmlReturn mtmlDeviceFreeMemory(MtmlMemory* memory) {
  return guarded([] { return MTML_SUCCESS; }, memory);
}

MtmlReturn mtmlDeviceGetIndex(const MtmlDevice* device, unsigned int* index) {
  return guarded(
      [&] {
        *index = device->index;
        return MTML_SUCCESS;
      },
      device, index);
}

MtmlReturn mtmlDeviceGetName(const MtmlDevice* device, char* name, unsigned int length) {
  return guarded([&] { return write_text(device->source->name(), name, length); }, device);
}

MtmlReturn mtmlDeviceGetUUID(const MtmlDevice* device, char* uuid, unsigned int length) {
  return guarded([&] { return write_text(device->source->uuid(), uuid, length); }, device);
}

MtmlReturn mtmlDeviceGetBrand(const MtmlDevice* device, MtmlBrandType* brand) {
  return guarded(
      [&] {
        *brand = device->source->brand();
        return MTML_SUCCESS;
      },
      device, brand);
}

MtmlReturn mtmlDeviceGetSerialNumber(const MtmlDevice* device, unsigned int length, char* number) {
  return guarded(
      [&] {
        std::string text;
        const MtmlReturn status = device->source->serial(&text);
        return status == MTML_SUCCESS ? write_text(text, number, length) : status;
      },
      device);
}

MtmlReturn mtmlDeviceGetPciInfo(const MtmlDevice* device, MtmlPciInfo* info) {
  return guarded(
      [&] {
        MtmlPciInfo found = {};
        const MtmlReturn status = device->source->pci(&found);
        if (status == MTML_SUCCESS) {
          std::snprintf(found.sbdf, sizeof found.sbdf, "%08x:%02x:%02x.0", found.segment, found.bus, found.device);
          *info = found;
        }
        return status;
      },
      device, info);
}

// No device supports virtualization, MPC or MTLink.
MtmlReturn mtmlDeviceGetProperty(const MtmlDevice* device, MtmlDeviceProperty* property) {
  return guarded(
      [&] {
        *property = {};
        return MTML_SUCCESS;
      },
      device, property);
}

MtmlReturn mtmlDeviceGetPowerUsage(const MtmlDevice* device, unsigned int* milliwatts) {
  return read(device, Reading::Power, milliwatts);
}

MtmlReturn mtmlDeviceCountGpuCores(const MtmlDevice* device, unsigned int* count) {
  return read(device, Reading::Cores, count);
}

MtmlReturn mtmlDeviceCountFan(const MtmlDevice* device, unsigned int* count) {
  return read(device, Reading::Fans, count);
}

MtmlReturn mtmlDeviceGetFanSpeed(const MtmlDevice* device, unsigned int index, unsigned int* percent) {
  unsigned fans = 0;
  if (const MtmlReturn status = read(device, Reading::Fans, &fans); status != MTML_SUCCESS) {
    return status;
  }
  return index < fans ? read(device, Reading::FanSpeed, percent) : MTML_ERROR_INVALID_ARGUMENT;
}

MtmlReturn mtmlDeviceGetTopologyLevel(
    const MtmlDevice* first, const MtmlDevice* second, MtmlDeviceTopologyLevel* level) {
  return guarded(
      [&] {
        if (first != second) {
          return MTML_ERROR_NOT_SUPPORTED;
        }
        *level = MTML_TOPOLOGY_INTERNAL;
        return MTML_SUCCESS;
      },
      first, second, level);
}

MtmlReturn mtmlDeviceGetP2PStatus(
    const MtmlDevice* first, const MtmlDevice* second, MtmlDeviceP2PCaps, MtmlDeviceP2PStatus* status) {
  return guarded(
      [&] {
        const MtmlReturn access = first->source->peer_access(*second->source);
        if (access == MTML_SUCCESS) {
          *status = MTML_P2P_STATUS_OK;
        }
        return access;
      },
      first, second, status);
}

MtmlReturn mtmlDeviceGetCpuAffinityWithinNode(const MtmlDevice* device, unsigned int size, unsigned long* set) {
  return read_set(device, &mtml::Device::processor_set, size, set);
}

MtmlReturn mtmlDeviceGetMemoryAffinityWithinNode(const MtmlDevice* device, unsigned int size, unsigned long* set) {
  return read_set(device, &mtml::Device::memory_node_set, size, set);
}

MtmlReturn mtmlGpuGetUtilization(const MtmlGpu* gpu, unsigned int* percent) {
  return read_part(gpu, Reading::Utilization, percent);
}

MtmlReturn mtmlGpuGetEngineUtilization(const MtmlGpu* gpu, MtmlGpuEngine engine, unsigned int* percent) {
  return engine == MTML_GPU_ENGINE_COMPUTE ? read_part(gpu, Reading::Utilization, percent) : MTML_ERROR_NOT_SUPPORTED;
}

MtmlReturn mtmlGpuGetTemperature(const MtmlGpu* gpu, unsigned int* celsius) {
  return read_part(gpu, Reading::Temperature, celsius);
}

MtmlReturn mtmlGpuGetClock(const MtmlGpu* gpu, unsigned int* clock) { return read_part(gpu, Reading::Clock, clock); }

MtmlReturn mtmlGpuGetMaxClock(const MtmlGpu* gpu, unsigned int* clock) {
  return read_part(gpu, Reading::MaxClock, clock);
}

MtmlReturn mtmlMemoryGetTotal(const MtmlMemory* memory, unsigned long long* bytes) {
  return read_memory(memory, &Bytes::total, bytes);
}

MtmlReturn mtmlMemoryGetUsed(const MtmlMemory* memory, unsigned long long* bytes) {
  return read_memory(memory, &Bytes::used, bytes);
}

MtmlReturn mtmlMemoryGetUtilization(const MtmlMemory* memory, unsigned int* percent) {
  return read_part(memory, Reading::MemoryUtilization, percent);
}

MtmlReturn mtmlMemoryGetClock(const MtmlMemory* memory, unsigned int* clock) {
  return read_part(memory, Reading::MemoryClock, clock);
}

MtmlReturn mtmlMemoryGetMaxClock(const MtmlMemory* memory, unsigned int* clock) {
  return read_part(memory, Reading::MemoryMaxClock, clock);
}

MtmlReturn mtmlMemoryGetBusWidth(const MtmlMemory* memory, unsigned int* bits) {
  return read_part(memory, Reading::MemoryBusWidth, bits);
}

MtmlReturn musaMtmlDeviceGetProcesses(const MtmlDevice* device, unsigned int* count, MusaMtmlProcess* processes) {
  return guarded(
      [&] {
        std::vector<MusaMtmlProcess> found;
        if (const MtmlReturn status = device->source->processes(&found); status != MTML_SUCCESS) {
          return status;
        }
        const bool enough = found.size() <= *count;
        if (enough && !found.empty()) {
          if (processes == nullptr) {
            return MTML_ERROR_INVALID_ARGUMENT;
          }
          std::copy(found.begin(), found.end(), processes);
        }
        *count = static_cast<unsigned>(found.size());
        return enough ? MTML_SUCCESS : MTML_ERROR_INSUFFICIENT_SIZE;
      },
      device, count);
}
