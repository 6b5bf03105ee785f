// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver API, on the same engine as the runtime. Its calls do not change the runtime's last error.
#include "musa.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "driver_support.h"
#include "engine/api.h"
#include "engine/device.h"
#include "engine/error.h"
#include "engine/event.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "engine/transfer.h"

using namespace musa_emulator;

namespace {

template <class Body>
musaError_t with_stream(MUstream handle, Body&& body) {
  Stream* stream = resolve_stream(handle);
  return stream != nullptr ? body(*stream) : musaErrorInvalidResourceHandle;
}

template <class Body>
musaError_t with_event(MUevent handle, Body&& body) {
  Event* event = resolve_event(handle);
  return event != nullptr ? body(*event) : musaErrorInvalidResourceHandle;
}

template <class Body>
musaError_t with_device(MUdevice ordinal, Body&& body) {
  Device* device = find_device(ordinal);
  return device != nullptr ? body(*device) : musaErrorInvalidDevice;
}

void* address(MUdeviceptr pointer) { return reinterpret_cast<void*>(static_cast<uintptr_t>(pointer)); }

const char* driver_error_name(MUresult error) {
  switch (error) {
    case MUSA_SUCCESS: return "MUSA_SUCCESS";
    case MUSA_ERROR_INVALID_VALUE: return "MUSA_ERROR_INVALID_VALUE";
    case MUSA_ERROR_OUT_OF_MEMORY: return "MUSA_ERROR_OUT_OF_MEMORY";
    case MUSA_ERROR_NOT_INITIALIZED: return "MUSA_ERROR_NOT_INITIALIZED";
    case MUSA_ERROR_DEINITIALIZED: return "MUSA_ERROR_DEINITIALIZED";
    case MUSA_ERROR_PROFILER_DISABLED: return "MUSA_ERROR_PROFILER_DISABLED";
    case MUSA_ERROR_STUB_LIBRARY: return "MUSA_ERROR_STUB_LIBRARY";
    case MUSA_ERROR_DEVICE_UNAVAILABLE: return "MUSA_ERROR_DEVICE_UNAVAILABLE";
    case MUSA_ERROR_NO_DEVICE: return "MUSA_ERROR_NO_DEVICE";
    case MUSA_ERROR_INVALID_DEVICE: return "MUSA_ERROR_INVALID_DEVICE";
    case MUSA_ERROR_DEVICE_NOT_LICENSED: return "MUSA_ERROR_DEVICE_NOT_LICENSED";
    case MUSA_ERROR_INVALID_IMAGE: return "MUSA_ERROR_INVALID_IMAGE";
    case MUSA_ERROR_INVALID_CONTEXT: return "MUSA_ERROR_INVALID_CONTEXT";
    case MUSA_ERROR_MAP_FAILED: return "MUSA_ERROR_MAP_FAILED";
    case MUSA_ERROR_UNMAP_FAILED: return "MUSA_ERROR_UNMAP_FAILED";
    case MUSA_ERROR_ALREADY_MAPPED: return "MUSA_ERROR_ALREADY_MAPPED";
    case MUSA_ERROR_NO_BINARY_FOR_GPU: return "MUSA_ERROR_NO_BINARY_FOR_GPU";
    case MUSA_ERROR_NOT_MAPPED: return "MUSA_ERROR_NOT_MAPPED";
    case MUSA_ERROR_ECC_UNCORRECTABLE: return "MUSA_ERROR_ECC_UNCORRECTABLE";
    case MUSA_ERROR_UNSUPPORTED_LIMIT: return "MUSA_ERROR_UNSUPPORTED_LIMIT";
    case MUSA_ERROR_CONTEXT_ALREADY_IN_USE: return "MUSA_ERROR_CONTEXT_ALREADY_IN_USE";
    case MUSA_ERROR_PEER_ACCESS_UNSUPPORTED: return "MUSA_ERROR_PEER_ACCESS_UNSUPPORTED";
    case MUSA_ERROR_MTLINK_UNCORRECTABLE: return "MUSA_ERROR_MTLINK_UNCORRECTABLE";
    case MUSA_ERROR_INVALID_SOURCE: return "MUSA_ERROR_INVALID_SOURCE";
    case MUSA_ERROR_FILE_NOT_FOUND: return "MUSA_ERROR_FILE_NOT_FOUND";
    case MUSA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND: return "MUSA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND";
    case MUSA_ERROR_SHARED_OBJECT_INIT_FAILED: return "MUSA_ERROR_SHARED_OBJECT_INIT_FAILED";
    case MUSA_ERROR_OPERATING_SYSTEM: return "MUSA_ERROR_OPERATING_SYSTEM";
    case MUSA_ERROR_INVALID_HANDLE: return "MUSA_ERROR_INVALID_HANDLE";
    case MUSA_ERROR_ILLEGAL_STATE: return "MUSA_ERROR_ILLEGAL_STATE";
    case MUSA_ERROR_NOT_FOUND: return "MUSA_ERROR_NOT_FOUND";
    case MUSA_ERROR_NOT_READY: return "MUSA_ERROR_NOT_READY";
    case MUSA_ERROR_ILLEGAL_ADDRESS: return "MUSA_ERROR_ILLEGAL_ADDRESS";
    case MUSA_ERROR_LAUNCH_OUT_OF_RESOURCES: return "MUSA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case MUSA_ERROR_LAUNCH_TIMEOUT: return "MUSA_ERROR_LAUNCH_TIMEOUT";
    case MUSA_ERROR_PEER_ACCESS_ALREADY_ENABLED: return "MUSA_ERROR_PEER_ACCESS_ALREADY_ENABLED";
    case MUSA_ERROR_PEER_ACCESS_NOT_ENABLED: return "MUSA_ERROR_PEER_ACCESS_NOT_ENABLED";
    case MUSA_ERROR_PRIMARY_CONTEXT_ACTIVE: return "MUSA_ERROR_PRIMARY_CONTEXT_ACTIVE";
    case MUSA_ERROR_CONTEXT_IS_DESTROYED: return "MUSA_ERROR_CONTEXT_IS_DESTROYED";
    case MUSA_ERROR_ASSERT: return "MUSA_ERROR_ASSERT";
    case MUSA_ERROR_TOO_MANY_PEERS: return "MUSA_ERROR_TOO_MANY_PEERS";
    case MUSA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: return "MUSA_ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    case MUSA_ERROR_HOST_MEMORY_NOT_REGISTERED: return "MUSA_ERROR_HOST_MEMORY_NOT_REGISTERED";
    case MUSA_ERROR_HARDWARE_STACK_ERROR: return "MUSA_ERROR_HARDWARE_STACK_ERROR";
    case MUSA_ERROR_ILLEGAL_INSTRUCTION: return "MUSA_ERROR_ILLEGAL_INSTRUCTION";
    case MUSA_ERROR_MISALIGNED_ADDRESS: return "MUSA_ERROR_MISALIGNED_ADDRESS";
    case MUSA_ERROR_INVALID_ADDRESS_SPACE: return "MUSA_ERROR_INVALID_ADDRESS_SPACE";
    case MUSA_ERROR_INVALID_PC: return "MUSA_ERROR_INVALID_PC";
    case MUSA_ERROR_LAUNCH_FAILED: return "MUSA_ERROR_LAUNCH_FAILED";
    case MUSA_ERROR_NOT_PERMITTED: return "MUSA_ERROR_NOT_PERMITTED";
    case MUSA_ERROR_NOT_SUPPORTED: return "MUSA_ERROR_NOT_SUPPORTED";
    case MUSA_ERROR_STREAM_CAPTURE_UNSUPPORTED: return "MUSA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    case MUSA_ERROR_STREAM_CAPTURE_INVALIDATED: return "MUSA_ERROR_STREAM_CAPTURE_INVALIDATED";
    case MUSA_ERROR_STREAM_CAPTURE_MERGE: return "MUSA_ERROR_STREAM_CAPTURE_MERGE";
    case MUSA_ERROR_STREAM_CAPTURE_UNMATCHED: return "MUSA_ERROR_STREAM_CAPTURE_UNMATCHED";
    case MUSA_ERROR_STREAM_CAPTURE_UNJOINED: return "MUSA_ERROR_STREAM_CAPTURE_UNJOINED";
    case MUSA_ERROR_STREAM_CAPTURE_ISOLATION: return "MUSA_ERROR_STREAM_CAPTURE_ISOLATION";
    case MUSA_ERROR_STREAM_CAPTURE_IMPLICIT: return "MUSA_ERROR_STREAM_CAPTURE_IMPLICIT";
    case MUSA_ERROR_CAPTURED_EVENT: return "MUSA_ERROR_CAPTURED_EVENT";
    case MUSA_ERROR_STREAM_CAPTURE_WRONG_THREAD: return "MUSA_ERROR_STREAM_CAPTURE_WRONG_THREAD";
    case MUSA_ERROR_TIMEOUT: return "MUSA_ERROR_TIMEOUT";
    case MUSA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: return "MUSA_ERROR_GRAPH_EXEC_UPDATE_FAILURE";
    case MUSA_ERROR_EXTERNAL_DEVICE: return "MUSA_ERROR_EXTERNAL_DEVICE";
    case MUSA_ERROR_INVALID_CLUSTER_SIZE: return "MUSA_ERROR_INVALID_CLUSTER_SIZE";
    case MUSA_ERROR_INVALID_RESOURCE_TYPE: return "MUSA_ERROR_INVALID_RESOURCE_TYPE";
    case MUSA_ERROR_INVALID_RESOURCE_CONFIGURATION: return "MUSA_ERROR_INVALID_RESOURCE_CONFIGURATION";
    case MUSA_ERROR_UNKNOWN: return "MUSA_ERROR_UNKNOWN";
  }
  return nullptr;
}

MUcontext context_of(Device& device) { return reinterpret_cast<MUcontext>(&device); }

musaError_t copy(void* dst, const void* src, size_t bytes, musaMemcpyKind kind, MUstream stream, Host host) {
  return with_stream(
      stream, [&](Stream& found) { return submit_copy(found, linear_copy(dst, src, bytes, kind), host); });
}

musaError_t fill(MUdeviceptr dst, unsigned value, unsigned element, size_t count, MUstream stream, Host host) {
  return with_stream(stream, [&](Stream& found) {
    FillOperation operation{};
    operation.dst = static_cast<char*>(address(dst));
    operation.value = value;
    operation.element = element;
    operation.width = count;
    return submit_fill(found, operation, host);
  });
}

} // namespace

