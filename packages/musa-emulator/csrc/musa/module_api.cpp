// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Modules with their kernels and variables, and the driver's launches. A module is a shared library that `mcc
// -fatbin` wrote. Loading it registers its kernels, which are looked up by symbol name.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "driver_support.h"
#include "engine/device.h"
#include "engine/kernel.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "musa.h"

struct MUmod_st {
  void* library;
};

using namespace musa_emulator;

namespace {

// Guards the set of loaded modules.
std::mutex modules_mutex;
std::set<MUmodule>& modules() {
  static auto* loaded = new std::set<MUmodule>;
  return *loaded;
}

bool loaded(MUmodule module) {
  const std::lock_guard lock(modules_mutex);
  return modules().count(module) != 0;
}

musaError_t load(const char* path, const char* called, MUmodule* module) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(
        stderr,
        "musa-emulator: cannot load the module %s: %s\n"
        "Likely cause: it was compiled for a GPU or by another compiler.\n"
        "Fix: compile its source with the emulator's compiler: mcc -fatbin <source>.mu -o <module>\n",
        called, dlerror());
    return musaErrorInvalidKernelImage;
  }
  auto made = std::make_unique<MUmod_st>(MUmod_st{library});
  const std::lock_guard lock(modules_mutex);
  modules().insert(made.get());
  *module = made.release();
  return musaSuccess;
}

// Returns the size of an ELF image in memory, whose section headers are at the end, or 0 if it is not one.
size_t size_of_image(const void* image) {
  ElfW(Ehdr) header;
  std::memcpy(&header, image, SELFMAG);
  if (std::memcmp(&header, ELFMAG, SELFMAG) != 0) {
    return 0;
  }
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + size_t{header.e_shentsize} * header.e_shnum;
}

musaError_t load_image(const void* image, MUmodule* module) {
  const size_t bytes = size_of_image(image);
  if (bytes == 0) {
    return musaErrorInvalidKernelImage;
  }
  const int file = memfd_create("musa-module", MFD_CLOEXEC);
  if (file < 0) {
    return musaErrorOperatingSystem;
  }
  const auto* data = static_cast<const char*>(image);
  size_t done = 0;
  while (done < bytes) {
    const ssize_t written = write(file, data + done, bytes - done);
    if (written <= 0) {
      close(file);
      return musaErrorOperatingSystem;
    }
    done += static_cast<size_t>(written);
  }
  char path[32];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  const musaError_t status = load(path, "in memory", module);
  close(file);
  return status;
}

template <class Body>
musaError_t with_function(MUfunction function, Body&& body) {
  const std::shared_ptr<Kernel> kernel = find_kernel(function);
  return kernel != nullptr ? body(*kernel) : musaErrorInvalidResourceHandle;
}

// Splits a packed argument buffer. Each argument has the alignment of its type.
musaError_t unpack(const Kernel& kernel, void** extra, std::vector<void*>* arguments) {
  char* buffer = nullptr;
  size_t bytes = 0;
  for (size_t i = 0; extra[i] != MU_LAUNCH_PARAM_END; i += 2) {
    if (extra[i] == MU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = static_cast<char*>(extra[i + 1]);
    } else if (extra[i] == MU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = *static_cast<size_t*>(extra[i + 1]);
    } else {
      return musaErrorInvalidValue;
    }
  }
  if (kernel.argument_alignments.size() != kernel.argument_sizes.size()) {
    return musaErrorNotSupported; // a kernel that a test registered manually
  }
  size_t offset = 0;
  for (size_t i = 0; i < kernel.argument_alignments.size(); ++i) {
    const size_t size = kernel.argument_sizes[i], alignment = kernel.argument_alignments[i];
    offset = (offset + alignment - 1) / alignment * alignment;
    if (buffer == nullptr || offset + size > bytes) {
      return musaErrorInvalidValue;
    }
    arguments->push_back(buffer + offset);
    offset += size;
  }
  return musaSuccess;
}

