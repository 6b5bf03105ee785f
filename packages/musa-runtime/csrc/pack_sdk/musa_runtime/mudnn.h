// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN calls on torch's tensors: this thread's handle on the current stream, workspaces from the caching allocator, tensor
// descriptors, and checks of the status. For packs that call muDNN; it is compiled into them, so the runtime needs no
// muDNN. Link with musa::mudnn.
//
//   using namespace musa_runtime;
//   musa::dnn::Softmax op;
//   mudnn::check(op.SetDim(1), "Softmax::SetDim");
//   const mudnn::OnDevice on(out);
//   musa::dnn::Tensor result = mudnn::describe(out);
//   mudnn::check(op.Run(on.handle(), result, mudnn::operand(self), on.workspace()), "Softmax::Run", {&out, &self});
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGuard.h>
#include <c10/musa/MUSAStream.h>
#include <musa_runtime/operand.h>
// From SDK 5 on, mudnn.h is a C interface. The SDK is recognized by its headers, not by a version. The parts of the C++
// interface are included too, for an SDK whose mudnn.h leaves one out.
#if __has_include(<mudnncxx/mudnn.h>)
#include <mudnncxx/mudnn.h>
#if __has_include(<mudnncxx/mudnn_math.h>) && __has_include(<mudnncxx/mudnn_nn.h>)
#include <mudnncxx/mudnn_math.h>
#include <mudnncxx/mudnn_nn.h>
#endif
#if __has_include(<mudnncxx/mudnn_xmma.h>)
#include <mudnncxx/mudnn_xmma.h>
#endif
#else
#include <mudnn.h>
#include <mudnn_math.h>
#include <mudnn_nn.h>
#if __has_include(<mudnn_xmma.h>)
#include <mudnn_xmma.h>
#endif
#endif

#include <algorithm>
#include <array>
#include <initializer_list>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

namespace musa_runtime::mudnn {

namespace dnn = ::musa::dnn;

// ---- statuses

namespace detail {

inline const char* name_of(dnn::Status status) {
  switch (status) {
    case dnn::Status::SUCCESS: return "SUCCESS";
    case dnn::Status::INVALID_PARAMETER: return "INVALID_PARAMETER";
    case dnn::Status::NOT_INITIALIZED: return "NOT_INITIALIZED";
    case dnn::Status::ALLOC_FAILED: return "ALLOC_FAILED";
    case dnn::Status::NOT_SUPPORTED: return "NOT_SUPPORTED";
    case dnn::Status::INTERNAL_ERROR: return "INTERNAL_ERROR";
    case dnn::Status::ARCH_MISMATCH: return "ARCH_MISMATCH";
    case dnn::Status::EXECUTION_FAILED: return "EXECUTION_FAILED";
  }
  return "of an unknown number";
}

inline const char* meaning_of(dnn::Status status) {
  switch (status) {
    case dnn::Status::ALLOC_FAILED:
      return "Likely cause: the device is out of memory. Free tensors, or use smaller batches; "
             "torch.musa.memory_summary() says what is in use.";
    case dnn::Status::EXECUTION_FAILED:
      return "Likely causes: the current stream belongs to a graph capture that has failed, perhaps because of a call of "
             "another thread; an earlier kernel failed and the device is lost. Run again with MUSA_LAUNCH_BLOCKING=1 to see "
             "which, and restart the process.";
    case dnn::Status::NOT_INITIALIZED:
      return "Likely cause: the driver or the device is not available. `python -m torch_musa doctor` says more.";
    default:
      return "Likely causes: the muDNN installed is older than 3.0 or newer than this pack supports, or the pack passed an "
             "operand that muDNN rejects. MUDNN_LOG_LEVEL=INFO shows the call; TORCH_MUSA_OPS=<operator>=host,host-copy "
             "routes the operator around muDNN.";
  }
}

} // namespace detail

[[noreturn, gnu::cold]] inline void raise(
    dnn::Status status, const char* call, std::initializer_list<const at::Tensor*> tensors) {
  std::ostringstream text;
  text << "muDNN answered " << detail::name_of(status) << " to " << call << '(';
  const char* separator = "";
  for (const at::Tensor* tensor : tensors) {
    text << separator;
    if (tensor->defined()) {
      text << tensor->scalar_type() << tensor->sizes();
    } else {
      text << "none";
    }
    separator = ", ";
  }
  text << ").\n" << detail::meaning_of(status);
  // This error reports the failure within muDNN, so the next kernel launch must not report it again.
  C10_MUSA_CLEAR_ERROR();
  TORCH_CHECK_WITH(OutOfMemoryError, status != dnn::Status::ALLOC_FAILED, text.str());
  TORCH_CHECK(false, text.str());
}

// Raises unless the status is SUCCESS: OutOfMemoryError for ALLOC_FAILED, otherwise RuntimeError, with the call, the dtypes
// and shapes of the tensors, and the status.
inline void check(dnn::Status status, const char* call, std::initializer_list<const at::Tensor*> tensors = {}) {
  if (status != dnn::Status::SUCCESS) [[unlikely]] {
    raise(status, call, tensors);
  }
}

// ---- handles

namespace detail {

// A handle and the values last set on it, so that muDNN is called only for a change. Only this file sets them.
struct KnownHandle {
  explicit KnownHandle(c10::DeviceIndex device) : handle(device), stream(handle.GetStream()) {}