MUresult muInit(unsigned int flags) {
  return driver_api<"muInit", kNeedsNoDevice>(
      [&] { return flags == 0 ? engine().config.error : musaErrorInvalidValue; });
}

MUresult muDriverGetVersion(int* version) {
  return driver_api<"muDriverGetVersion", kNeedsNoDevice>([&] {
    if (version == nullptr) {
      return musaErrorInvalidValue;
    }
    *version = kVersion;
    return musaSuccess;
  });
}

MUresult muGetErrorString(MUresult error, const char** text) {
  if (text == nullptr) {
    return MUSA_ERROR_INVALID_VALUE;
  }
  *text = error_string(static_cast<musaError_t>(error));
  return MUSA_SUCCESS;
}

MUresult muGetErrorName(MUresult error, const char** text) {
  if (text == nullptr) {
    return MUSA_ERROR_INVALID_VALUE;
  }
  *text = driver_error_name(error);
  return *text != nullptr ? MUSA_SUCCESS : MUSA_ERROR_INVALID_VALUE;
}

MUresult muDeviceGet(MUdevice* device, int ordinal) {
  return driver_api<"muDeviceGet">([&] {
    return with_device(ordinal, [&](Device&) {
      if (device == nullptr) {
        return musaErrorInvalidValue;
      }
      *device = ordinal;
      return musaSuccess;
    });
  });
}

