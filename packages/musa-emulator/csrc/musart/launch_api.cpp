// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "api_support.h"
#include "engine/kernel.h"
#include "musa_profiler_api.h"

using namespace musa_emulator;

namespace {

musaError_t launch(
    const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, musaStream_t stream,
    bool cooperative = false) {
  return with_stream(stream, [&](Stream& found) {
    if (found.device->ordinal != thread_state().device) {
      return musaErrorInvalidResourceHandle; // a kernel runs on the current device, so the stream must belong to it
    }
    std::shared_ptr<Launch> made;
    const musaError_t status =
        make_launch(*found.device, function, grid, block, arguments, shared_bytes, cooperative, &made);
    return status == musaSuccess ? submit(found, KernelOperation{std::move(made)}) : status;
  });
}

// Calls `body(kernel)` with the kernel of the symbol.
template <class Body>
musaError_t with_kernel(const void* function, Body&& body) {
  const std::shared_ptr<Kernel> kernel = find_kernel(function);
  return kernel != nullptr ? body(*kernel) : musaErrorInvalidDeviceFunction;
}

} // namespace

musaError_t musaLaunchKernel(
    const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, musaStream_t stream) {
  return api<"musaLaunchKernel">([&] { return launch(function, grid, block, arguments, shared_bytes, stream); });
}

musaError_t musaLaunchKernelExC(const musaLaunchConfig_t* config, const void* function, void** arguments) {
  return api<"musaLaunchKernelExC">([&] {
    if (config == nullptr) {
      return musaErrorInvalidValue;
    }
    return launch(function, config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes, config->stream);
  });
}

musaError_t musaLaunchCooperativeKernel(
    const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, musaStream_t stream) {
  return api<"musaLaunchCooperativeKernel">([&] {
    const std::shared_ptr<Kernel> kernel = find_kernel(function);
    if (kernel == nullptr) {
      return musaErrorInvalidDeviceFunction;
    }
    if (block.x == 0 || block.y == 0 || block.z == 0) {
      return musaErrorInvalidConfiguration;
    }
    if (!fits_cooperatively(*current_device(), *kernel, grid, block, shared_bytes)) {
      return musaErrorCooperativeLaunchTooLarge;
    }
    return launch(function, grid, block, arguments, shared_bytes, stream, /*cooperative=*/true);
  });
}

musaError_t musaFuncGetAttributes(musaFuncAttributes* attributes, const void* function) {
  return api<"musaFuncGetAttributes">([&] {
    return with_kernel(function, [&](const Kernel& kernel) {
      if (attributes == nullptr) {
        return musaErrorInvalidValue;
      }
      const musaDeviceProp& p = current_device()->properties;
      *attributes = {};
      attributes->sharedSizeBytes = kernel.static_shared;
      attributes->maxThreadsPerBlock = kernel.max_threads > 0 ? kernel.max_threads : p.maxThreadsPerBlock;
      attributes->numRegs = 32;
      attributes->ptxVersion = p.major * 10 + p.minor;
      attributes->binaryVersion = attributes->ptxVersion;
      attributes->maxDynamicSharedSizeBytes = kernel.max_dynamic_shared >= 0
          ? kernel.max_dynamic_shared
          : static_cast<int>(p.sharedMemPerBlock - kernel.static_shared);
      return musaSuccess;
    });
  });
}

musaError_t musaFuncSetAttribute(const void* function, musaFuncAttribute attribute, int value) {
  return api<"musaFuncSetAttribute">([&] {
    return with_kernel(function, [&](Kernel& kernel) {
      switch (attribute) {
        case musaFuncAttributeMaxDynamicSharedMemorySize: return allow_dynamic_shared(*current_device(), kernel, value);
        case musaFuncAttributePreferredSharedMemoryCarveout:
          return value >= -1 && value <= 100 ? musaSuccess : musaErrorInvalidValue;
        default: return musaErrorInvalidValue;
      }
    });
  });
}

musaError_t musaFuncSetCacheConfig(const void* function, musaFuncCache) {
  return api<"musaFuncSetCacheConfig">([&] { return with_kernel(function, [](Kernel&) { return musaSuccess; }); });
}

musaError_t musaFuncSetSharedMemConfig(const void* function, musaSharedMemConfig) {
  return api<"musaFuncSetSharedMemConfig">([&] { return with_kernel(function, [](Kernel&) { return musaSuccess; }); });
}

musaError_t musaGetFuncBySymbol(musaFunction_t* function, const void* symbol) {
  return api<"musaGetFuncBySymbol">([&] {
    return with_kernel(symbol, [&](Kernel& kernel) {
      if (function == nullptr) {
        return musaErrorInvalidValue;
      }
      *function = reinterpret_cast<musaFunction_t>(const_cast<void*>(kernel.symbol));
      return musaSuccess;
    });
  });
}

musaError_t musaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* function, int block_size, size_t dynamic_bytes) {
  return api<"musaOccupancyMaxActiveBlocksPerMultiprocessor">([&] {
    return with_kernel(function, [&](const Kernel& kernel) {
      if (blocks == nullptr || block_size <= 0) {
        return musaErrorInvalidValue;
      }
      *blocks = active_blocks(*current_device(), kernel, block_size, dynamic_bytes);
      return musaSuccess;
    });
  });
}

// These calls control an external profiler, which observes them through MUPTI like all other calls. They have no
// effect themselves.

musaError_t musaProfilerStart(void) {
  return api<"musaProfilerStart">([] { return musaSuccess; });
}

musaError_t musaProfilerStop(void) {
  return api<"musaProfilerStop">([] { return musaSuccess; });
}
