// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/IListRef.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/musa/MUSAMacros.h>
#include <c10/util/SmallVector.h>
#include <host_kernels/host_arguments.h>

#include <array>
#include <atomic>
#include <optional>
#include <vector>

// Runs torch's CPU kernels on musa tensors. A kernel wrapper reads:
//
//   HostScope scope;
//   at::Tensor a = scope.host(self);          // argument as a CPU tensor
//   scope.enter();                            // waits for earlier work; allocations are then device memory
//   return scope.device(at::cpu::relu(a));    // result as a musa tensor
//
// On memory that the host can address, host() aliases: the CPU tensor uses the musa tensor's memory, so writes and views
// affect the musa tensor, and device() re-labels results, which the scope's allocator placed in device memory. On discrete
// memory host() copies, and write_back() copies changes of mutated arguments back.

namespace musa_runtime {

class C10_MUSA_API HostScope {
 public:
  enum class Mode : uint8_t { Alias, Copy };

  // The mode that fits the devices' memory.
  HostScope();
  explicit HostScope(Mode mode) : mode_(mode) {}
  explicit HostScope(std::atomic<uint64_t>& calls) : mode_(Mode::Alias), counter_(&calls) {
    calls.fetch_add(1, std::memory_order_relaxed);
  }
  ~HostScope();
  HostScope(const HostScope&) = delete;
  HostScope& operator=(const HostScope&) = delete;

  // Arguments that the kernel only reads. Raises if tensors are on different devices, unless the rule accepts a CPU tensor.
  // A lazy clone stays lazy.
  at::Tensor host(const at::Tensor& tensor, HostTensor rule = HostTensor::Refused) {
    return converted(tensor, rule, Access::Read);
  }
  std::optional<at::Tensor> host(const std::optional<at::Tensor>& tensor, HostTensor rule = HostTensor::Refused) {
    return tensor.has_value() ? std::make_optional(host(*tensor, rule)) : std::nullopt;
  }
  std::vector<at::Tensor> host(at::TensorList tensors, HostTensor rule = HostTensor::Refused);
  std::vector<at::Tensor> host(const at::ITensorListRef& tensors, HostTensor rule = HostTensor::Refused);
  c10::List<std::optional<at::Tensor>> host(
      const c10::List<std::optional<at::Tensor>>& tensors, HostTensor rule = HostTensor::Refused);
  // Arguments that the kernel writes, to be converted before those that it only reads: a lazy clone gets its own memory,
  // and later aliases of its storage must use that memory.
  at::Tensor host_written(const at::Tensor& tensor, HostTensor rule = HostTensor::Refused) {
    return converted(tensor, rule, Access::Write);
  }
  std::optional<at::Tensor> host_written(const std::optional<at::Tensor>& tensor) {
    return tensor.has_value() ? std::make_optional(host_written(*tensor)) : std::nullopt;
  }
  std::vector<at::Tensor> host_written(at::TensorList tensors, HostTensor rule = HostTensor::Refused);
  // Replaces a factory's device argument by the CPU.
  std::optional<at::Device> host(std::optional<at::Device> device);
  at::Device host(at::Device device);
  // Returns a CPU generator seeded from the musa generator's seed and offset, and advances the offset: the same seed gives
  // the same numbers in every run.
  std::optional<at::Generator> host(const std::optional<at::Generator>& generator);

  void enter();
  // The kernel's name in the profile if no counter identifies the operator; the text must outlive the scope.
  void set_name(const char* name) { name_ = name; }
  // Called before enter() for kernels that allocate memory for a host tensor (copying a sparse tensor to the CPU).
  void keep_host_allocations() { redirects_ = false; }

  // Results.
  at::Tensor device(at::Tensor result);
  std::vector<at::Tensor> device(std::vector<at::Tensor> results);
  template <typename... Tensors>
  std::tuple<Tensors...> device(std::tuple<Tensors...> results) {
    return std::apply(
        [this](auto&&... each) { return std::tuple<Tensors...>(this->device(std::move(each))...); },
        std::move(results));
  }
  template <typename Plain>
    requires std::is_arithmetic_v<Plain> || std::is_same_v<Plain, c10::Scalar> || std::is_enum_v<Plain>
  Plain device(Plain value) {
    return value;
  }