MUresult muDeviceGetCount(int* count) {
  return driver_api<"muDeviceGetCount", kNeedsNoDevice>([&] {
    if (count == nullptr) {
      return musaErrorInvalidValue;
    }
    *count = device_count();
    return *count > 0 ? musaSuccess : engine().config.error;
  });
}

MUresult muDeviceGetName(char* name, int length, MUdevice device) {
  return driver_api<"muDeviceGetName">([&] {
    return with_device(device, [&](Device& found) {
      if (name == nullptr || length <= 0) {
        return musaErrorInvalidValue;
      }
      std::snprintf(name, static_cast<size_t>(length), "%s", found.properties.name);
      return musaSuccess;
    });
  });
}

MUresult muDeviceTotalMem(size_t* bytes, MUdevice device) {
  return driver_api<"muDeviceTotalMem">([&] {
    return with_device(device, [&](Device& found) {
      if (bytes == nullptr) {
        return musaErrorInvalidValue;
      }
      *bytes = found.properties.totalGlobalMem;
      return musaSuccess;
    });
  });
}

MUresult muDeviceGetAttribute(int* value, MUdevice_attribute attribute, MUdevice device) {
  return driver_api<"muDeviceGetAttribute">([&] {
    return with_device(device, [&](Device& found) {
      if (value == nullptr) {
        return musaErrorInvalidValue;
      }
      if (attribute == MU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED) {
        *value = engine().config.virtual_memory ? 1 : 0;
        return musaSuccess;
      }
      return device_attribute(found, static_cast<musaDeviceAttr>(attribute), value);
    });
  });
}

