// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The driver's contexts. Each device has only its primary context here; each thread has a stack of contexts.
#include <vector>

#include "driver_support.h"
#include "engine/device.h"
#include "musa.h"

using namespace musa_emulator;

namespace {

MUcontext context_of(Device& device) { return reinterpret_cast<MUcontext>(&device); }

Device* device_of(MUcontext context) {
  for (int i = 0; i < device_count(); ++i) {
    if (context_of(*find_device(i)) == context) {
      return find_device(i);
    }
  }
  return nullptr;
}

// The devices that were current before each push on this thread.
std::vector<int>& stack() {
  static thread_local std::vector<int> devices;
  return devices;
}

void push(Device& device) {
  stack().push_back(thread_state().device);
  device.active.store(true);
  thread_state().device = device.ordinal;
}

} // namespace

MUresult muCtxCreate(MUcontext* context, unsigned int flags, MUdevice device) {
  return driver_api<"muCtxCreate">([&] {
    Device* found = find_device(device);
    constexpr unsigned known =
        MU_CTX_SCHED_SPIN | MU_CTX_SCHED_YIELD | MU_CTX_SCHED_BLOCKING_SYNC | MU_CTX_MAP_HOST | 0x10;
    if (found == nullptr) {
      return musaErrorInvalidDevice;
    }
    if (context == nullptr || (flags & ~known) != 0) {
      return musaErrorInvalidValue;
    }
    push(*found);
    *context = context_of(*found);
    return musaSuccess;
  });
}

MUresult muCtxDestroy(MUcontext context) {
  return driver_api<"muCtxDestroy", kReleases>([&] {
    const Device* found = device_of(context);
    if (found == nullptr) {
      return musaErrorDeviceUninitialized; // the same value as MUSA_ERROR_INVALID_CONTEXT
    }
    if (found->ordinal == thread_state().device && !stack().empty()) {
      thread_state().device = stack().back();
      stack().pop_back();
    }
    return musaSuccess;
  });
}

MUresult muCtxPushCurrent(MUcontext context) {
  return driver_api<"muCtxPushCurrent">([&] {
    Device* found = device_of(context);
    if (found == nullptr) {
      return context == nullptr ? musaErrorInvalidValue : musaErrorDeviceUninitialized;
    }
    push(*found);
    return musaSuccess;
  });
}

MUresult muCtxPopCurrent(MUcontext* context) {
  return driver_api<"muCtxPopCurrent">([&] {
    if (stack().empty()) {
      return musaErrorDeviceUninitialized;
    }
    if (context != nullptr) {
      *context = context_of(*current_device());
    }
    thread_state().device = stack().back();
    stack().pop_back();
    return musaSuccess;
  });
}

MUresult muCtxGetFlags(unsigned int* flags) {
  return driver_api<"muCtxGetFlags">([&] {
    if (flags == nullptr) {
      return musaErrorInvalidValue;
    }
    *flags = current_device()->flags;
    return musaSuccess;
  });
}

MUresult muCtxGetCacheConfig(MUfunc_cache* config) {
  return driver_api<"muCtxGetCacheConfig">([&] {
    if (config == nullptr) {
      return musaErrorInvalidValue;
    }
    current_device();
    *config = MU_FUNC_CACHE_PREFER_NONE;
    return musaSuccess;
  });
}

MUresult muCtxGetStreamPriorityRange(int* least, int* greatest) {
  return driver_api<"muCtxGetStreamPriorityRange">([&] {
    current_device();
    if (least != nullptr) {
      *least = kLeastPriority;
    }
    if (greatest != nullptr) {
      *greatest = kGreatestPriority;
    }
    return musaSuccess;
  });
}
