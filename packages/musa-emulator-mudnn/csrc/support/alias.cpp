// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "support/alias.h"

#include <c10/core/InferenceMode.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace musa_emulator::dnn {

// A thread's tensors that no task uses, in sets by dtype and shape, and those that tasks use now. A tensor whose shape
// need not be set again is the cheapest: torch derives a dozen properties from it.
class AliasScope::Stock {
 public:
  static bool has_shape(const at::Tensor& tensor, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    const c10::IntArrayRef own_sizes = tensor.sizes();
    const c10::IntArrayRef own_strides = tensor.strides();
    bool same = own_sizes.size() == sizes.size();
    for (size_t i = 0; same && i < sizes.size(); ++i) {
      same = own_sizes[i] == sizes[i] && own_strides[i] == strides[i];
    }
    return same;
  }

  struct Set {
    std::array<at::Tensor, 4> kept;
    size_t count = 0;

    // One of the shape, or else one of the dtype; undefined without either.
    at::Tensor take(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
      size_t best = count;
      for (size_t i = count; i-- > 0;) {
        if (kept[i].scalar_type() == type) {
          best = i;
          if (has_shape(kept[i], sizes, strides)) {
            break;
          }
        }
      }
      if (best == count) {
        return {};
      }
      at::Tensor tensor = std::move(kept[best]);
      if (best != --count) {
        kept[best] = std::move(kept[count]);
      }
      return tensor;
    }
  };

  Set& set_of(c10::ScalarType type, c10::IntArrayRef sizes, c10::IntArrayRef strides) {
    constexpr uint64_t kSpread = 0x9E3779B97F4A7C15; // 2^64 / golden ratio: its upper bits depend on all bits
    uint64_t hash = static_cast<uint64_t>(type);
    for (const c10::IntArrayRef part : {sizes, strides}) {
      for (const int64_t value : part) {
        hash = (hash ^ static_cast<uint64_t>(value)) * kSpread;
      }
    }
    return sets_[hash * kSpread >> (64 - kBits)];
  }
  void lend(const at::Tensor& tensor, Set& home) {
    if (scopes != 0) {
      lent_.emplace_back(tensor, &home);
    }
  }
  size_t lent() const { return lent_.size(); }
  void take_back(size_t down_to) {
    while (lent_.size() > down_to) {
      auto& [tensor, home] = lent_.back();
      // A task may have handed it, or a view of it, to something that lives longer.
      if (home->count < home->kept.size() && tensor.use_count() == 1 && tensor.storage().use_count() == 1) {
        home->kept[home->count++] = std::move(tensor);
      }
      lent_.pop_back();
    }
  }

  int scopes = 0;

 private:
  static constexpr unsigned kBits = 6;
  std::array<Set, size_t{1} << kBits> sets_;
  std::vector<std::pair<at::Tensor, Set*>> lent_;
};

AliasScope::Stock& AliasScope::stock() {
  thread_local Stock stock;
  return stock;
}

namespace {

using musa::dnn::TensorAccess;
using Format = Tensor::Format;

// Where torch's dimension i stands among the letters of the format; empty where the order is torch's already.
std::span<const int> order_of(Format format) {
  static constexpr int nwc[] = {0, 2, 1};
  static constexpr int nhwc[] = {0, 3, 1, 2};
  static constexpr int ndhwc[] = {0, 4, 1, 2, 3};
  // Filters: the letters name kernel height, width, input and output channels.
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

at::Tensor make(const Tensor& tensor, std::span<const int> order) {
  if (!TensorAccess::present(tensor)) {
    return {};
  }
  const auto ndim = static_cast<size_t>(TensorAccess::ndim(tensor));
  std::array<int64_t, Tensor::kMaxDims> dims{};
  std::array<int64_t, Tensor::kMaxDims> strides{};
  size_t last = 0; // element
  for (size_t i = 0; i < ndim; ++i) {
    const size_t from = order.size() == ndim ? static_cast<size_t>(order[i]) : i;
    dims[i] = TensorAccess::dims(tensor)[from];
    strides[i] = TensorAccess::strides(tensor)[from];
    if (strides[i] < 0) {
      throw std::invalid_argument("a negative stride, which torch's CPU functions do not know");
    }
    last += dims[i] > 0 ? static_cast<size_t>((dims[i] - 1) * strides[i]) : 0;
  }
  const c10::ScalarType type = scalar_type(TensorAccess::type(tensor));
  const c10::IntArrayRef sizes(dims.data(), ndim);
  const c10::IntArrayRef steps(strides.data(), ndim);
  AliasScope::Stock& here = AliasScope::stock();
  AliasScope::Stock::Set& home = here.set_of(type, sizes, steps);
  at::Tensor result = home.take(type, sizes, steps);
  const size_t bytes = (last + 1) * c10::elementSize(type);
  c10::DataPtr memory(TensorAccess::address(tensor), c10::Device(c10::kCPU));
  if (result.defined()) {
    c10::StorageImpl& storage = *result.storage().unsafeGetStorageImpl();
    storage.set_data_ptr_noswap(std::move(memory));
    storage.set_nbytes(bytes);
  } else {
    const c10::InferenceMode outside(false); // the next to use it may not be in one
    auto storage = c10::make_intrusive<c10::StorageImpl>(
        c10::StorageImpl::use_byte_size_t(), bytes, std::move(memory), /*allocator=*/nullptr, /*resizable=*/false);
    result = at::detail::make_tensor<c10::TensorImpl>(
        std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(type));
  }
  if (!AliasScope::Stock::has_shape(result, sizes, steps)) {
    result.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, steps);
  }
  here.lend(result, home);
  return result;
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

at::Tensor alias(const Tensor& tensor) {
  return make(tensor, {});
}

at::Tensor alias_channels_second(const Tensor& tensor) {
  return make(tensor, order_of(TensorAccess::format(tensor)));
}

AliasScope::AliasScope() : stock_(stock()), before_(stock_.lent()) {
  ++stock_.scopes;
}

AliasScope::~AliasScope() {
  --stock_.scopes;
  stock_.take_back(before_);
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