MUresult muDevicePrimaryCtxGetState(MUdevice device, unsigned int* flags, int* active) {
  return driver_api<"muDevicePrimaryCtxGetState">([&] {
    return with_device(device, [&](Device& found) {
      if (flags == nullptr || active == nullptr) {
        return musaErrorInvalidValue;
      }
      Lock lock(engine().mutex);
      *flags = found.flags;
      *active = found.active.load() ? 1 : 0;
      return musaSuccess;
    });
  });
}

MUresult muDevicePrimaryCtxRetain(MUcontext* context, MUdevice device) {
  return driver_api<"muDevicePrimaryCtxRetain">([&] {
    return with_device(device, [&](Device& found) {
      if (context == nullptr) {
        return musaErrorInvalidValue;
      }
      found.active.store(true);
      *context = context_of(found);
      return musaSuccess;
    });
  });
}

MUresult muDevicePrimaryCtxRelease(MUdevice device) {
  return driver_api<"muDevicePrimaryCtxRelease", kReleases>(
      [&] { return with_device(device, [](Device&) { return musaSuccess; }); });
}

MUresult muCtxGetCurrent(MUcontext* context) {
  return driver_api<"muCtxGetCurrent">([&] {
    if (context == nullptr) {
      return musaErrorInvalidValue;
    }
    Device* device = find_device(thread_state().device);
    *context = device != nullptr && device->active.load() ? context_of(*device) : nullptr;
    return musaSuccess;
  });
}

MUresult muCtxSetCurrent(MUcontext context) {
  return driver_api<"muCtxSetCurrent">([&] {
    for (int i = 0; i < device_count(); ++i) {
      if (context_of(*find_device(i)) == context) {
        thread_state().device = i;
        return musaSuccess;
      }
    }
    return context == nullptr ? musaSuccess : musaErrorDeviceUninitialized;
  });
}

MUresult muCtxGetDevice(MUdevice* device) {
  return driver_api<"muCtxGetDevice">([&] {
    if (device == nullptr) {
      return musaErrorInvalidValue;
    }
    *device = thread_state().device;
    return musaSuccess;
  });
}

MUresult muCtxSynchronize(void) {
  return driver_api<"muCtxSynchronize">([] { return synchronize_device(*current_device()); });
}

MUresult muMemAlloc(MUdeviceptr* pointer, size_t bytes) {
  return driver_api<"muMemAlloc", kUnsafeInCapture>([&] {
    if (pointer == nullptr || bytes == 0) {
      return musaErrorInvalidValue;
    }
    void* allocated = nullptr;
    const musaError_t status = allocate_device(current_device()->ordinal, bytes, &allocated);
    *pointer = reinterpret_cast<uintptr_t>(allocated);
    return status;
  });
}

