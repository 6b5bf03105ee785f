// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/alias.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <deque>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace musa_emulator::dnn {

namespace {

// The stock of the calling thread, created by its first scope. Read for every operand, so it is addressed without a
// function call. Not a member, because GCC ignores the TLS model on the definition of a static member.
constinit thread_local AliasScope::Stock* current_stock [[gnu::tls_model("initial-exec")]] = nullptr;

} // namespace

// The tensors of a thread, in sets by dtype and shape, with a flag for those in use. Reusing a tensor of the same shape
// is cheapest, because torch derives a dozen properties from the shape.
class AliasScope::Stock {
 public:
  struct Slot {
    at::Tensor tensor;
    uint64_t hash = 0; // of the tensor's dtype and shape, so that a search reads only the matching tensor
    bool lent = false;
  };
  using Set = std::array<Slot, 4>;

  static uint64_t hash_of(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    // The multiplications are independent of each other. The factors are fractional parts of square roots of primes,
    // made odd: the upper bits of each product depend on all bits of the size or stride.
    static constexpr uint64_t kSizeFactors[] = {0x6A09E667F3BCC909, 0x3C6EF372FE94F82B, 0x510E527FADE682D1,
                                                0x1F83D9ABFB41BD6B, 0xCBBB9D5DC1059ED9, 0x9159015A3070DD17,
                                                0x67332667FFC00B31, 0xDB0C2E0D64F98FA7};
    static constexpr uint64_t kStrideFactors[] = {0xBB67AE8584CAA73B, 0xA54FF53A5F1D36F1, 0x9B05688C2B3E6C1F,
                                                  0x5BE0CD19137E2179, 0x629A292A367CD507, 0x152FECD8F70E5939,
                                                  0x8EB44A8768581511, 0x47B5481DBEFA4FA5};
    static_assert(std::size(kSizeFactors) == Tensor::kMaxDims && std::size(kStrideFactors) == Tensor::kMaxDims);
    uint64_t hash = (static_cast<uint64_t>(type) + 1) * 0x9E3779B97F4A7C15;
    for (size_t i = 0; i < sizes.size(); ++i) {
      hash += static_cast<uint64_t>(sizes[i]) * kSizeFactors[i] + static_cast<uint64_t>(strides[i]) * kStrideFactors[i];
    }
    return hash | 1; // 0 is the hash of an empty slot
  }
  Set& set_of(uint64_t hash) { return sets_[hash >> (64 - kBits)]; }
  void lend(Slot& slot) {
    slot.lent = true;
    lent_.push_back(&slot);
  }
  size_t lent() const { return lent_.size(); }
  // For a tensor without a free slot in its set.
  at::Tensor& keep(at::Tensor tensor) { return extra_.emplace_back(std::move(tensor)); }
  void end_scope() {
    if (--scopes == 0 && !extra_.empty()) [[unlikely]] {
      extra_.clear();
    }
  }
  void take_back(size_t down_to) {
    while (lent_.size() > down_to) {
      Slot& slot = *lent_.back();
      lent_.pop_back();
      slot.lent = false;
      // The task may have stored the tensor, or a view of it, in an object that outlives the task.
      const c10::TensorImpl& tensor = *slot.tensor.unsafeGetTensorImpl();
      if (slot.tensor.use_count() != 1 || tensor.unsafe_storage().use_count() != 1) [[unlikely]] {
        slot.tensor.reset();
        slot.hash = 0;
      }
    }
  }

  int scopes = 0;

 private:
  static constexpr unsigned kBits = 6;
  std::array<Set, size_t{1} << kBits> sets_;
  std::vector<Slot*> lent_;
  std::deque<at::Tensor> extra_;
};

