// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Shared by the programs in this folder: device arrays, and checks that print the values on failure.
#pragma once

#include <cstdio>
#include <vector>

#include <musa_runtime.h>

inline int failures = 0;

#define EXPECT(condition) \
  do { \
    if (!(condition)) { \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      ++failures; \
    } \
  } while (false)

#define EXPECT_EQ(actual, expected) \
  do { \
    const auto is = (actual); \
    const decltype(is) should_be = (expected); \
    if (!(is == should_be)) { \
      std::printf("%s:%d: %s is %g, not %g\n", __FILE__, __LINE__, #actual, double(is), double(should_be)); \
      ++failures; \
    } \
  } while (false)

template <class T>
class Array {
 public:
  explicit Array(size_t count, T value = T()) : count_(count) {
    musaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T));
    *this = std::vector<T>(count, value);
  }
  ~Array() { musaFree(data_); }
  Array(const Array&) = delete;

  void operator=(const std::vector<T>& values) {
    musaMemcpy(data_, values.data(), values.size() * sizeof(T), musaMemcpyHostToDevice);
  }
  operator T*() { return data_; }
  T operator[](size_t i) {
    T value;
    musaMemcpy(&value, data_ + i, sizeof(T), musaMemcpyDeviceToHost);
    return value;
  }
  std::vector<T> host() {
    std::vector<T> values(count_);
    musaMemcpy(values.data(), data_, count_ * sizeof(T), musaMemcpyDeviceToHost);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t count_;
};

inline int finish() {
  EXPECT_EQ(musaDeviceSynchronize(), musaSuccess);
  EXPECT_EQ(musaGetLastError(), musaSuccess);
  std::puts(failures == 0 ? "all as expected" : "FAILED");
  return failures == 0 ? 0 : 1;
}
