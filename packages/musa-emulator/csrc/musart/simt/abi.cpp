// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions that compiled kernels call.
#include "simt/abi.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/kernel.h"
#include "simt/block.h"
#include "simt/grid.h"

namespace musa_simt {

using musa_emulator::simt::running_block;

bool musa_simt_next_thread() { return running_block->next_thread(); }

uint3* musa_simt_index() { return running_block->index(); }

int musa_simt_barrier(const Site* site, Count count, int predicate) {
  return running_block->barrier(site, count, predicate);
}

void musa_simt_exchange(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width) {
  running_block->meet(site, {kind, bytes, static_cast<unsigned>(width), nullptr}, mask, give, get, operand);
}

void musa_simt_exchange_within(
    const Site* site, Exchange kind, unsigned mask, const void* give, void* get, size_t bytes, int operand, int width) {
  running_block->meet(
      site, {kind, bytes, static_cast<unsigned>(width), nullptr}, mask, give, get, operand, /*own_32=*/true);
}

void musa_simt_converge(
    const Site* site, Exchange kind, const void* give, void* get, size_t bytes, int operand, int width) {
  running_block->converge(site, {kind, bytes, static_cast<unsigned>(width), nullptr}, give, get, operand);
}

void musa_simt_reduce(
    const Site* site, unsigned mask, void* value, size_t bytes, void (*merge)(void* into, const void* value)) {
  running_block->meet(site, {Exchange::Sync, bytes, 0, merge}, mask, value, value, 0);
}

void musa_simt_exit() { running_block->exit_thread(); }

unsigned musa_simt_lane() { return running_block->lane(); }

void* musa_simt_shared(const Site* site, const void* key, size_t bytes, size_t alignment) {
  return running_block->shared(site, key, bytes, alignment);
}

void* musa_simt_dynamic_shared() { return running_block->dynamic_shared(); }

void musa_simt_grid_barrier(const Site* site) { running_block->grid_barrier(site); }

void musa_simt_fail(const char* message, const char* file, unsigned line, int assertion) {
  const std::string problem =
      std::string(file) + ":" + std::to_string(line) + ": " + (assertion != 0 ? "assertion failed: " : "") + message;
  if (running_block == nullptr) {
    std::fprintf(stderr, "%s\n", problem.c_str());
    std::abort();
  }
  running_block->fail(problem, assertion != 0);
}

// Returns the kernel's name as in the source.
static std::string name_of(std::string_view signature) {
  signature.remove_prefix(signature.find("kernel = ") + 9);
  return std::string(signature.substr(0, signature.find_first_of(";]")));
}

void musa_simt_register(const KernelInfo* info) {
  auto kernel = std::make_shared<musa_emulator::Kernel>();
  kernel->symbol = info->symbol;
  kernel->name = name_of(info->signature);
  kernel->body = info->body;
  kernel->run_body = &musa_emulator::simt::run;
  kernel->argument_sizes.assign(info->argument_bytes, info->argument_bytes + info->arguments);
  kernel->argument_alignments.assign(info->argument_alignments, info->argument_alignments + info->arguments);
  kernel->max_threads = info->max_threads;
  musa_emulator::register_kernel(std::move(kernel));
}

void musa_simt_unregister(const void* symbol) { musa_emulator::unregister_kernel(symbol); }

bool musa_simt_in_kernel() { return running_block != nullptr; }

bool musa_simt_is_registered(const void* symbol) { return musa_emulator::find_kernel(symbol) != nullptr; }

} // namespace musa_simt
