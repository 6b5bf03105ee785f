// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/call.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

#include <musa_runtime.h>

#include "pool.h"
#include "support/alias.h"
#include "support/modes.h"

namespace musa_emulator::dnn {
namespace {

using musa::dnn::HandleAccess;

thread_local c10::DeviceIndex device_of_call = 0;

// Whether torch computes with CUDA in this process. Loads no library: `import torch` of a CUDA build has loaded them.
bool torch_has_cuda() {
  static const bool has = [] {
    if (!at::hasCUDA() || !c10::impl::hasDeviceGuardImpl(c10::kCUDA)) {
      return false;
    }
    at::globalContext().lazyInitDevice(c10::kCUDA);
    return true;
  }();
  return has;
}

// torch.cuda identifies an external stream by its address, and the default stream by 0.
c10::Stream torch_stream(musaStream_t stream, c10::DeviceIndex device) {
  constexpr uintptr_t legacy = 1; // cudaStreamLegacy, an alias of the default stream
  const auto address = reinterpret_cast<uintptr_t>(stream);
  return c10::Stream(
      c10::Stream::UNSAFE, c10::Device(c10::kCUDA, device),
      address == legacy ? 0 : static_cast<c10::StreamId>(address));
}

// Makes a device and a stream torch.cuda's current ones while the guard is alive.
class OnStream {
 public:
  OnStream(musaStream_t stream, c10::DeviceIndex device)
      : impl_(c10::impl::getDeviceGuardImpl(c10::kCUDA)),
        device_(impl_->exchangeDevice(c10::Device(c10::kCUDA, device))),
        stream_(impl_->exchangeStream(torch_stream(stream, device))) {}
  ~OnStream() {
    impl_->exchangeStream(stream_);
    impl_->uncheckedSetDevice(device_);
  }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  const c10::impl::DeviceGuardImplInterface* const impl_;
  const c10::Device device_;
  const c10::Stream stream_;
};

// While the stream is being captured into a graph, scratch memory comes from a pool of that capture, and the thread
// may make calls that CUDA considers unsafe during a capture: allocations, and the first-call initialization of
// libraries.
class CaptureScope {
 public:
  CaptureScope(musaStream_t stream, c10::DeviceIndex device) : device_(device) {
    musaStreamCaptureStatus status = musaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (stream == nullptr) {
      return; // the default stream is not captured
    }
    musaGraph_t graph = nullptr;
    if (const musaError_t error = musaStreamGetCaptureInfo_v2(stream, &status, &id, &graph, nullptr, nullptr);
        error != musaSuccess) {
      throw std::runtime_error(std::string("musaStreamGetCaptureInfo_v2 failed: ") + musaGetErrorString(error));
    }
    if (status != musaStreamCaptureStatusActive) {
      return;
    }
    capture_ = id + 1;
    musaThreadExchangeStreamCaptureMode(&mode_);
    begin_pool(device_, capture_, stream, graph);
  }
  ~CaptureScope() {
    if (capture_ != 0) {
      end_pool(device_, capture_);
      musaThreadExchangeStreamCaptureMode(&mode_);
    }
  }
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

