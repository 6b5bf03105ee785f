// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by the suites: a fixture that resets the emulator and checks for leaks, and classes that keep a stream
// busy in every execution mode.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "musa_emulator.h"
#include "musa_runtime.h"

// Compares names of errors, which are easier to read in a failure than codes.
#define EXPECT_STATUS(expected, expression) \
  EXPECT_STREQ(musaGetErrorName(expected), musaGetErrorName(expression)) << #expression
#define EXPECT_OK(expression) EXPECT_STATUS(musaSuccess, expression)
#define ASSERT_OK(expression) ASSERT_STREQ("musaSuccess", musaGetErrorName(expression)) << #expression

inline bool mode_is(const char* mode) { return std::string(musaEmulatorMode()) == mode; }

class EmulatorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(musaEmulatorReset()); }

  void TearDown() override {
    musaEmulatorClearFaults();
    EXPECT_EQ(0u, musaEmulatorPendingOperations()) << "work was left behind";
    for (int device = 0; device < 2; ++device) {
      EXPECT_EQ(0u, musaEmulatorLiveAllocations(device)) << "device memory leaked";
    }
    EXPECT_EQ(0u, musaEmulatorLiveHostAllocations()) << "host memory leaked";
    EXPECT_EQ(0u, musaEmulatorLiveStreams()) << "a stream leaked";
    EXPECT_EQ(0u, musaEmulatorLiveEvents()) << "an event leaked";
    EXPECT_EQ(0u, musaEmulatorLiveGraphs()) << "a graph leaked";
    for (const auto& [name, value] : environment_) {
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    if (!environment_.empty()) {
      EXPECT_OK(musaEmulatorReset());
    }
  }

  // Changes the environment for the rest of the test. An empty value unsets the variable.
  void configure(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) {
      const char* old = getenv(name.c_str());
      environment_.emplace(name, old != nullptr ? old : "");
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
    }
    ASSERT_OK(musaEmulatorReset());
  }

 private:
  std::map<std::string, std::string> environment_;
};

// Work at the head of a stream that does not end before release(). In lazy mode, in which work runs only when a
// thread waits, an empty operation has the same effect; a blocking one would block the waiting thread.
class Blocker {
 public:
  explicit Blocker(musaStream_t stream) {
    if (mode_is("lazy")) {
      EXPECT_OK(musaLaunchHostFunc(stream, [](void*) {}, nullptr));
      return;
    }
    // Enqueued by another thread, because in inline mode the submitting thread runs it.
    thread_ = std::thread([this, stream] { EXPECT_OK(musaLaunchHostFunc(stream, run, this)); });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return started_; });
  }
  ~Blocker() { release(); }

  void release() {
    {
      std::lock_guard lock(mutex_);
      released_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) {
      thread_.join();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !started_ || ended_; });
  }

 private:
  static void run(void* self) {
    auto& blocker = *static_cast<Blocker*>(self);
    std::unique_lock lock(blocker.mutex_);
    blocker.started_ = true;
    blocker.changed_.notify_all();
    blocker.changed_.wait(lock, [&blocker] { return blocker.released_; });
    blocker.ended_ = true;
    blocker.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  bool released_ = false;
  bool ended_ = false;
  std::thread thread_;
};

// Records numbers in the order in which the work of streams runs.
class Journal {
 public:
  void append_on(musaStream_t stream, int value) {
    auto* entry = new Entry{this, value};
    EXPECT_OK(musaLaunchHostFunc(stream, write, entry));
  }
  std::vector<int> entries() {
    std::lock_guard lock(mutex_);
    return entries_;
  }
  void append(int value) {
    std::lock_guard lock(mutex_);
    entries_.push_back(value);
  }

 private:
  struct Entry {
    Journal* journal;
    int value;
  };
  static void write(void* data) {
    auto* entry = static_cast<Entry*>(data);
    entry->journal->append(entry->value);
    delete entry;
  }

  std::mutex mutex_;
  std::vector<int> entries_;
};

struct Stream {
  explicit Stream(unsigned flags = musaStreamNonBlocking) { EXPECT_OK(musaStreamCreateWithFlags(&handle, flags)); }
  ~Stream() { EXPECT_OK(musaStreamDestroy(handle)); }
  Stream(const Stream&) = delete;
  operator musaStream_t() const { return handle; }
  musaStream_t handle = nullptr;
};

struct Event {
  explicit Event(unsigned flags = musaEventDefault) { EXPECT_OK(musaEventCreateWithFlags(&handle, flags)); }
  ~Event() { EXPECT_OK(musaEventDestroy(handle)); }
  Event(const Event&) = delete;
  operator musaEvent_t() const { return handle; }
  musaEvent_t handle = nullptr;
};

template <class T>
struct DeviceArray {
  explicit DeviceArray(size_t count) { EXPECT_OK(musaMalloc(&data, count * sizeof(T))); }
  ~DeviceArray() { EXPECT_OK(musaFree(data)); }
  DeviceArray(const DeviceArray&) = delete;
  operator T*() const { return data; }
  T* data = nullptr;
};

// Copies through the API, because the host may be unable to address device memory.
template <class T>
std::vector<T> read_back(const T* device, size_t count) {
  std::vector<T> host(count);
  EXPECT_OK(musaMemcpy(host.data(), device, count * sizeof(T), musaMemcpyDeviceToHost));
  return host;
}

template <class T>
void write_to(T* device, const std::vector<T>& host) {
  EXPECT_OK(musaMemcpy(device, host.data(), host.size() * sizeof(T), musaMemcpyHostToDevice));
}