MUresult muMemFree(MUdeviceptr pointer) {
  return driver_api<"muMemFree", kReleases | kUnsafeInCapture>([&] {
    const PointerInfo info = classify(address(pointer));
    if (info.type != musaMemoryTypeDevice) {
      return musaErrorInvalidValue;
    }
    if (may_wait() == musaSuccess) {
      wait_for_device(*find_device(info.device));
    }
    return free_device(address(pointer));
  });
}

MUresult muMemGetInfo(size_t* free, size_t* total) {
  return driver_api<"muMemGetInfo">([&] {
    if (free == nullptr || total == nullptr) {
      return musaErrorInvalidValue;
    }
    size_t used = 0;
    memory_usage(current_device()->ordinal, &used, total);
    *free = *total - used;
    return musaSuccess;
  });
}

MUresult muMemGetAddressRange(MUdeviceptr* base, size_t* bytes, MUdeviceptr pointer) {
  return driver_api<"muMemGetAddressRange">([&] {
    const PointerInfo info = classify(address(pointer));
    if (info.type != musaMemoryTypeDevice && info.type != musaMemoryTypeManaged) {
      return musaErrorInvalidValue;
    }
    if (base != nullptr) {
      *base = info.base;
    }
    if (bytes != nullptr) {
      *bytes = info.bytes;
    }
    return musaSuccess;
  });
}

MUresult muMemcpyHtoD(MUdeviceptr dst, const void* src, size_t bytes) {
  return driver_api<"muMemcpyHtoD">(
      [&] { return copy(address(dst), src, bytes, musaMemcpyHostToDevice, nullptr, Host::Waits); });
}

MUresult muMemcpyDtoH(void* dst, MUdeviceptr src, size_t bytes) {
  return driver_api<"muMemcpyDtoH">(
      [&] { return copy(dst, address(src), bytes, musaMemcpyDeviceToHost, nullptr, Host::Waits); });
}

MUresult muMemcpyDtoD(MUdeviceptr dst, MUdeviceptr src, size_t bytes) {
  return driver_api<"muMemcpyDtoD">(
      [&] { return copy(address(dst), address(src), bytes, musaMemcpyDeviceToDevice, nullptr, Host::Waits); });
}

MUresult muMemcpyHtoDAsync(MUdeviceptr dst, const void* src, size_t bytes, MUstream stream) {
  return driver_api<"muMemcpyHtoDAsync">(
      [&] { return copy(address(dst), src, bytes, musaMemcpyHostToDevice, stream, Host::Continues); });
}

MUresult muMemcpyDtoHAsync(void* dst, MUdeviceptr src, size_t bytes, MUstream stream) {
  return driver_api<"muMemcpyDtoHAsync">(
      [&] { return copy(dst, address(src), bytes, musaMemcpyDeviceToHost, stream, Host::Continues); });
}

MUresult muMemcpyDtoDAsync(MUdeviceptr dst, MUdeviceptr src, size_t bytes, MUstream stream) {
  return driver_api<"muMemcpyDtoDAsync">(
      [&] { return copy(address(dst), address(src), bytes, musaMemcpyDeviceToDevice, stream, Host::Continues); });
}

MUresult muMemsetD8(MUdeviceptr dst, unsigned char value, size_t count) {
  return driver_api<"muMemsetD8">([&] { return fill(dst, value, 1, count, nullptr, Host::Waits); });
}

MUresult muMemsetD8Async(MUdeviceptr dst, unsigned char value, size_t count, MUstream stream) {
  return driver_api<"muMemsetD8Async">([&] { return fill(dst, value, 1, count, stream, Host::Continues); });
}

MUresult muMemsetD32(MUdeviceptr dst, unsigned int value, size_t count) {
  return driver_api<"muMemsetD32">([&] { return fill(dst, value, 4, count, nullptr, Host::Waits); });
}

MUresult muMemsetD32Async(MUdeviceptr dst, unsigned int value, size_t count, MUstream stream) {
  return driver_api<"muMemsetD32Async">([&] { return fill(dst, value, 4, count, stream, Host::Continues); });
}

