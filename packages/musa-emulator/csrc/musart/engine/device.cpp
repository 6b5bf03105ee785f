// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "engine/api.h"

namespace musa_emulator {
namespace {

// The properties in which the products differ.
struct ArchTable {
  int arch;
  const char* name;
  int processors;
  int warp;
  int threads_per_processor;
  int shared_per_block;
  int shared_optin;
  int clock_khz;
  int memory_clock_khz;
  int bus_bits;
  int l2_bytes;
  int pci_device;
};

constexpr ArchTable kArchs[] = {
    {21, "MTT S80 (emulated)", 32, 128, 1536, 28 << 10, 28 << 10, 1800000, 7001000, 256, 4 << 20, 0x02},
    {22, "MTT S4000 (emulated)", 56, 128, 2048, 72 << 10, 72 << 10, 1750000, 8000000, 384, 24 << 20, 0x03},
    {31, "MTT S5000 (emulated)", 56, 32, 3072, 192 << 10, 192 << 10, 1500000, 20000000, 640, 60 << 20, 0x04},
};

} // namespace

musaDeviceProp device_properties(const Config& config, int physical) {
  const ArchTable& arch = *std::find_if(
      std::begin(kArchs), std::end(kArchs), [&](const ArchTable& entry) { return entry.arch == config.arch; });
  musaDeviceProp p = {};
  std::snprintf(p.name, sizeof p.name, "%s", arch.name);
  std::snprintf(p.uuid.bytes, sizeof p.uuid.bytes, "musa-emu-%06d", physical);
  p.totalGlobalMem = config.memory_limit;
  p.sharedMemPerBlock = static_cast<size_t>(arch.shared_per_block);
  p.sharedMemPerBlockOptin = static_cast<size_t>(arch.shared_optin);
  p.sharedMemPerMultiprocessor = static_cast<size_t>(arch.shared_optin);
  p.regsPerBlock = 131072;
  p.regsPerMultiprocessor = 131072;
  p.warpSize = arch.warp;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = 1024;
  std::fill_n(p.maxThreadsDim, 3, 1024);
  std::fill_n(p.maxGridSize, 3, 0x7fffffff);
  p.clockRate = arch.clock_khz;
  p.totalConstMem = 8192;
  p.major = arch.arch / 10;
  p.minor = arch.arch % 10;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.deviceOverlap = 1;
  p.multiProcessorCount = arch.processors;
  p.integrated = config.integrated ? 1 : 0;
  p.canMapHostMemory = 1;
  p.computeMode = musaComputeModeDefault;
  p.maxTexture1D = 32768;
  p.maxTexture2D[0] = p.maxTexture2D[1] = 32768;
  p.maxTexture3D[0] = p.maxTexture3D[1] = 16384;
  p.maxTexture3D[2] = 2048;
  p.surfaceAlignment = 512;
  p.concurrentKernels = 1;
  p.pciBusID = physical + 1;
  p.pciDeviceID = 0;
  p.asyncEngineCount = 2;
  p.unifiedAddressing = 1;
  p.memoryClockRate = arch.memory_clock_khz;
  p.memoryBusWidth = arch.bus_bits;
  p.l2CacheSize = arch.l2_bytes;
  // Persisting access windows are hints: they are accepted without effect.
  p.persistingL2CacheMaxSize = arch.l2_bytes / 4 * 3;
  p.accessPolicyMaxWindowSize = arch.l2_bytes;
  p.maxThreadsPerMultiProcessor = arch.threads_per_processor;
  p.streamPrioritiesSupported = 1;
  p.memoryPoolsSupported = 1;
  p.managedMemory = 1;
  p.hostNativeAtomicSupported = 1;
  p.singleToDoublePrecisionPerfRatio = 32;
  p.canUseHostPointerForRegisteredMem = 1;
  p.cooperativeLaunch = 1;
  p.maxBlocksPerMultiProcessor = arch.threads_per_processor / arch.warp;
  p.hostRegisterSupported = 1;
  return p;
}

void create_devices(Engine& state) {
  for (size_t i = 0; i < state.config.visible.size(); ++i) {
    auto device = std::make_unique<Device>(static_cast<int>(i), state.config.visible[i]);
    device->properties = device_properties(state.config, device->physical);
    state.devices.push_back(std::move(device));
  }
}

int device_count() { return static_cast<int>(engine().devices.size()); }

Device* find_device(int ordinal) {
  auto& devices = engine().devices;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get()
                                                                       : nullptr;
}

Device* current_device() {
  Device* device = find_device(thread_state().device);
  if (device != nullptr && !device->active.load(std::memory_order_relaxed)) {
    device->active.store(true, std::memory_order_relaxed);
  }
  return device;
}

musaError_t device_attribute(const Device& device, musaDeviceAttr attribute, int* value) {
  const musaDeviceProp& p = device.properties;
  switch (attribute) {
    case musaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case musaDevAttrMaxBlockDimX: *value = p.maxThreadsDim[0]; break;
    case musaDevAttrMaxBlockDimY: *value = p.maxThreadsDim[1]; break;
    case musaDevAttrMaxBlockDimZ: *value = p.maxThreadsDim[2]; break;
    case musaDevAttrMaxGridDimX: *value = p.maxGridSize[0]; break;
    case musaDevAttrMaxGridDimY: *value = p.maxGridSize[1]; break;
    case musaDevAttrMaxGridDimZ: *value = p.maxGridSize[2]; break;
    case musaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case musaDevAttrTotalConstantMemory: *value = static_cast<int>(p.totalConstMem); break;
    case musaDevAttrWarpSize: *value = p.warpSize; break;
    case musaDevAttrMaxPitch: *value = static_cast<int>(p.memPitch); break;
    case musaDevAttrMaxRegistersPerBlock: *value = p.regsPerBlock; break;
    case musaDevAttrClockRate: *value = p.clockRate; break;
    case musaDevAttrTextureAlignment: *value = static_cast<int>(p.textureAlignment); break;
    case musaDevAttrTexturePitchAlignment: *value = static_cast<int>(p.texturePitchAlignment); break;
    case musaDevAttrGpuOverlap: *value = p.deviceOverlap; break;
    case musaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case musaDevAttrIntegrated: *value = p.integrated; break;
    case musaDevAttrCanMapHostMemory: *value = p.canMapHostMemory; break;
    case musaDevAttrComputeMode: *value = p.computeMode; break;
    case musaDevAttrMaxTexture1DWidth: *value = p.maxTexture1D; break;
    case musaDevAttrMaxTexture2DWidth: *value = p.maxTexture2D[0]; break;
    case musaDevAttrMaxTexture2DHeight: *value = p.maxTexture2D[1]; break;
    case musaDevAttrMaxTexture3DWidth: *value = p.maxTexture3D[0]; break;
    case musaDevAttrMaxTexture3DHeight: *value = p.maxTexture3D[1]; break;
    case musaDevAttrMaxTexture3DDepth: *value = p.maxTexture3D[2]; break;
    case musaDevAttrSurfaceAlignment: *value = static_cast<int>(p.surfaceAlignment); break;
    case musaDevAttrConcurrentKernels: *value = p.concurrentKernels; break;
    case musaDevAttrPciBusId: *value = p.pciBusID; break;
    case musaDevAttrPciDeviceId: *value = p.pciDeviceID; break;
    case musaDevAttrPciDomainId: *value = p.pciDomainID; break;
    case musaDevAttrMemoryClockRate: *value = p.memoryClockRate; break;
    case musaDevAttrGlobalMemoryBusWidth: *value = p.memoryBusWidth; break;
    case musaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case musaDevAttrMemoryPoolsSupported: *value = p.memoryPoolsSupported; break;
    case musaDevAttrMaxPersistingL2CacheSize: *value = p.persistingL2CacheMaxSize; break;
    case musaDevAttrMaxAccessPolicyWindowSize: *value = p.accessPolicyMaxWindowSize; break;
    case musaDevAttrMaxThreadsPerMultiProcessor: *value = p.maxThreadsPerMultiProcessor; break;
    case musaDevAttrAsyncEngineCount: *value = p.asyncEngineCount; break;
    case musaDevAttrUnifiedAddressing: *value = p.unifiedAddressing; break;
    case musaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case musaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    case musaDevAttrStreamPrioritiesSupported: *value = p.streamPrioritiesSupported; break;
    case musaDevAttrMaxSharedMemoryPerMultiprocessor: *value = static_cast<int>(p.sharedMemPerMultiprocessor); break;
    case musaDevAttrMaxRegistersPerMultiprocessor: *value = p.regsPerMultiprocessor; break;
    case musaDevAttrManagedMemory: *value = p.managedMemory; break;
    case musaDevAttrHostNativeAtomicSupported: *value = p.hostNativeAtomicSupported; break;
    case musaDevAttrSingleToDoublePrecisionPerfRatio: *value = p.singleToDoublePrecisionPerfRatio; break;
    case musaDevAttrCanUseHostPointerForRegisteredMem: *value = p.canUseHostPointerForRegisteredMem; break;
    case musaDevAttrCooperativeLaunch: *value = p.cooperativeLaunch; break;
    case musaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case musaDevAttrHostRegisterSupported: *value = p.hostRegisterSupported; break;
    case musaDevAttrMaxBlocksPerMultiprocessor: *value = p.maxBlocksPerMultiProcessor; break;
    case musaDevAttrKernelExecTimeout:
    case musaDevAttrEccEnabled:
    case musaDevAttrTccDriver:
    case musaDevAttrGlobalL1CacheSupported:
    case musaDevAttrLocalL1CacheSupported:
    case musaDevAttrIsMultiGpuBoard:
    case musaDevAttrMultiGpuBoardGroupID:
    case musaDevAttrPageableMemoryAccess:
    case musaDevAttrConcurrentManagedAccess:
    case musaDevAttrComputePreemptionSupported:
    case musaDevAttrCooperativeMultiDeviceLaunch:
    case musaDevAttrCanFlushRemoteWrites:
    case musaDevAttrPageableMemoryAccessUsesHostPageTables:
    case musaDevAttrDirectManagedMemAccessFromHost:
    case musaDevAttrReservedSharedMemoryPerBlock:
    case musaDevAttrSparseMusaArraySupported:
    case musaDevAttrHostRegisterReadOnlySupported:
    case musaDevAttrTimelineSemaphoreInteropSupported:
    case musaDevAttrGPUDirectRDMASupported:
    case musaDevAttrGPUDirectRDMAFlushWritesOptions:
    case musaDevAttrGPUDirectRDMAWritesOrdering:
    case musaDevAttrMemoryPoolSupportedHandleTypes:
    case musaDevAttrClusterLaunch: *value = 0; break;
    default: return musaErrorInvalidValue;
  }
  return musaSuccess;
}

void lose_device(Device& device, musaError_t error) {
  musaError_t none = musaSuccess;
  if (device.lost.compare_exchange_strong(none, error)) { // the first error is kept
    gate.fetch_or(kGateDeviceLost);
  }
}

} // namespace musa_emulator
