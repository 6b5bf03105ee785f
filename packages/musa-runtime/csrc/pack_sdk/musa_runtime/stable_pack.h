// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <musa_runtime/stable_abi.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

// A pack over torch's stable ABI: one binary for every minor of torch from TORCH_TARGET_VERSION on.
//
//   MUSA_STABLE_OP_PACK(demo, pack) {
//     pack.impl<&relu, &relu_served>("aten::relu");
//   }
//
// Kernels and predicates take and return the types that torch's stable ABI converts, for example torch::stable::Tensor,
// int64_t, double, bool, std::optional and std::vector of them. They are compared with the operator's schema when the
// library is loaded, like those of MUSA_OP_PACK (musa_runtime/op_pack.h), and a pack is accepted as a whole or not at all.
// torch converts the arguments for the predicate and for the kernel, so a predicate costs a second conversion.
//
// Operators whose schema has a Scalar (add, sub, clamp) cannot have kernels over the stable ABI, which cannot pass one.

namespace musa_runtime::stable {

namespace detail {

// The name of a type in schemas. Left undefined for types that torch's stable ABI does not convert.
template <typename T>
struct SchemaType;

#define MUSA_STABLE_SCHEMA_TYPE(TYPE, NAME) \
  template <> \
  struct SchemaType<TYPE> { \
    static std::string name() { return NAME; } \
  }
MUSA_STABLE_SCHEMA_TYPE(torch::stable::Tensor, "Tensor");
MUSA_STABLE_SCHEMA_TYPE(int64_t, "int");
MUSA_STABLE_SCHEMA_TYPE(double, "float");
MUSA_STABLE_SCHEMA_TYPE(bool, "bool");
MUSA_STABLE_SCHEMA_TYPE(std::string, "str");
MUSA_STABLE_SCHEMA_TYPE(std::string_view, "str");
MUSA_STABLE_SCHEMA_TYPE(torch::stable::Device, "Device");
MUSA_STABLE_SCHEMA_TYPE(torch::headeronly::ScalarType, "ScalarType");
MUSA_STABLE_SCHEMA_TYPE(torch::headeronly::Layout, "Layout");
MUSA_STABLE_SCHEMA_TYPE(torch::headeronly::MemoryFormat, "MemoryFormat");
#undef MUSA_STABLE_SCHEMA_TYPE

template <typename T>
struct SchemaType<std::optional<T>> {
  static std::string name() { return SchemaType<T>::name() + "?"; }
};
template <typename T>
struct SchemaType<std::vector<T>> {
  static std::string name() { return SchemaType<T>::name() + "[]"; }
};
template <typename T>
struct SchemaType<torch::headeronly::HeaderOnlyArrayRef<T>> : SchemaType<std::vector<T>> {};

template <typename T>
struct Returns {
  static std::string text() { return SchemaType<T>::name(); }
};
template <>
struct Returns<void> {
  static std::string text() { return "()"; }
};
template <typename... T>
struct Returns<std::tuple<T...>> {
  static std::string text() {
    std::string text;
    ((text += (text.empty() ? "" : ", ") + SchemaType<T>::name()), ...);
    return "(" + text + ")";
  }
};

template <typename Function>
struct Signature;
template <typename Return, typename... Args>
struct Signature<Return (*)(Args...)> {
  using Predicate = bool (*)(Args...);

  static std::string text() {
    std::string text;
    size_t index = 0;
    ((text += (index == 0 ? "" : ", ") + SchemaType<std::remove_cv_t<std::remove_reference_t<Args>>>::name() + " a" +
          std::to_string(index),
      ++index),
     ...);
    return "(" + text + ") -> " + Returns<Return>::text();
  }
};

} // namespace detail

// The kernels that one library declares.
class StablePack {
 public:
  explicit StablePack(MusaStableDeclaration* declaration) : declaration_(declaration) {}

  template <auto kernel>
  StablePack& impl(const char* op) {
    return add<kernel>(op, nullptr);
  }

  // served: has the kernel's parameters and returns bool. It may read metadata only.
  template <auto kernel, auto served>
  StablePack& impl(const char* op) {
    static_assert(
        std::is_same_v<decltype(served), typename detail::Signature<decltype(kernel)>::Predicate>,
        "The predicate of a kernel must return bool and have the kernel's parameters, by the same types.");
    return add<kernel>(op, TORCH_BOX(served));
  }

 private:
  template <auto kernel>
  StablePack& add(const char* op, MusaStableFunction served) {
    const std::string signature = detail::Signature<decltype(kernel)>::text();
    const MusaStableKernel declared{op, signature.c_str(), TORCH_BOX(kernel), served};
    musa_stable_impl(declaration_, &declared);
    return *this;
  }

  MusaStableDeclaration* declaration_;
};

namespace detail {

inline void check(const char* message) {
  if (message != nullptr) {
    throw std::runtime_error(message);
  }
}

} // namespace detail

// Returns an uninitialized contiguous tensor of the given sizes, with the dtype and the device of `like`. Raises
// std::runtime_error, which the caller of the operator gets as torch.OutOfMemoryError if the memory is exhausted. Unlike
// this function, torch::stable::empty_like looks up its operator by name at every call, and hides the cause of an error.
inline torch::stable::Tensor new_empty(
    const torch::stable::Tensor& like, torch::headeronly::IntHeaderOnlyArrayRef sizes) {
  AtenTensorHandle made = nullptr;
  detail::check(musa_stable_new_empty(like.get(), static_cast<int64_t>(sizes.size()), sizes.data(), &made));
  return torch::stable::Tensor(made);
}

// Returns the current stream of a device as a void*, which is a musaStream_t. Raises std::runtime_error if there is no such
// device.
inline void* current_stream(int32_t device_index) {
  void* stream = nullptr;
  detail::check(musa_stable_current_stream(device_index, &stream));
  return stream;
}

} // namespace musa_runtime::stable

// Runs when the pack's library is loaded. PROVIDER is the pack's short name, as used in TORCH_MUSA_OPS.
#define MUSA_STABLE_OP_PACK(PROVIDER, PACK) \
  static void musa_stable_op_pack_##PROVIDER(::musa_runtime::stable::StablePack& PACK); \
  static void musa_stable_op_pack_declare_##PROVIDER(MusaStableDeclaration* declaration) { \
    ::musa_runtime::stable::StablePack pack(declaration); \
    musa_stable_op_pack_##PROVIDER(pack); \
  } \
  [[maybe_unused]] static const int musa_stable_op_pack_declared_##PROVIDER = [] { \
    const MusaStablePack pack{ \
        MUSA_STABLE_ABI, #PROVIDER, TORCH_ABI_VERSION, TORCH_FEATURE_VERSION, \
        &musa_stable_op_pack_declare_##PROVIDER}; \
    return musa_stable_pack(&pack); \
  }(); \
  static void musa_stable_op_pack_##PROVIDER(::musa_runtime::stable::StablePack& PACK)
