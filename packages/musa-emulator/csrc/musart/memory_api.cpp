// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/memory.h"

#include "api_support.h"
#include "engine/transfer.h"
#include "pool.h"

using namespace musa_emulator;

namespace {

constexpr size_t kPitchAlignment = 512;

void drain_all() {
  for (int i = 0; i < device_count(); ++i) {
    drain(*find_device(i));
  }
}

} // namespace

musaError_t musaMalloc(void** pointer, size_t bytes) {
  return api<"musaMalloc", kUnsafeInCapture>([&] {
    return pointer != nullptr ? allocate_device(current_device()->ordinal, bytes, pointer) : musaErrorInvalidValue;
  });
}

musaError_t musaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return api<"musaMallocPitch", kUnsafeInCapture>([&] {
    if (pointer == nullptr || pitch == nullptr || width > SIZE_MAX / 2) {
      return musaErrorInvalidValue;
    }
    const size_t row = (width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    if (height != 0 && row > SIZE_MAX / 2 / height) {
      return musaErrorMemoryAllocation;
    }
    *pitch = row;
    return allocate_device(current_device()->ordinal, row * height, pointer);
  });
}

musaError_t musaMalloc3D(musaPitchedPtr* pitched, musaExtent extent) {
  return api<"musaMalloc3D", kUnsafeInCapture>([&] {
    if (pitched == nullptr || extent.width > SIZE_MAX / 2) {
      return musaErrorInvalidValue;
    }
    const size_t row = (extent.width + kPitchAlignment - 1) / kPitchAlignment * kPitchAlignment;
    size_t bytes = 0;
    if (__builtin_mul_overflow(row, extent.height, &bytes) || __builtin_mul_overflow(bytes, extent.depth, &bytes)) {
      return musaErrorMemoryAllocation;
    }
    *pitched = {nullptr, row, extent.width, extent.height};
    return allocate_device(current_device()->ordinal, bytes, &pitched->ptr);
  });
}

musaError_t musaFree(void* pointer) {
  return api<"musaFree", kReleases | kUnsafeInCapture>([&] {
    if (pointer == nullptr) {
      return musaSuccess;
    }
    const PointerInfo info = classify(pointer);
    if (info.type != musaMemoryTypeDevice && info.type != musaMemoryTypeManaged) {
      return musaErrorInvalidValue;
    }
    if (Device* device = find_device(info.device)) {
      drain(*device);
    }
    forget_pool_allocation(pointer);
    return free_device(pointer);
  });
}

musaError_t musaMallocHost(void** pointer, size_t bytes) {
  return api<"musaMallocHost", kUnsafeInCapture>([&] {
    current_device();
    return pointer != nullptr ? allocate_host(bytes, pointer) : musaErrorInvalidValue;
  });
}

musaError_t musaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
  return api<"musaHostAlloc", kUnsafeInCapture>([&] {
    constexpr unsigned known = musaHostAllocPortable | musaHostAllocMapped | musaHostAllocWriteCombined;
    if (pointer == nullptr || (flags & ~known) != 0) {
      return musaErrorInvalidValue;
    }
    current_device();
    return allocate_host(bytes, pointer);
  });
}

musaError_t musaFreeHost(void* pointer) {
  return api<"musaFreeHost", kReleases | kUnsafeInCapture>([&] {
    if (pointer == nullptr) {
      return musaSuccess;
    }
    drain_all();
    return free_host(pointer);
  });
}

musaError_t musaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
  return api<"musaHostRegister", kUnsafeInCapture>([&] {
    constexpr unsigned known =
        musaHostRegisterPortable | musaHostRegisterMapped | musaHostRegisterIoMemory | musaHostRegisterReadOnly;
    if (pointer == nullptr || bytes == 0 || (flags & ~known) != 0) {
      return musaErrorInvalidValue;
    }
    current_device();
    return register_host(pointer, bytes);
  });
}