musaError_t launch(
    MUfunction function, dim3 grid, dim3 block, unsigned shared_bytes, MUstream stream, void** parameters, void** extra,
    bool cooperative) {
  return with_function(function, [&](Kernel& kernel) {
    Stream* found = resolve_stream(stream);
    if (found == nullptr || found->device->ordinal != thread_state().device) {
      return musaErrorInvalidResourceHandle;
    }
    if (parameters != nullptr && extra != nullptr) {
      return musaErrorInvalidValue;
    }
    std::vector<void*> unpacked;
    if (extra != nullptr) {
      if (const musaError_t status = unpack(kernel, extra, &unpacked); status != musaSuccess) {
        return status;
      }
      unpacked.push_back(nullptr); // a non-null array, even without arguments
      parameters = unpacked.data();
    }
    if (cooperative && block.x != 0 && block.y != 0 && block.z != 0 &&
        !fits_cooperatively(*found->device, kernel, grid, block, shared_bytes)) {
      return musaErrorCooperativeLaunchTooLarge;
    }
    std::shared_ptr<Launch> made;
    const musaError_t status =
        make_launch(*found->device, kernel.symbol, grid, block, parameters, shared_bytes, cooperative, &made);
    if (status == musaErrorInvalidConfiguration) {
      return musaErrorInvalidValue; // the driver's code for this error
    }
    return status == musaSuccess ? submit(*found, KernelOperation{std::move(made)}) : status;
  });
}

} // namespace

MUresult muModuleLoad(MUmodule* module, const char* path) {
  return driver_api<"muModuleLoad", kUnsafeInCapture>([&] {
    if (module == nullptr || path == nullptr) {
      return musaErrorInvalidValue;
    }
    current_device();
    if (access(path, R_OK) != 0) {
      return musaErrorFileNotFound;
    }
    // Without a slash, dlopen would search the library path.
    std::string place = path;
    if (place.find('/') == std::string::npos) {
      place.insert(0, "./");
    }
    return load(place.c_str(), path, module);
  });
}

MUresult muModuleLoadData(MUmodule* module, const void* image) {
  return driver_api<"muModuleLoadData", kUnsafeInCapture>([&] {
    if (module == nullptr || image == nullptr) {
      return musaErrorInvalidValue;
    }
    current_device();
    return load_image(image, module);
  });
}

MUresult muModuleLoadFatBinary(MUmodule* module, const void* image) {
  return driver_api<"muModuleLoadFatBinary", kUnsafeInCapture>([&] {
    if (module == nullptr || image == nullptr) {
      return musaErrorInvalidValue;
    }
    current_device();
    return load_image(image, module);
  });
}

MUresult muModuleUnload(MUmodule module) {
  return driver_api<"muModuleUnload", kReleases | kUnsafeInCapture>([&] {
    {
      const std::lock_guard lock(modules_mutex);
      if (modules().erase(module) == 0) {
        return musaErrorInvalidResourceHandle;
      }
    }
    // Running kernels execute code of the library.
    if (may_wait() == musaSuccess) {
      for (int i = 0; i < device_count(); ++i) {
        wait_for_device(*find_device(i));
      }
    }
    dlclose(module->library);
    delete module;
    return musaSuccess;
  });
}

MUresult muModuleGetFunction(MUfunction* function, MUmodule module, const char* name) {
  return driver_api<"muModuleGetFunction">([&] {
    if (function == nullptr || name == nullptr) {
      return musaErrorInvalidValue;
    }
    if (!loaded(module)) {
      return musaErrorInvalidResourceHandle;
    }
    void* symbol = dlsym(module->library, name);
    if (symbol == nullptr || find_kernel(symbol) == nullptr) {
      return musaErrorSymbolNotFound;
    }
    *function = static_cast<MUfunction>(symbol);
    return musaSuccess;
  });
}