  dnn::Handle handle;
  musaStream_t stream;
  std::optional<bool> allow_tf32; // empty: never set
};

// This thread's handle for the device, created at its first use and destroyed with the thread.
inline dnn::Handle& handle_of(c10::DeviceIndex device, bool allow_tf32) {
  thread_local std::vector<std::unique_ptr<KnownHandle>> handles;
  const auto index = static_cast<size_t>(device);
  if (index >= handles.size() || handles[index] == nullptr) [[unlikely]] {
    handles.resize(std::max(index + 1, handles.size()));
    handles[index] = std::make_unique<KnownHandle>(device);
  }
  KnownHandle& known = *handles[index];
  const musaStream_t stream = c10::musa::getCurrentMUSAStream(device).stream();
  if (known.stream != stream) {
    check(known.handle.SetStream(stream), "Handle::SetStream");
    known.stream = stream;
  }
  if (known.allow_tf32 != allow_tf32) [[unlikely]] {
    check(known.handle.SetAllowTF32(allow_tf32), "Handle::SetAllowTF32");
    known.allow_tf32 = allow_tf32;
  }
  return known.handle;
}

} // namespace detail

// Sets the tensor's device for a scope: muDNN uses the current device, whatever the operands.
class OnDevice {
 public:
  // allow_tf32: whether FLOAT products and convolutions may round their operands to TF32.
  explicit OnDevice(const at::Tensor& tensor, bool allow_tf32 = false)
      : guard_(tensor.device().index()), handle_(detail::handle_of(tensor.device().index(), allow_tf32)) {}

  // This thread's handle for the device, on the device's current stream. The caller must not set its stream or TF32.
  dnn::Handle& handle() const { return handle_; }
  // Allocates workspaces from the caching allocator, in the order of the current stream. The deleter is the one of tensors,
  // which raises nothing: muDNN calls it in a destructor, and a fault of the device would end the process there.
  static dnn::MemoryMaintainer workspace() {
    return [](size_t bytes) {
      return dnn::MemoryHandler(
          bytes > 0 ? c10::musa::MUSACachingAllocator::raw_alloc(bytes) : nullptr,
          c10::musa::MUSACachingAllocator::get()->raw_deleter());
    };
  }

