// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/interprocess.h"

#include "api_support.h"
#include "engine/event.h"
#include "engine/memory.h"

using namespace musa_emulator;

musaError_t musaIpcGetMemHandle(musaIpcMemHandle_t* handle, void* pointer) {
  return api<"musaIpcGetMemHandle">([&] {
    const PointerInfo info = classify(pointer);
    if (handle == nullptr || info.type != musaMemoryTypeDevice) {
      return musaErrorInvalidValue;
    }
    // The first export moves the contents to shared pages, so pending work must finish before.
    if (const musaError_t status = wait_for_device(*find_device(info.device)); status != musaSuccess) {
      return status;
    }
    return export_memory(pointer, handle);
  });
}

musaError_t musaIpcOpenMemHandle(void** pointer, musaIpcMemHandle_t handle, unsigned int flags) {
  return api<"musaIpcOpenMemHandle">([&] {
    if (pointer == nullptr || flags != musaIpcMemLazyEnablePeerAccess) {
      return musaErrorInvalidValue;
    }
    return import_memory(current_device()->ordinal, handle, pointer);
  });
}

musaError_t musaIpcCloseMemHandle(void* pointer) {
  return api<"musaIpcCloseMemHandle", kReleases>([&] {
    if (Device* device = find_device(classify(pointer).device)) {
      wait_for_device(*device);
    }
    return close_memory(pointer);
  });
}

musaError_t musaIpcGetEventHandle(musaIpcEventHandle_t* handle, musaEvent_t event) {
  return api<"musaIpcGetEventHandle">([&] {
    Event* found = resolve_event(event);
    if (found == nullptr) {
      return musaErrorInvalidResourceHandle;
    }
    return handle != nullptr ? export_event(*found, handle) : musaErrorInvalidValue;
  });
}

musaError_t musaIpcOpenEventHandle(musaEvent_t* event, musaIpcEventHandle_t handle) {
  return api<"musaIpcOpenEventHandle">(
      [&] { return event != nullptr ? import_event(*current_device(), handle, event) : musaErrorInvalidValue; });
}