MUresult muModuleGetGlobal(MUdeviceptr* pointer, size_t* bytes, MUmodule module, const char* name) {
  return driver_api<"muModuleGetGlobal">([&] {
    if (name == nullptr) {
      return musaErrorInvalidValue;
    }
    if (!loaded(module)) {
      return musaErrorInvalidResourceHandle;
    }
    void* symbol = dlsym(module->library, name);
    Dl_info place;
    const ElfW(Sym)* entry = nullptr;
    if (symbol == nullptr ||
        dladdr1(symbol, &place, reinterpret_cast<void**>(const_cast<ElfW(Sym)**>(&entry)), RTLD_DL_SYMENT) == 0 ||
        entry == nullptr || ELF64_ST_TYPE(entry->st_info) != STT_OBJECT) {
      return musaErrorSymbolNotFound;
    }
    register_symbol(symbol, entry->st_size);
    if (pointer != nullptr) {
      *pointer = static_cast<MUdeviceptr>(reinterpret_cast<uintptr_t>(symbol));
    }
    if (bytes != nullptr) {
      *bytes = entry->st_size;
    }
    return musaSuccess;
  });
}

MUresult muFuncGetAttribute(int* value, MUfunction_attribute attribute, MUfunction function) {
  return driver_api<"muFuncGetAttribute">([&] {
    return with_function(function, [&](const Kernel& kernel) {
      if (value == nullptr) {
        return musaErrorInvalidValue;
      }
      const musaDeviceProp& p = current_device()->properties;
      switch (attribute) {
        case MU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
          *value = kernel.max_threads > 0 ? kernel.max_threads : p.maxThreadsPerBlock;
          return musaSuccess;
        case MU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(kernel.static_shared); return musaSuccess;
        case MU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
        case MU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = 0; return musaSuccess;
        case MU_FUNC_ATTRIBUTE_NUM_REGS: *value = 32; return musaSuccess;
        case MU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          *value = kernel.max_dynamic_shared >= 0 ? kernel.max_dynamic_shared
                                                  : static_cast<int>(p.sharedMemPerBlock - kernel.static_shared);
          return musaSuccess;
        default: return musaErrorInvalidValue;
      }
    });
  });
}

MUresult muFuncSetAttribute(MUfunction function, MUfunction_attribute attribute, int value) {
  return driver_api<"muFuncSetAttribute">([&] {
    return with_function(function, [&](Kernel& kernel) {
      switch (attribute) {
        case MU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
          return allow_dynamic_shared(*current_device(), kernel, value);
        case MU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
          return value >= -1 && value <= 100 ? musaSuccess : musaErrorInvalidValue;
        default: return musaErrorInvalidValue;
      }
    });
  });
}

MUresult muFuncSetCacheConfig(MUfunction function, MUfunc_cache) {
  return driver_api<"muFuncSetCacheConfig">(
      [&] { return with_function(function, [](Kernel&) { return musaSuccess; }); });
}

MUresult muOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, MUfunction function, int block_size, size_t dynamic_bytes) {
  return driver_api<"muOccupancyMaxActiveBlocksPerMultiprocessor">([&] {
    return with_function(function, [&](const Kernel& kernel) {
      if (blocks == nullptr || block_size <= 0) {
        return musaErrorInvalidValue;
      }
      *blocks = active_blocks(*current_device(), kernel, block_size, dynamic_bytes);
      return musaSuccess;
    });
  });
}

MUresult muLaunchKernel(
    MUfunction function, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
    unsigned int bz, unsigned int shared_bytes, MUstream stream, void** parameters, void** extra) {
  return driver_api<"muLaunchKernel">([&] {
    return launch(function, dim3(gx, gy, gz), dim3(bx, by, bz), shared_bytes, stream, parameters, extra, false);
  });
}

MUresult muLaunchKernelEx(const MUlaunchConfig* config, MUfunction function, void** parameters, void** extra) {
  return driver_api<"muLaunchKernelEx">([&] {
    if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) {
      return musaErrorInvalidValue;
    }
    bool cooperative = false;
    for (unsigned i = 0; i < config->numAttrs; ++i) {
      if (config->attrs[i].id == MU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
        cooperative = config->attrs[i].value.cooperative != 0;
      } else if (config->attrs[i].id != MU_LAUNCH_ATTRIBUTE_IGNORE) {
        return musaErrorNotSupported;
      }
    }
    return launch(
        function, dim3(config->gridDimX, config->gridDimY, config->gridDimZ),
        dim3(config->blockDimX, config->blockDimY, config->blockDimZ), config->sharedMemBytes, config->hStream,
        parameters, extra, cooperative);
  });
}