musaError_t musaHostUnregister(void* pointer) {
  return api<"musaHostUnregister", kReleases | kUnsafeInCapture>([&] {
    if (pointer == nullptr) {
      return musaErrorInvalidValue;
    }
    drain_all();
    return unregister_host(pointer);
  });
}

musaError_t musaHostGetDevicePointer(void** device, void* host, unsigned int flags) {
  return api<"musaHostGetDevicePointer">([&] {
    if (device == nullptr || flags != 0 || classify(host).type != musaMemoryTypeHost) {
      return musaErrorInvalidValue;
    }
    *device = host;
    return musaSuccess;
  });
}

musaError_t musaMallocManaged(void** pointer, size_t bytes, unsigned int flags) {
  return api<"musaMallocManaged", kUnsafeInCapture>([&] {
    if (pointer == nullptr || (flags != musaMemAttachGlobal && flags != musaMemAttachHost)) {
      return musaErrorInvalidValue;
    }
    current_device();
    return allocate_managed(bytes, pointer);
  });
}

musaError_t musaMemAdvise(const void* pointer, size_t bytes, musaMemoryAdvise advice, int device) {
  return api<"musaMemAdvise">([&] {
    const PointerInfo info = classify(pointer);
    if (info.type != musaMemoryTypeManaged || bytes == 0 || check_fill(pointer, bytes) != musaSuccess ||
        advice < musaMemAdviseSetReadMostly || advice > musaMemAdviseUnsetAccessedBy) {
      return musaErrorInvalidValue;
    }
    return device == musaCpuDeviceId || find_device(device) != nullptr ? musaSuccess : musaErrorInvalidDevice;
  });
}

musaError_t musaMemPrefetchAsync(const void* pointer, size_t bytes, int device, musaStream_t stream) {
  return api<"musaMemPrefetchAsync">([&] {
    return with_stream(stream, [&](Stream& found) {
      const PointerInfo info = classify(pointer);
      if (info.type != musaMemoryTypeManaged || bytes == 0 || check_fill(pointer, bytes) != musaSuccess) {
        return musaErrorInvalidValue;
      }
      if (device != musaCpuDeviceId && find_device(device) == nullptr) {
        return musaErrorInvalidDevice;
      }
      return submit(found, EmptyOperation{}); // host and device share the memory, so only the stream's order matters
    });
  });
}

musaError_t musaStreamAttachMemAsync(musaStream_t stream, void* pointer, size_t, unsigned int flags) {
  return api<"musaStreamAttachMemAsync">([&] {
    return with_stream(stream, [&](Stream& found) {
      if (classify(pointer).type != musaMemoryTypeManaged ||
          (flags != musaMemAttachGlobal && flags != musaMemAttachHost && flags != musaMemAttachSingle)) {
        return musaErrorInvalidValue;
      }
      return submit(found, EmptyOperation{});
    });
  });
}

musaError_t musaMemGetInfo(size_t* free, size_t* total) {
  return api<"musaMemGetInfo">([&] {
    if (free == nullptr || total == nullptr) {
      return musaErrorInvalidValue;
    }
    size_t used = 0;
    memory_usage(current_device()->ordinal, &used, total);
    *free = *total - used;
    return musaSuccess;
  });
}

musaError_t musaPointerGetAttributes(musaPointerAttributes* attributes, const void* pointer) {
  return api<"musaPointerGetAttributes", kSurvivesLoss>([&] {
    if (attributes == nullptr || pointer == nullptr) {
      return musaErrorInvalidValue;
    }
    const PointerInfo info = classify(pointer);
    attributes->type = info.type;
    attributes->device = info.device;
    void* address = const_cast<void*>(pointer);
    attributes->devicePointer = info.type == musaMemoryTypeUnregistered ? nullptr : address;
    const bool device_only = info.type == musaMemoryTypeDevice && engine().config.strict;
    attributes->hostPointer = device_only ? nullptr : address;
    return musaSuccess;
  });
}
