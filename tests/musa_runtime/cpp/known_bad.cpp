// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Programs with one mistake each in the use of the runtime's classes, and the same programs without it.
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <c10/musa/allocator/MUSADeviceCachingAllocator.h>
#include <musa_runtime/init.h>

#include <cstdio>
#include <cstring>

#include "runtime_test.h"

namespace {

// An allocation that outlives its allocator. Freeing it uses state that is already destroyed.
int outliving_allocation(bool right) {
  auto* cache = new allocator::DeviceCachingAllocator(0);
  void* const memory = cache->malloc(4 << 20, nullptr);
  if (!right) {
    delete cache;
  }
  const bool known = cache->free(memory);
  delete cache;
  return known ? 0 : 3;
}

// A use of a null pointer to a stream.
int null_stream(bool right) {
  const MUSAStream stream = c10::musa::getDefaultMUSAStream(0);
  const MUSAStream* volatile used = right ? &stream : nullptr;
  return used->id() == 0 ? 0 : 3;
}

// Two threads draw from one generator. By its documentation, the caller must lock the mutex.
int shared_generator(bool locked) {
  at::Generator generator = at::musa::detail::createMUSAGenerator(0);
  on_threads(
      [&](int) {
        for (int i = 0; i < 100; ++i) {
          std::unique_lock<std::mutex> lock(generator.mutex(), std::defer_lock);
          if (locked) {
            lock.lock();
          }
          static_cast<at::MUSAGeneratorImpl*>(generator.unsafeGetGeneratorImpl())->philox_engine_inputs(4);
        }
      },
      2);
  return 0;
}

// Two threads change a count that the allocator's mutex guards.
int shared_count(bool locked) {
  allocator::AllocatorMutex mutex;
  int count = 0;
  on_threads(
      [&](int) {
        for (int i = 0; i < 100; ++i) {
          allocator::AllocatorLock lock(mutex, std::defer_lock);
          if (locked) {
            lock.lock();
          }
          ++count;
        }
      },
      2);
  return count > 0 ? 0 : 3;
}

// Another backend registers its name before the program initializes musa.
int taken_name() {
  c10::register_privateuse1_backend("other");
  try {
    musa_runtime::init();
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.msg().c_str());
    return 4;
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const char* task = argc > 1 ? argv[1] : "";
  const auto is = [task](const char* name) { return std::strcmp(task, name) == 0; };
  if (is("outliving-allocation") || is("kept-allocator")) {
    return outliving_allocation(is("kept-allocator"));
  }
  if (is("null-stream") || is("stream")) {
    return null_stream(is("stream"));
  }
  if (is("unlocked-generator") || is("locked-generator")) {
    return shared_generator(is("locked-generator"));
  }
  if (is("unlocked-count") || is("locked-count")) {
    return shared_count(is("locked-count"));
  }
  if (is("taken-name")) {
    return taken_name();
  }
  std::fprintf(stderr, "known_bad: unknown task %s\n", task);
  return 3;
}
