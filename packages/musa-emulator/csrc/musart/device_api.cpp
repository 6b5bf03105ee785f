// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <cstdio>
#include <cstring>

#include "api_support.h"
#include "engine/lifecycle.h"
#include "engine/memory.h"

using namespace musa_emulator;

musaError_t musaGetDeviceCount(int* count) {
  return api<"musaGetDeviceCount", kNeedsNoDevice>([&] {
    if (count == nullptr) {
      return musaErrorInvalidValue;
    }
    *count = device_count();
    return *count > 0 ? musaSuccess : engine().config.error;
  });
}

musaError_t musaGetDevice(int* device) {
  return api<"musaGetDevice", kSurvivesLoss>([&] {
    if (device == nullptr) {
      return musaErrorInvalidValue;
    }
    *device = thread_state().device;
    return musaSuccess;
  });
}

musaError_t musaSetDevice(int device) {
  return api<"musaSetDevice", kNeedsNoDevice>([&] {
    if (engine().config.error != musaSuccess) {
      return engine().config.error;
    }
    if (find_device(device) == nullptr) {
      return musaErrorInvalidDevice;
    }
    thread_state().device = device;
    return musaSuccess;
  });
}

musaError_t musaSetDeviceFlags(unsigned int flags) {
  return api<"musaSetDeviceFlags">([&] {
    Lock lock(engine().mutex);
    find_device(thread_state().device)->flags = flags;
    return musaSuccess;
  });
}

musaError_t musaGetDeviceProperties(musaDeviceProp* properties, int device) {
  return api<"musaGetDeviceProperties", kSurvivesLoss>([&] {
    const Device* found = find_device(device);
    if (properties == nullptr) {
      return musaErrorInvalidValue;
    }
    if (found == nullptr) {
      return musaErrorInvalidDevice;
    }
    *properties = found->properties;
    return musaSuccess;
  });
}

musaError_t musaDeviceGetAttribute(int* value, musaDeviceAttr attribute, int device) {
  return api<"musaDeviceGetAttribute", kSurvivesLoss>([&] {
    const Device* found = find_device(device);
    if (value == nullptr) {
      return musaErrorInvalidValue;
    }
    return found != nullptr ? device_attribute(*found, attribute, value) : musaErrorInvalidDevice;
  });
}

musaError_t musaDeviceSynchronize(void) {
  return api<"musaDeviceSynchronize">([&] { return synchronize_device(*current_device()); });
}

musaError_t musaDeviceReset(void) {
  return api<"musaDeviceReset", kNeedsNoDevice>([&] {
    Device* device = find_device(thread_state().device);
    return device != nullptr ? reset_device(*device) : engine().config.error;
  });
}

// Limits have no effect: the host's memory is used.
musaError_t musaDeviceSetLimit(musaLimit limit, size_t) {
  return api<"musaDeviceSetLimit", kUnsafeInCapture>([&] {
    switch (limit) {
      case musaLimitStackSize:
      case musaLimitPrintfFifoSize:
      case musaLimitMallocHeapSize:
      case musaLimitDevRuntimeSyncDepth:
      case musaLimitDevRuntimePendingLaunchCount:
      case musaLimitPersistingL2CacheSize: return musaSuccess;
      default: return musaErrorUnsupportedLimit;
    }
  });
}

// Accepted without effect: shared memory has no banks here.
musaError_t musaDeviceSetSharedMemConfig(musaSharedMemConfig) {
  return api<"musaDeviceSetSharedMemConfig">([] { return musaSuccess; });
}

musaError_t musaCtxResetPersistingL2Cache(void) {
  return api<"musaCtxResetPersistingL2Cache">([] { return musaSuccess; });
}

musaError_t musaDeviceGetPCIBusId(char* bus_id, int length, int device) {
  return api<"musaDeviceGetPCIBusId">([&] {
    const Device* found = find_device(device);
    if (found == nullptr) {
      return musaErrorInvalidDevice;
    }
    if (bus_id == nullptr || length < 13) {
      return musaErrorInvalidValue;
    }
    const musaDeviceProp& p = found->properties;
    std::snprintf(bus_id, static_cast<size_t>(length), "%04x:%02x:%02x.0", p.pciDomainID, p.pciBusID, p.pciDeviceID);
    return musaSuccess;
  });
}

musaError_t musaDeviceGetByPCIBusId(int* device, const char* bus_id) {
  return api<"musaDeviceGetByPCIBusId">([&] {
    unsigned domain = 0;
    unsigned bus = 0;
    unsigned slot = 0;
    if (device == nullptr || bus_id == nullptr) {
      return musaErrorInvalidValue;
    }
    if (std::sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3) {
      domain = 0;
      if (std::sscanf(bus_id, "%x:%x", &bus, &slot) != 2) {
        return musaErrorInvalidValue;
      }
    }
    for (int i = 0; i < device_count(); ++i) {
      const musaDeviceProp& p = find_device(i)->properties;
      if (static_cast<unsigned>(p.pciDomainID) == domain && static_cast<unsigned>(p.pciBusID) == bus &&
          static_cast<unsigned>(p.pciDeviceID) == slot) {
        *device = i;
        return musaSuccess;
      }
    }
    return musaErrorInvalidDevice;
  });
}

musaError_t musaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return api<"musaDeviceGetStreamPriorityRange">([&] {
    if (least != nullptr) {
      *least = kLeastPriority;
    }
    if (greatest != nullptr) {
      *greatest = kGreatestPriority;
    }
    return musaSuccess;
  });
}

musaError_t musaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return api<"musaDeviceCanAccessPeer">([&] {
    if (can_access == nullptr) {
      return musaErrorInvalidValue;
    }
    if (find_device(device) == nullptr || find_device(peer) == nullptr) {
      return musaErrorInvalidDevice;
    }
    *can_access = device != peer ? 1 : 0;
    return musaSuccess;
  });
}

musaError_t musaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return api<"musaDeviceEnablePeerAccess">([&] {
    if (flags != 0) {
      return musaErrorInvalidValue;
    }
    Device* device = current_device();
    if (find_device(peer) == nullptr || peer == device->ordinal) {
      return musaErrorInvalidDevice;
    }
    Lock lock(engine().mutex);
    return device->peers.insert(peer).second ? musaSuccess : musaErrorPeerAccessAlreadyEnabled;
  });
}

musaError_t musaDeviceDisablePeerAccess(int peer) {
  return api<"musaDeviceDisablePeerAccess">([&] {
    if (find_device(peer) == nullptr) {
      return musaErrorInvalidDevice;
    }
    Lock lock(engine().mutex);
    return current_device()->peers.erase(peer) != 0 ? musaSuccess : musaErrorPeerAccessNotEnabled;
  });
}

musaError_t musaDriverGetVersion(int* version) {
  return api<"musaDriverGetVersion", kNeedsNoDevice>([&] {
    if (version == nullptr) {
      return musaErrorInvalidValue;
    }
    *version = kVersion;
    return musaSuccess;
  });
}

musaError_t musaRuntimeGetVersion(int* version) {
  return api<"musaRuntimeGetVersion", kNeedsNoDevice>([&] {
    if (version == nullptr) {
      return musaErrorInvalidValue;
    }
    *version = kVersion;
    return musaSuccess;
  });
}
