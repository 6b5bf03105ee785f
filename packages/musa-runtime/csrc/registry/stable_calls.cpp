// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The functions of stable_abi.h that kernels call while they run.
#include <registry/stable_kernel.h>

#include <ATen/ops/empty.h>
#include <c10/musa/MUSADeviceArgument.h>
#include <c10/musa/MUSAStream.h>
#include <c10/util/FunctionRef.h>
#include <torch/csrc/inductor/aoti_torch/utils.h>

#include <exception>
#include <utility>

namespace musa_runtime {
namespace {

// The last error that one of the C functions returned as a message.
struct Raised {
  std::exception_ptr error;
  std::string message;
};
Raised& raised() {
  thread_local Raised instance;
  return instance;
}

const char* message_of(c10::function_ref<void()> run) noexcept {
  raised() = {};
  try {
    run();
    return nullptr;
  } catch (const c10::Error& error) {
    raised() = {std::current_exception(), error.what_without_backtrace()};
  } catch (const std::exception& error) {
    raised() = {std::current_exception(), error.what()};
  }
  return raised().message.c_str();
}

} // namespace

std::exception_ptr take_original_error(const std::string& message) {
  Raised& last = raised();
  return last.error != nullptr && last.message == message ? std::exchange(last.error, nullptr) : nullptr;
}

} // namespace musa_runtime

extern "C" {

const char* musa_stable_current_stream(int32_t device_index, void** stream) {
  return musa_runtime::message_of(
      [&] { *stream = c10::musa::getCurrentMUSAStream(c10::musa::to_device_index(device_index)).stream(); });
}

const char* musa_stable_new_empty(
    AtenTensorOpaque* like, int64_t dimensions, const int64_t* sizes, AtenTensorOpaque** made) {
  return musa_runtime::message_of([&] {
    const at::Tensor& model = *torch::aot_inductor::tensor_handle_to_tensor_pointer(like);
    *made = torch::aot_inductor::new_tensor_handle(
        at::empty(at::IntArrayRef(sizes, static_cast<size_t>(dimensions)), model.options()));
  });
}

} // extern "C"