namespace {

using musa::dnn::TensorAccess;
using Format = Tensor::Format;

// Returns the position of torch's dimension i in the format; empty if the format has torch's order.
std::span<const int> order_of(Format format) {
  static constexpr int nwc[] = {0, 2, 1};
  static constexpr int nhwc[] = {0, 3, 1, 2};
  static constexpr int ndhwc[] = {0, 4, 1, 2, 3};
  // Filters: the letters are kernel height, kernel width, input channels and output channels.
  static constexpr int hwcn[] = {3, 2, 0, 1};
  static constexpr int dhwcn[] = {4, 3, 0, 1, 2};
  switch (format) {
    case Format::NWC: return nwc;
    case Format::NHWC: return nhwc;
    case Format::NDHWC: return ndhwc;
    case Format::HWCN: return hwcn;
    case Format::DHWCN: return dhwcn;
    case Format::UNKNOWN:
    case Format::NCW:
    case Format::NCHW:
    case Format::NCDHW: return {};
  }
  return {};
}

bool has_shape(const c10::TensorImpl& tensor, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  const c10::IntArrayRef own_sizes = tensor.sizes();
  const c10::IntArrayRef own_strides = tensor.strides();
  bool same = own_sizes.size() == sizes.size();
  for (size_t i = 0; same && i < sizes.size(); ++i) {
    same = own_sizes[i] == sizes[i] && own_strides[i] == strides[i];
  }
  return same;
}

size_t bytes_of(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  int64_t last = 0; // index of the last element
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (strides[i] < 0) {
      throw std::invalid_argument("an operand has a negative stride, which torch's CPU functions do not support");
    }
    last += sizes[i] > 0 ? (sizes[i] - 1) * strides[i] : 0;
  }
  return static_cast<size_t>(last + 1) * c10::elementSize(type);
}

at::Tensor make_new(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides, c10::DataPtr memory) {
  const c10::InferenceMode outside(false); // created outside inference mode, because a later user may not be in it
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes_of(type, sizes, strides), std::move(memory), /*allocator=*/nullptr,
      /*resizable=*/false);
  at::Tensor result = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(kDispatchKey), c10::scalarTypeToTypeMeta(type));
  result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return result;
}

// [[gnu::noinline]], because inlining would make the fast path save this function's registers.
[[gnu::noinline]] at::Tensor& add_to(
    AliasScope::Stock& stock, uint64_t hash, c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
    void* address) {
  at::Tensor made = make_new(type, sizes, strides, c10::DataPtr(address, current_device()));
  AliasScope::Stock::Slot* spare = nullptr;
  for (AliasScope::Stock::Slot& slot : stock.set_of(hash)) {
    if (!slot.lent && (spare == nullptr || !slot.tensor.defined())) {
      spare = &slot;
    }
  }
  if (spare == nullptr) {
    return stock.keep(std::move(made));
  }
  spare->tensor = std::move(made);
  spare->hash = hash;
  stock.lend(*spare);
  return spare->tensor;
}

at::Tensor& take_from(
    AliasScope::Stock& stock, c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides, void* address) {
  const uint64_t hash = AliasScope::Stock::hash_of(type, sizes, strides);
  for (AliasScope::Stock::Slot& slot : stock.set_of(hash)) {
    if (slot.hash != hash || slot.lent) {
      continue;
    }
    const c10::TensorImpl& kept = *slot.tensor.unsafeGetTensorImpl();
    if (c10::typeMetaToScalarType(kept.dtype()) == type && has_shape(kept, sizes, strides) &&
        (kOnHost || kept.device() == current_device())) [[likely]] {
      c10::StorageImpl& storage = *kept.unsafe_storage().unsafeGetStorageImpl();
      if (storage.data() != address) {
        storage.set_data_ptr_noswap(c10::DataPtr(address, current_device()));
      }
      stock.lend(slot);
      return slot.tensor;
    }
  }
  return add_to(stock, hash, type, sizes, strides, address);
}

at::Tensor make_of(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides, void* address) {
  AliasScope::Stock* const stock = current_stock;
  if (stock == nullptr || stock->scopes == 0) {
    return make_new(type, sizes, strides, c10::DataPtr(address, current_device()));
  }
  return take_from(*stock, type, sizes, strides, address);
}