 private:
  c10::musa::MUSAKernelGuard guard_;
  dnn::Handle& handle_;
};

// ---- tensors

// Whether muDNN writes to a tensor. Describing a lazy clone for writing gives it its own memory; for reading, it stays
// lazy. The default, Write, is correct for both.
enum class Access : uint8_t { Read, Write };
inline constexpr Access kRead = Access::Read;

namespace detail {

inline void require(dnn::Status status) { check(status, "describing a tensor"); }

inline dnn::Tensor::Format format_of(int64_t dims, bool channels_last) {
  switch (dims) {
    case 3: return channels_last ? dnn::Tensor::Format::NWC : dnn::Tensor::Format::NCW;
    case 4: return channels_last ? dnn::Tensor::Format::NHWC : dnn::Tensor::Format::NCHW;
    case 5: return channels_last ? dnn::Tensor::Format::NDHWC : dnn::Tensor::Format::NCDHW;
    default: return dnn::Tensor::Format::UNKNOWN;
  }
}

// muDNN's descriptors hold non-const pointers, also for operands that it only reads.
inline void* address_of(const at::Tensor& tensor, Access access) {
  return access == Access::Read ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr();
}

} // namespace detail

// Raises for a dtype that muDNN does not have; predicates exclude those.
inline dnn::Tensor::Type type_of(at::ScalarType dtype) {
  using Type = dnn::Tensor::Type;
  switch (dtype) {
    case at::kHalf: return Type::HALF;
    case at::kBFloat16: return Type::BFLOAT16;
    case at::kFloat: return Type::FLOAT;
    case at::kDouble: return Type::DOUBLE;
    case at::kBool: return Type::BOOL;
    case at::kChar: return Type::INT8;
    case at::kShort: return Type::INT16;
    case at::kInt: return Type::INT32;
    case at::kLong: return Type::INT64;
    case at::kByte: return Type::UINT8;
    case at::kQInt8: return Type::QINT8;
    case at::kFloat8_e5m2: return Type::FP8_E5M2;
    case at::kFloat8_e4m3fn: return Type::FP8_E4M3;
    default: TORCH_CHECK(false, "muDNN has no data type for ", dtype, ".");
  }
}

// Describes dimensions and strides unchanged. An undefined tensor gives an absent operand.
inline dnn::Tensor describe(const at::Tensor& tensor, Access access = Access::Write) {
  dnn::Tensor result;
  if (tensor.defined()) {
    detail::require(result.SetAddr(detail::address_of(tensor, access)));
    detail::require(result.SetType(type_of(tensor.scalar_type())));
    detail::require(result.SetNdInfo(tensor.dim(), tensor.sizes().data(), tensor.strides().data()));
  }
  return result;
}

// The same for an operand that muDNN only reads.
inline dnn::Tensor operand(const at::Tensor& tensor) { return describe(tensor, kRead); }

inline dnn::Tensor operand(const std::optional<at::Tensor>& tensor) {
  return tensor.has_value() ? operand(*tensor) : dnn::Tensor();
}

inline dnn::Tensor operand(const Operand& tensor) { return operand(*tensor); }

// Whether an optional argument is present. torch also passes an undefined tensor for an absent one.
inline bool given(const std::optional<at::Tensor>& tensor) { return tensor.has_value() && tensor->defined(); }
// Contiguous if present, otherwise undefined.
inline Operand contiguous_or_none(const std::optional<at::Tensor>& tensor) {
  return given(tensor) ? contiguous(*tensor) : Operand(at::Tensor());
}

// Describes the same memory with another shape.
inline dnn::Tensor describe_as(
    const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides, Access access = Access::Write) {
  dnn::Tensor result;
  detail::require(result.SetAddr(detail::address_of(tensor, access)));
  detail::require(result.SetType(type_of(tensor.scalar_type())));
  detail::require(result.SetNdInfo(static_cast<int64_t>(sizes.size()), sizes.data(), strides.data()));
  return result;
}

// A tensor (N, C, space...) of 3, 4 or 5 dimensions for operations that check the format: in the order of the letters of
// NHWC (or its 3- and 5-dimensional forms) if the memory has that order, otherwise of NCHW. The memory must be dense in
// that order.
inline dnn::Tensor describe_channels(const at::Tensor& tensor, at::MemoryFormat format, Access access = Access::Write) {
  const int64_t dims = tensor.dim();
  const bool channels_last = format == at::MemoryFormat::ChannelsLast || format == at::MemoryFormat::ChannelsLast3d;
  std::array<int64_t, 5> sizes{};
  std::array<int64_t, 5> strides{};
  TORCH_INTERNAL_ASSERT(dims >= 3 && dims <= 5);
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t from = !channels_last || i == 0 ? i : i == dims - 1 ? 1 : i + 1;
    sizes[i] = tensor.size(from);
    strides[i] = tensor.stride(from);
  }
  dnn::Tensor result = describe_as(
      tensor, {sizes.data(), static_cast<size_t>(dims)}, {strides.data(), static_cast<size_t>(dims)}, access);
  detail::require(result.SetFormat(detail::format_of(dims, channels_last)));
  return result;
}

// The format of 4- and 5-dimensional tensors in channels-last order; otherwise Contiguous.
inline at::MemoryFormat channels_format(const at::Tensor& tensor) {
  const at::MemoryFormat format = tensor.suggest_memory_format();
  return format == at::MemoryFormat::Preserve ? at::MemoryFormat::Contiguous : format;
}

} // namespace musa_runtime::mudnn
