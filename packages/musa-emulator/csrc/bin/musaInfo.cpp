// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Prints the properties of each device, one per line.
#include <cstdio>

#include "musa_runtime.h"
#include "options.h"

int main(int size, char** arguments) {
  int driver = 0;
  int runtime = 0;
  musaDriverGetVersion(&driver);
  musaRuntimeGetVersion(&runtime);
  switch (parse_options(size, arguments, "musaInfo", "Prints the properties of each device, one per line.")) {
    case Option::None: break;
    case Option::Version:
      std::printf("musaInfo %d.%d.%d\n", runtime / 10000, runtime / 100 % 100, runtime % 100);
      return 0;
    case Option::Answered: return 0;
    case Option::Invalid: return 2;
  }
  int count = 0;
  if (const musaError_t status = musaGetDeviceCount(&count); status != musaSuccess) {
    std::fprintf(stderr, "musaInfo: %s (%s)\n", musaGetErrorString(status), musaGetErrorName(status));
    return 1;
  }
  std::printf("device count: %d\n", count);
  std::printf("driver version: %d.%d.%d\n", driver / 10000, driver / 100 % 100, driver % 100);
  std::printf("runtime version: %d.%d.%d\n", runtime / 10000, runtime / 100 % 100, runtime % 100);
  for (int device = 0; device < count; ++device) {
    musaDeviceProp p = {};
    if (const musaError_t status = musaGetDeviceProperties(&p, device); status != musaSuccess) {
      std::fprintf(stderr, "musaInfo: device %d: %s\n", device, musaGetErrorString(status));
      return 1;
    }
    std::printf("\ndevice: %d\n", device);
    std::printf("name: %s\n", p.name);
    std::printf("compute capability: %d.%d\n", p.major, p.minor);
    std::printf("major: %d\n", p.major);
    std::printf("minor: %d\n", p.minor);
    std::printf("totalGlobalMem: %zu\n", p.totalGlobalMem);
    std::printf("multiProcessorCount: %d\n", p.multiProcessorCount);
    std::printf("maxThreadsPerMultiProcessor: %d\n", p.maxThreadsPerMultiProcessor);
    std::printf("maxThreadsPerBlock: %d\n", p.maxThreadsPerBlock);
    std::printf("maxThreadsDim: %d %d %d\n", p.maxThreadsDim[0], p.maxThreadsDim[1], p.maxThreadsDim[2]);
    std::printf("maxGridSize: %d %d %d\n", p.maxGridSize[0], p.maxGridSize[1], p.maxGridSize[2]);
    std::printf("warpSize: %d\n", p.warpSize);
    std::printf("sharedMemPerBlock: %zu\n", p.sharedMemPerBlock);
    std::printf("sharedMemPerMultiprocessor: %zu\n", p.sharedMemPerMultiprocessor);
    std::printf("totalConstMem: %zu\n", p.totalConstMem);
    std::printf("regsPerBlock: %d\n", p.regsPerBlock);
    std::printf("l2CacheSize: %d\n", p.l2CacheSize);
    std::printf("clockRate: %d\n", p.clockRate);
    std::printf("memoryClockRate: %d\n", p.memoryClockRate);
    std::printf("memoryBusWidth: %d\n", p.memoryBusWidth);
    std::printf("integrated: %d\n", p.integrated);
    std::printf("concurrentKernels: %d\n", p.concurrentKernels);
    std::printf("cooperativeLaunch: %d\n", p.cooperativeLaunch);
    std::printf("isMultiGpuBoard: %d\n", p.isMultiGpuBoard);
    std::printf("pciBusID: %d\n", p.pciBusID);
    std::printf("pciDeviceID: %d\n", p.pciDeviceID);
    std::printf("pciDomainID: %d\n", p.pciDomainID);
  }
  return 0;
}