at::Tensor make(const Tensor& tensor, std::span<const int> order) {
  if (!TensorAccess::present(tensor)) {
    return {};
  }
  const auto ndim = static_cast<size_t>(TensorAccess::ndim(tensor));
  const c10::ScalarType type = scalar_type(TensorAccess::type(tensor));
  const int64_t* const dims = TensorAccess::dims(tensor);
  const int64_t* const strides = TensorAccess::strides(tensor);
  if (order.size() != ndim) {
    return make_of(type, {dims, ndim}, {strides, ndim}, TensorAccess::address(tensor));
  }
  std::array<int64_t, Tensor::kMaxDims> ordered_dims;
  std::array<int64_t, Tensor::kMaxDims> ordered_strides;
  for (size_t i = 0; i < ndim; ++i) {
    ordered_dims[i] = dims[order[i]];
    ordered_strides[i] = strides[order[i]];
  }
  return make_of(type, {ordered_dims.data(), ndim}, {ordered_strides.data(), ndim}, TensorAccess::address(tensor));
}

} // namespace

c10::ScalarType scalar_type(Tensor::Type type) {
  switch (type) {
    case Tensor::Type::HALF: return c10::kHalf;
    case Tensor::Type::BFLOAT16: return c10::kBFloat16;
    case Tensor::Type::FLOAT: return c10::kFloat;
    case Tensor::Type::DOUBLE: return c10::kDouble;
    case Tensor::Type::BOOL: return c10::kBool;
    case Tensor::Type::INT8:
    case Tensor::Type::QINT8: return c10::kChar;
    case Tensor::Type::INT16: return c10::kShort;
    case Tensor::Type::INT32: return c10::kInt;
    case Tensor::Type::INT64: return c10::kLong;
    case Tensor::Type::UINT8:
    case Tensor::Type::QINT4: return c10::kByte;
    case Tensor::Type::UINT16: return c10::ScalarType::UInt16;
    case Tensor::Type::UINT32: return c10::ScalarType::UInt32;
    case Tensor::Type::UINT64: return c10::ScalarType::UInt64;
    case Tensor::Type::FP8_E5M2: return c10::kFloat8_e5m2;
    case Tensor::Type::FP8_E4M3: return c10::kFloat8_e4m3fn;
  }
  return c10::ScalarType::Undefined;
}

at::Tensor alias(const Tensor& tensor) { return make(tensor, {}); }

at::Tensor& lent_alias(const Tensor& tensor) {
  TORCH_INTERNAL_ASSERT(current_stock != nullptr && current_stock->scopes != 0);
  if (!TensorAccess::present(tensor)) {
    return current_stock->keep({});
  }
  const auto ndim = static_cast<size_t>(TensorAccess::ndim(tensor));
  return take_from(
      *current_stock, scalar_type(TensorAccess::type(tensor)), {TensorAccess::dims(tensor), ndim},
      {TensorAccess::strides(tensor), ndim}, TensorAccess::address(tensor));
}

at::Tensor alias_channels_second(const Tensor& tensor) { return make(tensor, order_of(TensorAccess::format(tensor))); }

at::Tensor alias_memory(void* address, c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
  return make_of(type, sizes, strides, address);
}

AliasScope::Stock& AliasScope::stock() {
  if (current_stock == nullptr) [[unlikely]] {
    // Allocated on the heap, because the TLS model above requires the library's thread-local memory to be small.
    thread_local const auto own = std::make_unique<Stock>();
    current_stock = own.get();
  }
  return *current_stock;
}

AliasScope::AliasScope() : stock_(stock()), before_(stock_.lent()) { ++stock_.scopes; }

AliasScope::~AliasScope() {
  stock_.take_back(before_);
  stock_.end_scope();
}

Tensor as_bits(const Tensor& tensor) {
  Tensor bits = tensor;
  switch (c10::elementSize(scalar_type(TensorAccess::type(tensor)))) {
    case 1: bits.SetType(Tensor::Type::UINT8); break;
    case 2: bits.SetType(Tensor::Type::INT16); break;
    case 4: bits.SetType(Tensor::Type::INT32); break;
    default: bits.SetType(Tensor::Type::INT64); break;
  }
  return bits;
}

} // namespace musa_emulator::dnn
