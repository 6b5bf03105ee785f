// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "engine/kernel.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace musa_emulator {
namespace {

// Modules register kernels while they are loaded, on any thread. No other lock is acquired under this one.
struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, std::shared_ptr<Kernel>> kernels;
};

Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

// Whether a template argument is double, or has such an argument. Parameters in parentheses do not count: they are those of
// the host's function in which a lambda of the kernel is written.
bool names_double(std::string_view name) {
  constexpr std::string_view word = "double";
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '(' ? 1 : name[i] == ')' ? -1 : 0;
    if (depth == 0 && name.substr(i, word.size()) == word) {
      return true;
    }
  }
  return false;
}

class TaskLaunch : public Launch {
 public:
  TaskLaunch(const char* name, musaEmulatorTaskFn function, void* payload, void (*destroy)(void*))
      : name_(name != nullptr ? name : "task"), function_(function), payload_(payload), destroy_(destroy) {}
  ~TaskLaunch() override {
    if (destroy_ != nullptr) {
      destroy_(payload_);
    }
  }
  TaskLaunch(const TaskLaunch&) = delete;
  TaskLaunch& operator=(const TaskLaunch&) = delete;

  musaError_t run() override { return function_(payload_); }
  const char* name() const override { return name_.c_str(); }

 private:
  std::string name_;
  musaEmulatorTaskFn function_;
  void* payload_;
  void (*destroy_)(void*);
};

} // namespace

KernelLaunch::KernelLaunch(
    const Device& device, std::shared_ptr<const Kernel> kernel, dim3 grid, dim3 block, size_t shared_bytes,
    void** arguments, bool cooperative)
    : device_(&device),
      kernel_(std::move(kernel)),
      grid_(grid),
      block_(block),
      shared_bytes_(shared_bytes),
      cooperative_(cooperative) {
  // Every argument starts at an address aligned for any type, because a size does not determine the alignment.
  constexpr size_t unit = sizeof(max_align_t);
  size_t units = 0;
  for (const size_t size : kernel_->argument_sizes) {
    units += (size + unit - 1) / unit;
  }
  storage_.resize(units);
  max_align_t* next = storage_.data();
  for (size_t i = 0; i < kernel_->argument_sizes.size(); ++i) {
    std::memcpy(next, arguments[i], kernel_->argument_sizes[i]);
    pointers_.push_back(next);
    next += (kernel_->argument_sizes[i] + unit - 1) / unit;
  }
}

musaError_t KernelLaunch::run() {
  return kernel_->run_body != nullptr ? kernel_->run_body(*this)
                                      : kernel_->entry(pointers_.data(), grid_, block_, shared_bytes_);
}

musaError_t register_kernel(const void* symbol, const musaEmulatorKernelInfo& info) {
  if (symbol == nullptr || info.entry == nullptr || (info.argumentCount != 0 && info.argumentSizes == nullptr)) {
    return musaErrorInvalidValue;
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->symbol = symbol;
  kernel->name = info.name != nullptr ? info.name : "kernel";
  kernel->entry = info.entry;
  kernel->argument_sizes.assign(info.argumentSizes, info.argumentSizes + info.argumentCount);
  kernel->max_threads = info.maxThreadsPerBlock;
  kernel->static_shared = info.staticSharedBytes;
  register_kernel(std::move(kernel));
  return musaSuccess;
}

void register_kernel(std::shared_ptr<Kernel> kernel) {
  kernel->float64 = names_double(kernel->name);
  const std::lock_guard lock(registry().mutex);
  const void* symbol = kernel->symbol;
  registry().kernels[symbol] = std::move(kernel);
}

musaError_t unregister_kernel(const void* symbol) {
  std::lock_guard lock(registry().mutex);
  return registry().kernels.erase(symbol) != 0 ? musaSuccess : musaErrorInvalidDeviceFunction;
}

std::shared_ptr<Kernel> find_kernel(const void* symbol) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().kernels.find(symbol);
  return found != registry().kernels.end() ? found->second : nullptr;
}

