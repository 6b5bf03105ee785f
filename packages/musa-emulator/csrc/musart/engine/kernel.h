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
  // Either `entry`, which runs the whole launch, or `body`, which runs one thread, with `run_body`, which calls it
  // for all.
  musaEmulatorKernelEntry entry = nullptr;
  void (*body)(void** arguments) = nullptr;
  musaError_t (*run_body)(KernelLaunch& launch) = nullptr;
  std::vector<size_t> argument_sizes;
  std::vector<size_t> argument_alignments; // only for kernels that mcc compiled
  int max_threads = 0;
  size_t static_shared = 0;
  // The name has a type of float64. The body may compute with it as well, which is unknown.
  bool float64 = false;
  // Increased by musaFuncSetAttribute up to the device's opt-in limit; -1: the device's default limit.
  int max_dynamic_shared = -1;
};

// One launch, with a copy of its arguments.
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
// Returns nullptr if the symbol is not a kernel.
MUSA_ENGINE std::shared_ptr<Kernel> find_kernel(const void* symbol);
// Checks the launch against the device's limits and copies the arguments.
MUSA_ENGINE musaError_t make_launch(
    const Device& device, const void* symbol, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
    bool cooperative, std::shared_ptr<Launch>* launch);
// Number of blocks of this size that a multiprocessor can hold at the same time.
MUSA_ENGINE int active_blocks(const Device& device, const Kernel& kernel, int block_size, size_t dynamic_bytes);
// Whether all blocks of a cooperative launch fit on the device at the same time.
MUSA_ENGINE bool fits_cooperatively(
    const Device& device, const Kernel& kernel, dim3 grid, dim3 block, size_t dynamic_bytes);
// Sets the kernel's maximum dynamic shared memory, up to the device's opt-in limit.
MUSA_ENGINE musaError_t allow_dynamic_shared(const Device& device, Kernel& kernel, int bytes);
MUSA_ENGINE std::shared_ptr<Launch> make_task(
    const char* name, musaEmulatorTaskFn function, void* payload, void (*destroy)(void*));

} // namespace musa_emulator
