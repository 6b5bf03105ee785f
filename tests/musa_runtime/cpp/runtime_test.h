// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by the suites: a fixture that checks for leaks of device and host memory, threads that report exceptions,
// and the emulator suites' classes that keep a stream busy.
#pragma once

#include <ATen/musa/PinnedMemoryAllocator.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAEvent.h>
#include <c10/musa/MUSAFunctions.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>

#include <array>
#include <deque>
#include <random>

#include "../../musa_emulator/cpp/emulator_test.h"

namespace allocator = c10::musa::MUSACachingAllocator;
using c10::DeviceIndex;
using c10::musa::MUSAEvent;
using c10::musa::MUSAGuard;
using c10::musa::MUSAStream;
using c10::musa::MUSAStreamGuard;

constexpr int kDevices = 2;
constexpr int kThreads = 4;

// Runs body(thread) on several threads at once; an exception fails the test with its text.
inline void on_threads(const std::function<void(int)>& body, int threads = kThreads) {
  std::vector<std::thread> running;
  std::atomic<int> ready{0};
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      ++ready;
      while (ready < threads) { // all start together, so that their first uses coincide
        std::this_thread::yield();
      }
      try {
        body(t);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "thread " << t << " threw: " << error.what();
      }
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
}

inline int64_t allocated_bytes(DeviceIndex device) {
  return allocator::getDeviceStats(device).allocated_bytes[0].current;
}

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    musaEmulatorClearFaults();
    for (DeviceIndex device = kDevices - 1; device >= 0; --device) {
      c10::musa::set_device(device);
      c10::musa::setCurrentMUSAStream(c10::musa::getDefaultMUSAStream(device));
    }
  }

  void TearDown() override {
    musaEmulatorClearFaults();
    settle();
    EXPECT_EQ(0u, musaEmulatorPendingOperations()) << "work was left behind";
    for (DeviceIndex device = 0; device < kDevices; ++device) {
      EXPECT_EQ(0, allocated_bytes(device)) << "musa:" << int(device) << ": a test kept memory";
      EXPECT_EQ(0, allocator::getDeviceStats(device).reserved_bytes[0].current) << "a segment is still counted";
      EXPECT_EQ(0u, musaEmulatorLiveAllocations(device)) << "the SDK keeps a segment";
    }
    EXPECT_EQ(0u, musaEmulatorLiveHostAllocations()) << "page-locked memory leaked";
  }

  // Waits for all work, then empties the caches.
  static void settle() {
    for (DeviceIndex device = 0; device < kDevices; ++device) {
      const MUSAGuard guard(device);
      c10::musa::device_synchronize();
    }
    allocator::emptyCache();
    at::musa::getPinnedMemoryAllocator()->empty_cache();
  }
};

// Device memory filled with one value, which shows whether other code wrote to it.
class Stamped {
 public:
  Stamped(size_t size, unsigned char value, MUSAStream stream)
      : data_(static_cast<char*>(allocator::raw_alloc_with_stream(size, stream.stream()))),
        size_(size),
        value_(value),
        stream_(stream) {
    EXPECT_OK(musaMemsetAsync(data_, value, size, stream.stream()));
  }

  // Reads the first and last bytes, in the order of a stream.
  void read(MUSAStream stream, std::vector<unsigned char>& bytes) const {
    const size_t edge = std::min<size_t>(size_, 64);
    bytes.resize(2 * edge);
    EXPECT_OK(musaMemcpyAsync(bytes.data(), data_, edge, musaMemcpyDeviceToHost, stream.stream()));
    EXPECT_OK(
        musaMemcpyAsync(bytes.data() + edge, data_ + size_ - edge, edge, musaMemcpyDeviceToHost, stream.stream()));
  }

  void expect_intact() const {
    std::vector<unsigned char> bytes;
    read(stream_, bytes);
    stream_.synchronize();
    for (const unsigned char byte : bytes) {
      ASSERT_EQ(value_, byte) << "memory of " << size_ << " bytes was overwritten";
    }
  }

  void free() {
    allocator::raw_delete(data_);
    data_ = nullptr;
  }
  char* data() const { return data_; }
  unsigned char value() const { return value_; }
  // Returns a DataPtr that frees the memory, like a tensor's storage.
  c10::DataPtr release() {
    char* data = std::exchange(data_, nullptr);
    return {data, data, allocator::deleter(), stream_.device()};
  }

 private:
  char* data_;
  size_t size_;
  unsigned char value_;
  MUSAStream stream_;
};
