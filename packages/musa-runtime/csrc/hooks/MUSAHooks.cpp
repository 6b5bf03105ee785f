// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <hooks/MUSAHooks.h>

#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <ATen/musa/PinnedMemoryAllocator.h>
#include <c10/musa/MUSAAllocatorConfig.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSAFunctions.h>
#include <registry/op_registry.h>
#include <transfer/storage.h>

#include <dlfcn.h>
#include <musa.h>

#include <string>

namespace at::musa {
namespace {

constexpr char kNativeOps[] = "libmusa_native_ops.so";

// The generated operator library is in the same folder. It is not linked because that would slow down `import torch`.
void load_native_ops() {
  Dl_info self{};
  TORCH_CHECK(
      dladdr(reinterpret_cast<void*>(&load_native_ops), &self) != 0 && self.dli_fname != nullptr,
      "Cannot find the folder of libmusa_runtime.so.");
  std::string path(self.dli_fname);
  path = path.substr(0, path.rfind('/') + 1) + kNativeOps;
  TORCH_CHECK(
      dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr, "Cannot load ", path, ": ", dlerror(),
      "\nLikely causes: the musa-runtime package was built against another torch, or is incomplete."
      "\nFix: python -m torch_musa doctor, which prints the command that reinstalls it");
}

} // namespace

void MUSAHooks::init() const {
  c10::musa::device_count_ensure_non_zero();
  c10::musa::MUSACachingAllocator::MUSAAllocatorConfig::load_environment();
  load_native_ops();
  // Failures of packs that were loaded through a loader have been reported already.
  for (const musa_runtime::PackFailure& failure : musa_runtime::take_pack_failures()) {
    TORCH_WARN("Kernels are not used: ", failure.message);
  }
  musa_runtime::OpRegistry::get().install();
}

bool MUSAHooks::isAvailable() const { return c10::musa::device_count() > 0; }

bool MUSAHooks::hasPrimaryContext(DeviceIndex device) const {
  if (device < 0 || device >= c10::musa::device_count()) {
    return false;
  }
  unsigned flags = 0;
  int active = 0;
  const MUresult result = muDevicePrimaryCtxGetState(device, &flags, &active);
  return result == MUSA_SUCCESS && active != 0;
}

DeviceIndex MUSAHooks::deviceCount() const { return c10::musa::device_count(); }

void MUSAHooks::setCurrentDevice(DeviceIndex device) const { c10::musa::set_device(device); }

DeviceIndex MUSAHooks::getCurrentDevice() const { return c10::musa::current_device(); }

DeviceIndex MUSAHooks::exchangeDevice(DeviceIndex device) const { return c10::musa::ExchangeDevice(device); }

DeviceIndex MUSAHooks::maybeExchangeDevice(DeviceIndex device) const { return c10::musa::MaybeExchangeDevice(device); }

const Generator& MUSAHooks::getDefaultGenerator(DeviceIndex device) const {
  return at::musa::detail::getDefaultMUSAGenerator(device);
}

Generator MUSAHooks::getNewGenerator(DeviceIndex device) const {
  // A generator may be a program's first musa object; operators that draw from it must find their kernels.
  at::globalContext().lazyInitDevice(c10::DeviceType::PrivateUse1);
  return at::musa::detail::createMUSAGenerator(device);
}

Device MUSAHooks::getDeviceFromPtr(void* data) const {
  musaPointerAttributes attributes{};
  const musaError_t error = musaPointerGetAttributes(&attributes, data);
  if (error != musaSuccess) {
    C10_MUSA_CLEAR_ERROR();
  }
  TORCH_CHECK(
      error == musaSuccess && (attributes.type == musaMemoryTypeDevice || attributes.type == musaMemoryTypeManaged),
      "The pointer ", data,
      " is not device memory of a musa device. Fix: pass memory that came from musaMalloc, or "
      "name the device explicitly.");
  return Device(c10::DeviceType::PrivateUse1, static_cast<DeviceIndex>(attributes.device));
}

bool MUSAHooks::isPinnedPtr(const void* data) const { return at::musa::isPinnedPtr(data); }

Allocator* MUSAHooks::getPinnedMemoryAllocator() const {
  c10::musa::device_count_ensure_non_zero();
  c10::musa::MUSACachingAllocator::MUSAAllocatorConfig::load_environment();
  return at::getHostAllocator(at::kPrivateUse1);
}

void MUSAHooks::resizePrivateUse1Bytes(const c10::Storage& storage, size_t nbytes) const {
  resize_storage(storage.unsafeGetStorageImpl(), nbytes);
}

namespace {
const bool registered = (at::RegisterPrivateUse1HooksInterface(new MUSAHooks()), true);
} // namespace

} // namespace at::musa