musaError_t make_launch(
    const Device& device, const void* symbol, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
    bool cooperative, std::shared_ptr<Launch>* launch) {
  const std::shared_ptr<Kernel> kernel = find_kernel(symbol);
  if (kernel == nullptr) {
    return musaErrorInvalidDeviceFunction;
  }
  if (kernel->float64 && !engine().config.float64) {
    std::fprintf(
        stderr,
        "musa-emulator: kernel %s needs float64, which this device does not compute (MUSA_EMULATOR_FLOAT64=0)\n",
        kernel->name.c_str());
    return musaErrorNoKernelImageForDevice;
  }
  const musaDeviceProp& p = device.properties;
  const auto fits = [](dim3 size, const int* limit) {
    return size.x > 0 && size.y > 0 && size.z > 0 && size.x <= static_cast<unsigned>(limit[0]) &&
        size.y <= static_cast<unsigned>(limit[1]) && size.z <= static_cast<unsigned>(limit[2]);
  };
  const size_t threads = size_t{block.x} * block.y * block.z;
  if (!fits(grid, p.maxGridSize) || !fits(block, p.maxThreadsDim) ||
      threads > static_cast<size_t>(p.maxThreadsPerBlock)) {
    return musaErrorInvalidConfiguration;
  }
  if (kernel->max_threads > 0 && threads > static_cast<size_t>(kernel->max_threads)) {
    return musaErrorLaunchOutOfResources; // exceeds __launch_bounds__
  }
  const size_t dynamic_limit = kernel->max_dynamic_shared >= 0 ? static_cast<size_t>(kernel->max_dynamic_shared)
                                                               : p.sharedMemPerBlock - kernel->static_shared;
  if (shared_bytes > dynamic_limit || shared_bytes + kernel->static_shared > p.sharedMemPerBlockOptin) {
    return musaErrorInvalidValue;
  }
  if (arguments == nullptr && !kernel->argument_sizes.empty()) {
    return musaErrorInvalidValue;
  }
  *launch = std::make_shared<KernelLaunch>(device, kernel, grid, block, shared_bytes, arguments, cooperative);
  return musaSuccess;
}

int active_blocks(const Device& device, const Kernel& kernel, int block_size, size_t dynamic_bytes) {
  const musaDeviceProp& p = device.properties;
  const size_t shared = checked_sum(kernel.static_shared, dynamic_bytes);
  size_t fit = static_cast<size_t>(p.maxThreadsPerMultiProcessor / block_size);
  fit = std::min(fit, static_cast<size_t>(p.maxBlocksPerMultiProcessor));
  if (shared != 0) {
    fit = std::min(fit, p.sharedMemPerMultiprocessor / shared);
  }
  const int limit = kernel.max_threads > 0 ? kernel.max_threads : p.maxThreadsPerBlock;
  return block_size > limit ? 0 : static_cast<int>(fit);
}

bool fits_cooperatively(const Device& device, const Kernel& kernel, dim3 grid, dim3 block, size_t dynamic_bytes) {
  const size_t threads = size_t{block.x} * block.y * block.z;
  const int resident = active_blocks(device, kernel, static_cast<int>(threads), dynamic_bytes);
  const size_t capacity = static_cast<size_t>(resident) * static_cast<size_t>(device.properties.multiProcessorCount);
  return size_t{grid.x} * grid.y * grid.z <= capacity;
}

musaError_t allow_dynamic_shared(const Device& device, Kernel& kernel, int bytes) {
  const auto limit = static_cast<int>(device.properties.sharedMemPerBlockOptin);
  if (bytes < 0 || bytes + static_cast<int>(kernel.static_shared) > limit) {
    return musaErrorInvalidValue;
  }
  kernel.max_dynamic_shared = bytes;
  return musaSuccess;
}

std::shared_ptr<Launch> make_task(
    const char* name, musaEmulatorTaskFn function, void* payload, void (*destroy)(void*)) {
  return std::make_shared<TaskLaunch>(name, function, payload, destroy);
}

} // namespace musa_emulator
