// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Kernels that musaLaunchKernel can launch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/state.h"
#include "musa_emulator.h"

namespace musa_emulator {

class KernelLaunch;

struct Kernel {
  const void* symbol = nullptr;
  std::string name;
  // One of the two: a function that does the whole launch, or a body of one thread and who runs it for all.
  musaEmulatorKernelEntry entry = nullptr;
  void (*body)(void** arguments) = nullptr;
  musaError_t (*run_body)(KernelLaunch& launch) = nullptr;
  std::vector<size_t> argument_sizes;
  std::vector<size_t> argument_alignments; // of kernels that mcc compiled
  int max_threads = 0;
  size_t static_shared = 0;
  // Raised by musaFuncSetAttribute up to the device's opt-in limit; -1: the device's default limit.
  int max_dynamic_shared = -1;
};

// One launch, with its own copy of the arguments.
class MUSA_ENGINE KernelLaunch : public Launch {
 public:
  KernelLaunch(
      const Device& device, std::shared_ptr<const Kernel> kernel, dim3 grid, dim3 block, size_t shared_bytes,
      void** arguments, bool cooperative);
  musaError_t run() override;
  const char* name() const override { return kernel_->name.c_str(); }

  const Kernel& kernel() const { return *kernel_; }
  dim3 grid() const { return grid_; }
  dim3 block() const { return block_; }
  size_t shared_bytes() const { return shared_bytes_; }
  void** arguments() { return pointers_.data(); }
  const Device& device() const { return *device_; }
  bool cooperative() const { return cooperative_; }

 private:
  const Device* device_;
  std::shared_ptr<const Kernel> kernel_;
  dim3 grid_;
  dim3 block_;
  size_t shared_bytes_;
  std::vector<max_align_t> storage_;
  std::vector<void*> pointers_;
  bool cooperative_;
};

MUSA_ENGINE musaError_t register_kernel(const void* symbol, const musaEmulatorKernelInfo& info);
MUSA_ENGINE void register_kernel(std::shared_ptr<Kernel> kernel);
MUSA_ENGINE musaError_t unregister_kernel(const void* symbol);
// Null for a symbol that is not a kernel.
MUSA_ENGINE std::shared_ptr<Kernel> find_kernel(const void* symbol);
// Checks the launch against the device's limits and copies the arguments.
MUSA_ENGINE musaError_t make_launch(
    const Device& device, const void* symbol, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
    bool cooperative, std::shared_ptr<Launch>* launch);
// How many blocks of so many threads a multiprocessor holds at a time.
MUSA_ENGINE int active_blocks(const Device& device, const Kernel& kernel, int block_size, size_t dynamic_bytes);
// Whether a cooperative launch fits on the device at once.
MUSA_ENGINE bool fits_cooperatively(const Device& device, const Kernel& kernel, dim3 grid, dim3 block, size_t dynamic_bytes);
// The kernel's largest dynamic shared memory, up to what the device allows a kernel that asks for it.
MUSA_ENGINE musaError_t allow_dynamic_shared(const Device& device, Kernel& kernel, int bytes);
MUSA_ENGINE std::shared_ptr<Launch> make_task(
    const char* name, musaEmulatorTaskFn function, void* payload, void (*destroy)(void*));

} // namespace musa_emulator
