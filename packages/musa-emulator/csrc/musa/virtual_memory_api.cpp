// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's virtual memory management: argument checks. The implementation is in engine/virtual_memory.h.
#include "engine/virtual_memory.h"

#include <climits>

#include "driver_support.h"
#include "engine/device.h"

using namespace musa_emulator;

namespace {

// Fails if the device has no virtual memory management.
template <ApiName Name, unsigned Traits = kOrdinary, class Body>
MUresult virtual_memory_api(Body&& body) {
  return driver_api<Name, Traits>(
      [&]() -> musaError_t { return engine().config.virtual_memory ? body() : musaErrorNotSupported; });
}

musaError_t check_location(const MUmemLocation& location) {
  if (location.type != MU_MEM_LOCATION_TYPE_DEVICE) {
    return musaErrorInvalidValue;
  }
  return find_device(location.id) != nullptr ? musaSuccess : musaErrorInvalidDevice;
}

musaError_t check_prop(const MUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != MU_MEM_ALLOCATION_TYPE_PINNED || prop->win32HandleMetaData != nullptr) {
    return musaErrorInvalidValue;
  }
  if (prop->requestedHandleTypes != MU_MEM_HANDLE_TYPE_NONE &&
      prop->requestedHandleTypes != MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
    return musaErrorNotSupported;
  }
  return check_location(prop->location);
}

} // namespace

MUresult muMemGetAllocationGranularity(
    size_t* granularity, const MUmemAllocationProp* prop, MUmemAllocationGranularity_flags option) {
  return virtual_memory_api<"muMemGetAllocationGranularity">([&] {
    if (granularity == nullptr ||
        (option != MU_MEM_ALLOC_GRANULARITY_MINIMUM && option != MU_MEM_ALLOC_GRANULARITY_RECOMMENDED)) {
      return musaErrorInvalidValue;
    }
    if (const musaError_t status = check_prop(prop); status != musaSuccess) {
      return status;
    }
    *granularity = kGranularity;
    return musaSuccess;
  });
}

MUresult muMemAddressReserve(
    MUdeviceptr* pointer, size_t size, size_t alignment, MUdeviceptr, unsigned long long flags) {
  // The requested address is a hint, and is ignored.
  return virtual_memory_api<"muMemAddressReserve">([&] {
    if (pointer == nullptr || flags != 0) {
      return musaErrorInvalidValue;
    }
    uintptr_t address = 0;
    const musaError_t status = reserve_addresses(size, alignment, &address);
    if (status == musaSuccess) {
      *pointer = address;
    }
    return status;
  });
}

MUresult muMemAddressFree(MUdeviceptr pointer, size_t size) {
  return virtual_memory_api<"muMemAddressFree", kReleases>([&] { return free_addresses(pointer, size); });
}

MUresult muMemCreate(
    MUmemGenericAllocationHandle* handle, size_t size, const MUmemAllocationProp* prop, unsigned long long flags) {
  return virtual_memory_api<"muMemCreate">([&] {
    if (handle == nullptr || flags != 0) {
      return musaErrorInvalidValue;
    }
    if (const musaError_t status = check_prop(prop); status != musaSuccess) {
      return status;
    }
    uint64_t created = 0;
    const musaError_t status = create_physical(
        prop->location.id, size, prop->requestedHandleTypes == MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, &created);
    if (status == musaSuccess) {
      *handle = created;
    }
    return status;
  });
}

MUresult muMemRelease(MUmemGenericAllocationHandle handle) {
  return virtual_memory_api<"muMemRelease", kReleases>([&] { return release_physical(handle); });
}

MUresult muMemMap(
    MUdeviceptr pointer, size_t size, size_t offset, MUmemGenericAllocationHandle handle, unsigned long long flags) {
  return virtual_memory_api<"muMemMap">(
      [&] { return flags == 0 ? map_physical(pointer, size, offset, handle) : musaErrorInvalidValue; });
}

MUresult muMemUnmap(MUdeviceptr pointer, size_t size) {
  return virtual_memory_api<"muMemUnmap", kReleases>([&] { return unmap_addresses(pointer, size); });
}

MUresult muMemSetAccess(MUdeviceptr pointer, size_t size, const MUmemAccessDesc* desc, size_t count) {
  return virtual_memory_api<"muMemSetAccess">([&] {
    if (desc == nullptr) {
      return musaErrorInvalidValue;
    }
    std::vector<AccessGrant> grants;
    for (size_t i = 0; i < count; ++i) {
      if (const musaError_t status = check_location(desc[i].location); status != musaSuccess) {
        return status;
      }
      const auto flags = desc[i].flags;
      if (flags != MU_MEM_ACCESS_FLAGS_PROT_NONE && flags != MU_MEM_ACCESS_FLAGS_PROT_READ &&
          flags != MU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return musaErrorInvalidValue;
      }
      grants.push_back(
          {desc[i].location.id, flags != MU_MEM_ACCESS_FLAGS_PROT_NONE, flags == MU_MEM_ACCESS_FLAGS_PROT_READWRITE});
    }
    return grant_access(pointer, size, grants);
  });
}

MUresult muMemExportToShareableHandle(
    void* shareable, MUmemGenericAllocationHandle handle, MUmemAllocationHandleType type, unsigned long long flags) {
  return virtual_memory_api<"muMemExportToShareableHandle">([&] {
    if (shareable == nullptr || flags != 0 || type != MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return musaErrorInvalidValue;
    }
    return export_physical(handle, static_cast<int*>(shareable));
  });
}

MUresult muMemImportFromShareableHandle(
    MUmemGenericAllocationHandle* handle, void* shareable, MUmemAllocationHandleType type) {
  return virtual_memory_api<"muMemImportFromShareableHandle">([&] {
    const auto number = reinterpret_cast<uintptr_t>(shareable);
    if (handle == nullptr || number > INT_MAX || type != MU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
      return musaErrorInvalidValue;
    }
    uint64_t imported = 0;
    const musaError_t status = import_physical(static_cast<int>(number), &imported);
    if (status == musaSuccess) {
      *handle = imported;
    }
    return status;
  });
}
