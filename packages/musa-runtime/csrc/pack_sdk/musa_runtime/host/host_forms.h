// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/IListRef.h>
#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/musa/MUSAMacros.h>
#include <musa_runtime/host/host_arguments.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

// The CPU tensors with which torch's CPU kernels serve a call with musa tensors:
//
//   HostCopies forms;
//   at::Tensor a = forms.host(self);           // argument as a CPU tensor
//   forms.enter();                             // the device of the arguments is current
//   return forms.device(at::cpu::relu(a));     // result as a musa tensor
//
// HostCopies copies to the host and back. HostAliases makes CPU tensors over the memory of the musa tensors, for kernels that
// read metadata only; musa-ops-host derives the scope of kernels that access the memory from it.

namespace musa_runtime {

class C10_MUSA_API HostForms {
 public:
  HostForms() = default;
  virtual ~HostForms();
  HostForms(const HostForms&) = delete;
  HostForms& operator=(const HostForms&) = delete;

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

  // Called once, after the arguments are converted and before the kernel.
  virtual void enter();
  // Called before enter() for kernels that allocate memory for a host tensor (copying a sparse tensor to the CPU).
  void keep_host_allocations() { results_on_host_ = true; }

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
  // resizing) and, of copies, the data.
  void write_back(const at::Tensor& original, const at::Tensor& host);
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

  // Bytes copied so far, in both directions.
  size_t copied_bytes() const { return copied_bytes_; }
  // Whether host forms are copies, so that changes of their data must be copied back.
  virtual bool copies() const = 0;
  // The device of the arguments, or the current one.
  at::Device target() const;

 protected:
  enum class Access : uint8_t { Read, Write };

  // Of strided tensors that are not quantized.
  virtual at::Tensor dense_on_host(const at::Tensor& tensor, Access access) = 0;
  virtual at::Tensor dense_on_device(at::Tensor result) = 0;
  virtual void write_back_dense(const at::Tensor& original, const at::Tensor& host) = 0;

  // Whether the tensor is strided and not quantized; the functions named layout serve other tensors.
  static bool is_plain(const c10::TensorImpl* impl) {
    return impl->key_set().has_any(c10::DispatchKeySet(c10::DispatchKey::Dense));
  }
  // A result whose memory is not the device's.
  at::Tensor copied_to_device(const at::Tensor& result);

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
  size_t copied_bytes_ = 0;
  bool results_on_host_ = false;
  c10::DeviceIndex index_ = -1;

 private:
  void note_device(at::Device device);
  at::Tensor converted(const at::Tensor& tensor, HostTensor rule, Access access);
  at::Tensor layout_on_host(const at::Tensor& tensor, Access access);
  at::Tensor layout_on_device(const at::Tensor& result);
  // Assigns the parts and the shape of `host`, after the kernel, to `original`.
  void write_back_layout(const at::Tensor& original, const at::Tensor& host);

  HostTensorCheck host_tensors_;
  bool remembers_ = true; // off for the parts of sparse and quantized arguments, which have no owner
  c10::DeviceIndex restore_device_ = -1;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> exclude_;
};

class C10_MUSA_API HostCopies final : public HostForms {
 public:
  bool copies() const override { return true; }

 private:
  at::Tensor dense_on_host(const at::Tensor& tensor, Access access) override;
  at::Tensor dense_on_device(at::Tensor result) override;
  void write_back_dense(const at::Tensor& original, const at::Tensor& host) override;
};

class C10_MUSA_API HostAliases : public HostForms {
 public:
  bool copies() const final { return false; }

 protected:
  at::Tensor dense_on_host(const at::Tensor& tensor, Access access) final;
  at::Tensor dense_on_device(at::Tensor result) override;
  void write_back_dense(const at::Tensor& original, const at::Tensor& host) override;
};

} // namespace musa_runtime
