// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Makes torch's functions allocate their results in the caller's memory. torch allocates results with aten::empty and
// aten::empty_strided through its dispatcher. A dispatch key that no torch mode uses has kernels for both that return
// the caller's memory. The key is in the thread's key set only inside a Lending; every other operator falls through
// it.
#include <mudnn_backend/lending.h>

#include <ATen/EmptyTensor.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/strides.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace musa_emulator::dnn {
namespace {

constexpr c10::DispatchKey kLendingKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

thread_local Lending* current_lending = nullptr;

bool same_order(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) > 1 && a.stride(i) != b.stride(i)) {
      return false;
    }
  }
  return a.dim() == b.dim();
}

// Whether a tensor with these options is in the current device's memory. Only such allocations get the caller's
// memory.
bool on_device(std::optional<c10::Layout> layout, std::optional<c10::Device> device) {
  return current_lending != nullptr && device.has_value() && device->type() == kDeviceType &&
      (!device->has_index() || device->index() == current_device().index()) &&
      layout.value_or(c10::kStrided) == c10::kStrided;
}

std::vector<int64_t> strides_of(c10::IntArrayRef sizes, std::optional<c10::MemoryFormat> format) {
  if (format == c10::MemoryFormat::ChannelsLast) {
    return c10::get_channels_last_strides_2d(sizes);
  }
  if (format == c10::MemoryFormat::ChannelsLast3d) {
    return c10::get_channels_last_strides_3d(sizes);
  }
  const auto strides = c10::contiguous_strides(sizes);
  return {strides.begin(), strides.end()};
}

// Returns the caller's memory if it is reserved for this allocation, otherwise the result of `make`.
template <class Make>
at::Tensor lend_or(
    c10::IntArrayRef sizes, c10::IntArrayRef strides, std::optional<c10::ScalarType> type, const Make& make) {
  at::Tensor lent = current_lending->take(sizes, strides, c10::dtype_or_default(type));
  if (lent.defined()) {
    return lent;
  }
  at::Tensor made = make();
  current_lending->note(made);
  return made;
}

at::Tensor empty(
    c10::SymIntArrayRef sizes, std::optional<c10::ScalarType> type, std::optional<c10::Layout> layout,
    std::optional<c10::Device> device, std::optional<bool> pin, std::optional<c10::MemoryFormat> format) {
  const c10::impl::ExcludeDispatchKeyGuard torchs_own(kLendingKey);
  const auto make = [&] { return at::empty_symint(sizes, type, layout, device, pin, format); };
  if (!on_device(layout, device)) {
    return make();
  }
  const auto numbers = C10_AS_INTARRAYREF_SLOW(sizes);
  return lend_or(numbers, strides_of(numbers, format), type, make);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<c10::ScalarType> type,
    std::optional<c10::Layout> layout, std::optional<c10::Device> device, std::optional<bool> pin) {
  const c10::impl::ExcludeDispatchKeyGuard torchs_own(kLendingKey);
  const auto make = [&] { return at::empty_strided_symint(sizes, strides, type, layout, device, pin); };
  if (!on_device(layout, device)) {
    return make();
  }
  return lend_or(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), type, make);
}

} // namespace

Lending::Lending(const at::Tensor* places, size_t count, size_t key)
    : places_(places), count_(count), keys_(c10::impl::tls_local_dispatch_key_set()) {
  constexpr size_t most = 4096;
  const auto dense = [](const at::Tensor& place) { return place.is_non_overlapping_and_dense(); };
  if (!std::all_of(places, places + count, dense)) {
    return;
  }
  thread_local std::unordered_map<size_t, Wanted> learned;
  if (learned.size() > most && current_lending == nullptr) {
    learned.clear();
  }
  wanted_ = &learned.try_emplace(key, Wanted{kUnknown, kUnknown, kUnknown}).first->second;
  before_ = std::exchange(current_lending, this);
  c10::impl::LocalDispatchKeySet lending = keys_;
  lending.included_ = lending.included_.add(kLendingKey);
  lending.excluded_ = lending.excluded_.remove(kLendingKey);
  c10::impl::_force_tls_local_dispatch_key_set(lending);
}

Lending::~Lending() {
  if (wanted_ != nullptr) {
    c10::impl::_force_tls_local_dispatch_key_set(keys_);
    current_lending = before_;
  }
}

int Lending::count_of(size_t bytes) const {
  return static_cast<int>(
      std::count_if(made_.begin(), made_.end(), [bytes](const Made& made) { return made.bytes == bytes; }));
}

at::Tensor Lending::take(c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::ScalarType type) {
  const size_t bytes = at::detail::computeStorageNbytes(sizes, strides, c10::elementSize(type));
  const int index = count_of(bytes);
  for (size_t i = 0; i < count_; ++i) {
    if ((*wanted_)[i] != index || places_[i].nbytes() != bytes) {
      continue;
    }
    void* const data = places_[i].data_ptr();
    at::Tensor lent = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(
            c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(data, current_device()), /*allocator=*/nullptr,
            /*resizable=*/false),
        c10::DispatchKeySet(kDispatchKey), c10::scalarTypeToTypeMeta(type));
    lent.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
    made_.push_back({bytes, data});
    return lent;
  }
  return {};
}

void Lending::note(const at::Tensor& made) {
  if (made.numel() > 0) {
    made_.push_back({made.storage().nbytes(), made.const_data_ptr()});
  }
}

at::Tensor Lending::result(size_t index, at::Tensor value) {
  const at::Tensor& place = places_[index];
  if (wanted_ == nullptr || !value.defined() || place.numel() == 0) {
    return value;
  }
  int& wanted = (*wanted_)[index];
  if (value.const_data_ptr() == place.const_data_ptr()) {
    if (value.scalar_type() == place.scalar_type() && same_order(value, place)) {
      return place;
    }
    wanted = kNever;
    const c10::impl::ExcludeDispatchKeyGuard torchs_own(kLendingKey);
    return value.clone();
  }
  if (wanted == kNever || value.scalar_type() != place.scalar_type() || !same_order(value, place)) {
    return value;
  }
  const size_t bytes = place.nbytes();
  const auto found = std::find_if(made_.rbegin(), made_.rend(), [&](const Made& made) {
    return made.bytes == bytes && made.data == value.const_data_ptr();
  });
  if (found != made_.rend()) {
    wanted = static_cast<int>(
        std::count_if(found + 1, made_.rend(), [bytes](const Made& made) { return made.bytes == bytes; }));
  }
  return value;
}

} // namespace musa_emulator::dnn

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, m) {
  m.impl("empty.memory_format", TORCH_FN(musa_emulator::dnn::empty));
  m.impl("empty_strided", TORCH_FN(musa_emulator::dnn::empty_strided));
}