  // Called after the kernel for each mutated argument and its host form: takes over a changed shape or storage (out=
  // resizing) and, in Copy mode, the data.
  void write_back(const at::Tensor& original, const at::Tensor& host) {
    if (C10_LIKELY(mode_ == Mode::Alias && original.defined())) {
      const c10::TensorImpl* before = original.unsafeGetTensorImpl();
      const c10::TensorImpl* after = host.unsafeGetTensorImpl();
      if (C10_LIKELY(
              is_plain(before) && is_plain(after) && shows_memory_of(after, before) &&
              before->sizes() == after->sizes() && before->strides() == after->strides() &&
              before->storage_offset() == after->storage_offset())) {
        return;
      }
    }
    write_back_slow(original, host);
  }
  void write_back(const std::optional<at::Tensor>& original, const std::optional<at::Tensor>& host) {
    if (original.has_value()) {
      write_back(*original, *host);
    }
  }
  void write_back(at::TensorList originals, const std::vector<at::Tensor>& hosts) {
    for (size_t i = 0; i < hosts.size(); ++i) {
      write_back(originals[i], hosts[i]);
    }
  }

  Mode mode() const { return mode_; }
  // Bytes copied by Copy mode, in both directions.
  size_t copied_bytes() const { return copied_bytes_; }
  // The device of the arguments, or the current one.
  at::Device target() const;

 private:
  // Whether the tensor is strided and not quantized; the functions named layout serve other tensors.
  static bool is_plain(const c10::TensorImpl* impl) {
    return impl->key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::Dense));
  }
  static bool shows_memory_of(const c10::TensorImpl* host, const c10::TensorImpl* original);
  enum class Access : uint8_t { Read, Write };
  void note_device(at::Device device);
  at::Tensor converted(const at::Tensor& tensor, HostTensor rule, Access access);
  at::Tensor alias_dense(const at::Tensor& tensor, Access access);
  at::Tensor copy_dense(const at::Tensor& tensor);
  at::Tensor converted_slow(const at::Tensor& tensor, HostTensor rule, Access access);
  at::Tensor device_slow(at::Tensor result);
  void write_back_slow(const at::Tensor& original, const at::Tensor& host);
  at::Tensor layout_on_host(const at::Tensor& tensor, Access access);
  at::Tensor layout_on_device(const at::Tensor& result);
  // Assigns the parts and the shape of `host`, after the kernel, to `original`.
  void write_back_layout(const at::Tensor& original, const at::Tensor& host);

  // The first arguments and their host forms. One tensor passed twice (self and out) must stay one tensor, and two tensors
  // over one storage must share it: kernels detect overlap and in-place use by comparing them. The caller keeps the host
  // forms alive, and lists longer than this have distinct tensors (foreach).
  struct Seen {
    const c10::TensorImpl* argument;
    c10::TensorImpl* host;
  };
  at::Tensor remember(const at::Tensor& argument, at::Tensor host) {
    if (remembers_ && seen_count_ < seen_.size()) {
      seen_[seen_count_++] = {argument.unsafeGetTensorImpl(), host.unsafeGetTensorImpl()};
    }
    return host;
  }
  std::array<Seen, 8> seen_;
  size_t seen_count_ = 0;
  bool remembers_ = true; // off for the parts of sparse and quantized arguments, which have no owner
  Mode mode_;
  HostTensorCheck host_tensors_;
  bool entered_ = false;
  bool redirects_ = true;
  bool redirected_before_ = false;
  c10::DeviceIndex index_ = -1;
  c10::DeviceIndex restore_device_ = -1;
  size_t copied_bytes_ = 0;
  const std::atomic<uint64_t>* counter_ = nullptr;
  const char* name_ = nullptr;
  int64_t traced_from_ = 0; // see kernel_trace.h; 0 while nothing is traced
  std::optional<c10::impl::ExcludeDispatchKeyGuard> exclude_;
};

} // namespace musa_runtime
