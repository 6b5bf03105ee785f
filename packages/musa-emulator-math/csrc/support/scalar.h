// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

namespace musa_emulator::math {

// A number passed by address. A number in host memory is read immediately, because the caller may change it after the
// call; a number in device memory is read when the task runs, because earlier work on the stream may write it.
template <class T>
class Scalar {
 public:
  Scalar(bool on_device, const void* pointer)
      : device_(on_device ? static_cast<const T*>(pointer) : nullptr),
        value_(!on_device && pointer != nullptr ? *static_cast<const T*>(pointer) : T()) {}
  T operator()() const { return device_ != nullptr ? *device_ : value_; }

 private:
  const T* device_;
  T value_;
};

} // namespace musa_emulator::math
