// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "simt/grid.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "engine/device.h"
#include "engine/kernel.h"
#include "engine/lifecycle.h"
#include "engine/segfault.h"
#include "simt/block.h"
#include "simt/workers.h"

namespace musa_emulator::simt {
namespace {

// About the time to wake another thread; a launch that finishes earlier uses only one.
constexpr std::chrono::microseconds kAlone{20};

LaunchShape shape_of(const KernelLaunch& launch) {
  const musaDeviceProp& device = launch.device().properties;
  const Config& config = engine().config;
  LaunchShape shape;
  shape.grid = launch.grid();
  shape.block = launch.block();
  shape.dynamic_shared = launch.shared_bytes();
  shape.shared_limit = device.sharedMemPerBlockOptin;
  shape.warp = static_cast<unsigned>(device.warpSize);
  shape.poison = config.poison;
  shape.order = config.thread_order;
  shape.seed = config.thread_order_seed;
  return shape;
}

uint3 index_of(uint64_t block, uint3 grid) {
  return {
      static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
      static_cast<unsigned>(block / (uint64_t{grid.x} * grid.y))};
}

musaError_t report(const KernelLaunch& launch, const Block& block, uint3 index) {
  std::fprintf(
      stderr, "musa-emulator: kernel %s, block (%u, %u, %u): %s\n", launch.name(), index.x, index.y, index.z,
      block.problem().c_str());
  return block.asserted() ? musaErrorAssert : musaErrorLaunchFailure;
}

// Blocks are large and reusable: one per OS thread, and another one for each kernel launched by a running kernel.
class OwnBlock {
 public:
  OwnBlock() {
    static thread_local std::unique_ptr<Block> reused = std::make_unique<Block>();
    if (running_block == nullptr) {
      prepare_for_overflow();
      block_ = reused.get();
    } else {
      nested_ = std::make_unique<Block>();
      block_ = nested_.get();
    }
  }
  Block& operator*() const { return *block_; }

 private:
  std::unique_ptr<Block> nested_;
  Block* block_;
};

musaError_t run_blocks(KernelLaunch& launch) {
  const LaunchShape shape = shape_of(launch);
  const uint64_t count = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  std::atomic<uint64_t> next{0};
  std::atomic<musaError_t> status{musaSuccess};
  // Runs one block after the other, until none is left or until() returns true.
  const auto work = [&](auto&& until) {
    const OwnBlock own;
    Block& block = *own;
    while (!until() && status.load(std::memory_order_relaxed) == musaSuccess) {
      const uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (number >= count) {
        return;
      }
      const uint3 index = index_of(number, shape.grid);
      const Block::Outcome outcome = block.run(shape, index, launch.kernel().body, launch.arguments());
      if (outcome == Block::Outcome::AtGridBarrier) {
        std::fprintf(
            stderr,
            "musa-emulator: kernel %s waits for its grid, but was not launched by musaLaunchCooperativeKernel\n",
            launch.name());
        status = musaErrorLaunchFailure;
      } else if (outcome == Block::Outcome::Failed) {
        status = report(launch, block, index);
      }
    }
  };
  // A launch by a running kernel uses only this thread, because the other threads may wait for this kernel.
  const size_t threads = running_block == nullptr ? engine().config.threads : 1;
  if (threads > 1 && count > 1) {
    const auto begin = std::chrono::steady_clock::now();
    work([&] { return std::chrono::steady_clock::now() - begin > kAlone; });
    if (next.load() + 1 < count) {
      run_beside(threads - 1, [&] {
        const musaError_t fault = run_guarded(launch.name(), [&] {
          work([] { return false; });
          return musaSuccess;
        });
        if (fault != musaSuccess) {
          status = fault;
        }
      });
    }
  }
  work([] { return false; });
  return status;
}

// Runs all blocks concurrently, by switching between them on this thread.
musaError_t run_cooperative(KernelLaunch& launch) {
  const LaunchShape shape = shape_of(launch);
  const uint64_t count = uint64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  std::vector<std::unique_ptr<Block>> blocks;
  for (uint64_t i = 0; i < count; ++i) {
    blocks.push_back(std::make_unique<Block>());
  }
  for (bool first = true;; first = false) {
    uint64_t waiting = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint3 index = index_of(i, shape.grid);
      const Block::Outcome outcome =
          first ? blocks[i]->run(shape, index, launch.kernel().body, launch.arguments()) : blocks[i]->resume();
      if (outcome == Block::Outcome::Failed) {
        return report(launch, *blocks[i], index);
      }
      waiting += outcome == Block::Outcome::AtGridBarrier;
    }
    if (waiting == 0) {
      return musaSuccess;
    }
    if (waiting != count) {
      std::fprintf(
          stderr, "musa-emulator: kernel %s: %llu of %llu blocks wait at a grid barrier, and the others have ended\n",
          launch.name(), static_cast<unsigned long long>(waiting), static_cast<unsigned long long>(count));
      return musaErrorLaunchFailure;
    }
  }
}

} // namespace

musaError_t run(KernelLaunch& launch) { return launch.cooperative() ? run_cooperative(launch) : run_blocks(launch); }

} // namespace musa_emulator::simt