MUresult muPointerGetAttribute(void* data, MUpointer_attribute attribute, MUdeviceptr pointer) {
  return driver_api<"muPointerGetAttribute">([&] {
    const PointerInfo info = classify(address(pointer));
    if (data == nullptr || info.type == musaMemoryTypeUnregistered) {
      return musaErrorInvalidValue;
    }
    const auto put = [data](auto value) {
      std::memcpy(data, &value, sizeof value);
      return musaSuccess;
    };
    switch (attribute) {
      case MU_POINTER_ATTRIBUTE_CONTEXT: return put(context_of(*find_device(info.device)));
      case MU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        return put(info.type == musaMemoryTypeHost ? MU_MEMORYTYPE_HOST : MU_MEMORYTYPE_DEVICE);
      case MU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(pointer);
      case MU_POINTER_ATTRIBUTE_HOST_POINTER:
        return info.type == musaMemoryTypeDevice && engine().config.strict ? musaErrorInvalidValue
                                                                           : put(address(pointer));
      case MU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put(0u);
      case MU_POINTER_ATTRIBUTE_IS_MANAGED: return put(info.type == musaMemoryTypeManaged ? 1u : 0u);
      case MU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(info.device);
      case MU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(static_cast<MUdeviceptr>(info.base));
      case MU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(info.bytes);
    }
    return musaErrorInvalidValue;
  });
}

MUresult muStreamCreate(MUstream* stream, unsigned int flags) {
  return driver_api<"muStreamCreate">([&] {
    return stream != nullptr ? create_stream(*current_device(), flags, kLeastPriority, stream) : musaErrorInvalidValue;
  });
}

MUresult muStreamDestroy(MUstream stream) {
  return driver_api<"muStreamDestroy", kReleases>([&] { return destroy_stream(stream); });
}

MUresult muStreamSynchronize(MUstream stream) {
  return driver_api<"muStreamSynchronize", kUnsafeInCapture>([&] { return with_stream(stream, synchronize_stream); });
}

MUresult muStreamQuery(MUstream stream) {
  return driver_api<"muStreamQuery", kUnsafeInCapture>([&] { return with_stream(stream, query_stream); });
}

MUresult muStreamWaitEvent(MUstream stream, MUevent event, unsigned int flags) {
  return driver_api<"muStreamWaitEvent">([&] {
    return with_stream(stream, [&](Stream& target) {
      return with_event(event, [&](Event& found) { return wait_event(target, found, flags); });
    });
  });
}

MUresult muLaunchHostFunc(MUstream stream, MUhostFn function, void* data) {
  return driver_api<"muLaunchHostFunc">([&] {
    return with_stream(stream, [&](Stream& target) {
      return function != nullptr ? submit(target, HostOperation{function, data}) : musaErrorInvalidValue;
    });
  });
}

MUresult muEventCreate(MUevent* event, unsigned int flags) {
  return driver_api<"muEventCreate">(
      [&] { return event != nullptr ? create_event(*current_device(), flags, event) : musaErrorInvalidValue; });
}

MUresult muEventDestroy(MUevent event) {
  return driver_api<"muEventDestroy", kReleases>(
      [&] { return with_event(event, [](Event& found) { return destroy_event(&found); }); });
}

MUresult muEventRecord(MUevent event, MUstream stream) {
  return driver_api<"muEventRecord">([&] {
    return with_event(event, [&](Event& found) {
      return with_stream(stream, [&](Stream& target) { return record_event(found, target, 0); });
    });
  });
}

MUresult muEventQuery(MUevent event) {
  return driver_api<"muEventQuery", kUnsafeInCapture>([&] { return with_event(event, query_event); });
}

MUresult muEventSynchronize(MUevent event) {
  return driver_api<"muEventSynchronize", kUnsafeInCapture>([&] { return with_event(event, synchronize_event); });
}

MUresult muEventElapsedTime(float* milliseconds, MUevent start, MUevent end) {
  return driver_api<"muEventElapsedTime">([&] {
    return with_event(start, [&](Event& first) {
      return with_event(end, [&](Event& last) {
        return milliseconds != nullptr ? elapsed_time(first, last, milliseconds) : musaErrorInvalidValue;
      });
    });
  });
}