 private:
  const c10::DeviceIndex device_;
  unsigned long long capture_ = 0; // 0: not capturing
  musaStreamCaptureMode mode_ = musaStreamCaptureModeRelaxed;
};

constexpr at::Float32Backend kCuda = at::Float32Backend::CUDA;

bool is_tf32(at::Float32Op op) { return at::globalContext().float32Precision(kCuda, op) == at::Float32Precision::TF32; }

// Sets an operation's own precision back, so that it has the value `before`. It has none of its own, if that is what
// it takes from the settings of more operations.
void restore(at::Float32Op op, at::Float32Precision before) {
  at::Context& context = at::globalContext();
  context.setFloat32Precision(kCuda, op, at::Float32Precision::NONE);
  if (context.float32Precision(kCuda, op) != before) {
    context.setFloat32Precision(kCuda, op, before);
  }
}

// Applies the handle's TF32 setting to torch's settings. These are process-wide, so another thread that multiplies
// with torch.cuda at the same time is affected too. torch has a setting for each operation, and two older ones, whose
// values cannot be read if a program has changed one kind alone. Its CUDA operators require that both are equal.
class Precision {
 public:
  Precision(const char* name, bool allow) {
    if (!multiplies(name)) {
      return;
    }
    at::Context& context = at::globalContext();
    products_changed_ = is_tf32(at::Float32Op::MATMUL) != allow;
    if (products_changed_) {
      product_ = context.float32Precision(kCuda, at::Float32Op::MATMUL);
      older_product_ = older([&] { return context.allowTF32CuBLAS(); });
      context.setAllowTF32CuBLAS(allow);
    }
    layers_changed_ = is_tf32(at::Float32Op::CONV) != allow || is_tf32(at::Float32Op::RNN) != allow;
    if (layers_changed_) {
      convolution_ = context.float32Precision(kCuda, at::Float32Op::CONV);
      recurrent_ = context.float32Precision(kCuda, at::Float32Op::RNN);
      older_layers_ = older([&] { return context.allowTF32CuDNN(); });
      context.setAllowTF32CuDNN(allow);
    }
  }
  ~Precision() {
    if (products_changed_) {
      at::globalContext().setAllowTF32CuBLAS(older_product_);
      restore(at::Float32Op::MATMUL, product_);
    }
    if (layers_changed_) {
      at::globalContext().setAllowTF32CuDNN(older_layers_);
      restore(at::Float32Op::CONV, convolution_);
      restore(at::Float32Op::RNN, recurrent_);
    }
  }
  Precision(const Precision&) = delete;
  Precision& operator=(const Precision&) = delete;

 private:
  static bool multiplies(const char* name) {
    for (const char* part : {"MatMul", "Convolution", "Dot::", "Attention"}) {
      if (std::strstr(name, part) != nullptr) {
        return true;
      }
    }
    return false;
  }

  // The value of an older setting. If it differs from the newer one, torch raises an error, and the older one has its
  // initial value: false for products. No operator reads that of layers.
  template <typename Read>
  static bool older(Read read) {
    try {
      return read();
    } catch (const c10::Error&) {
      return false;
    }
  }

  bool products_changed_ = false;
  bool older_product_ = false;
  at::Float32Precision product_ = at::Float32Precision::NONE;
  bool layers_changed_ = false;
  bool older_layers_ = false;
  at::Float32Precision convolution_ = at::Float32Precision::NONE;
  at::Float32Precision recurrent_ = at::Float32Precision::NONE;
};

} // namespace

c10::Device current_device() { return c10::Device(c10::kCUDA, device_of_call); }

const int32_t* on_host(const Tensor& numbers, at::Tensor& copy) {
  copy = alias(numbers).to(c10::kCPU);
  return copy.const_data_ptr<int32_t>();
}

Call::Call(const char* name, const Handle& handle, std::initializer_list<const Tensor*> tensors)
    : Checks(name, handle, tensors) {
  device_of_call = static_cast<c10::DeviceIndex>(HandleAccess::device(handle));
}

Status Call::run(void (*task)(void*), void* own) {
  if (!require(
          torch_has_cuda(), Status::NOT_INITIALIZED,
          "torch's CUDA operators are not available: torch was built for the CPU, or finds no GPU. Fix: install a CUDA "
          "build of torch, or disable this libmudnn: TORCH_MUSA_OPS=ported,host-copy")) {
    return status_;
  }
  const musaStream_t stream = HandleAccess::stream(handle_);
  try {
    const OnStream on_stream(stream, device_of_call);
    const CaptureScope capture(stream, device_of_call);
    const Precision precision(name_, HandleAccess::allow_tf32(handle_));
    const AliasScope aliases;
    const c10::impl::ExcludeDispatchKeyGuard exclude(above_backends);
    const NoGrad no_grad;
    task(own);
    return Status::SUCCESS;
  } catch (const c10::OutOfMemoryError& error) {
    std::fprintf(stderr, "muDNN ERROR# ALLOC_FAILED in %s: %s\n", name_, error.what_without_backtrace());
    return Status::ALLOC_FAILED;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "muDNN ERROR# EXECUTION_FAILED in %s: %s\n", name_, error.what());
    return Status::EXECUTION_FAILED;
  }
}

} // namespace musa_emulator::dnn
