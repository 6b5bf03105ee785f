// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Elements are sorted as pairs (key, place). Keys are unsigned integers in the order of the elements, so one sort
// serves all dtypes, and operators that need part of a sorted line select it by its places.
//
// Short lines are sorted by engines/sort.muh, one thread each; others by engines/radix_sort.muh.
#include <ATen/core/Tensor.h>
#include <ATen/ops/argmax.h>
#include <c10/core/WrapDimMinimal.h>
#include <c10/util/Load.h>

#include <bit>
#include <cstring>
#include <limits>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/elements.h"
#include "engines/for_each.muh"
#include "engines/overlap.h"
#include "engines/radix_sort.muh"
#include "engines/sort.muh"
#include "engines/vector.h"
#include "kernels/Sort.h"
#include "kernels/sort.h"

namespace musa_ops_ported {
namespace {

template <typename T>
using KeyOf = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;

template <typename T>
__device__ KeyOf<T> key_of(T value) {
  using Key = KeyOf<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return static_cast<Key>(value);
  } else if constexpr (std::is_integral_v<T>) {
    constexpr Key sign = std::is_signed_v<T> ? Key(1) << (8 * sizeof(T) - 1) : 0;
    return static_cast<Key>(static_cast<std::make_unsigned_t<T>>(value)) ^ sign;
  } else {
    constexpr Key top = Key(1) << (8 * sizeof(Key) - 1);
    const at::opmath_type<T> x = value;
    if (x != x) {
      return ~Key(0);
    }
    const Key bits = x == 0 ? Key(0) : std::bit_cast<Key>(x); // -0 equals +0
    return bits & top ? ~bits : bits | top;
  }
}

// Keys of 4 bytes are packed into a word with the place, which halves the memory and needs one comparison.
struct PackedPair {
  uint64_t bits;
  static __device__ PackedPair of(uint64_t key, uint64_t place) { return {key << 32 | place}; }
  __device__ int64_t place() const { return static_cast<int64_t>(bits & 0xffffffff); }
  __device__ bool operator<(const PackedPair& other) const { return bits < other.bits; }
};
struct WidePair {
  uint64_t key, where;
  static __device__ WidePair of(uint64_t key, uint64_t place) { return {key, place}; }
  __device__ int64_t place() const { return static_cast<int64_t>(where); }
  __device__ bool operator<(const WidePair& other) const { return key < other.key; }
};
struct Before {
  template <typename Pair>
  __device__ bool operator()(const Pair& a, const Pair& b) const {
    return a < b;
  }
};

template <typename Pair>
at::Tensor room_for_pairs(const at::Tensor& self) {
  constexpr int64_t words = sizeof(Pair) / sizeof(int64_t);
  return aten::empty({2, self.numel() * words}, self.options().dtype(at::kLong));
}

template <typename Pair>
void sort_pairs(const at::Tensor& room, int64_t size, const at::Tensor& places) {
  const int64_t keep = places.size(-1);
  const int64_t lines = places.numel() / keep;
  Pair* const data = static_cast<Pair*>(room.mutable_data_ptr());
  const Pair* const sorted = merge_sort(data, data + lines * size, lines, size, keep, Before());
  int64_t* const to = places.mutable_data_ptr<int64_t>();
  for_each(places.numel(), [=] __device__(int64_t i) { to[i] = sorted[i / keep * size + i % keep].place(); });
}

template <typename T, typename Pair>
void sort_as(const at::Tensor& self, bool descending, const at::Tensor& places) {
  const at::Tensor room = room_for_pairs<Pair>(self);
  Pair* const data = static_cast<Pair*>(room.mutable_data_ptr());
  const T* const in = self.const_data_ptr<T>();
  const int64_t size = self.size(-1);
  for_each_offset(
      self.sizes(),
      [=] __device__(int64_t i, const auto& at) {
        const KeyOf<T> key = key_of(c10::load(in + at[0]));
        data[i] = Pair::of(descending ? static_cast<KeyOf<T>>(~key) : key, i % size);
      },
      self.strides());
  sort_pairs<Pair>(room, size, places);
}

// ---- radix sort

// The conversion between elements and keys of a dtype.
struct KeyBits {
  int low, high;   // bits outside [low, high) are 0 in all keys
  uint64_t flip;   // bits to invert for a descending sort
  uint64_t top;    // sign bit of signed integers and floating point numbers
  bool floating;
  int narrow;      // bits that bfloat16 drops from a float32; -1 for float16

  KeyBits(at::ScalarType dtype, bool descending) {
    floating = at::isFloatingType(dtype);
    const int bits = 8 * static_cast<int>(c10::elementSize(dtype));
    low = dtype == at::kBFloat16 ? 16 : dtype == at::kHalf ? 8 : 0;
    high = floating && bits < 32 ? 32 : bits;
    flip = descending ? ~uint64_t{0} >> (64 - high) : 0;
    top = floating || at::isSignedType(dtype) ? uint64_t{1} << (high - 1) : 0;
    narrow = dtype == at::kBFloat16 ? 16 : dtype == at::kHalf ? -1 : 0;
  }

  // Computes the element from its key; returns false if several elements share the key.
  __device__ bool element(uint64_t key, uint64_t& bits) const {
    key ^= flip;
    if (!floating) {
      bits = key ^ top;
      return true;
    }
    const uint64_t all = top | (top - 1);
    if (key == top || key == all) { // zeros and NaNs
      return false;
    }
    bits = key & top ? key ^ top : ~key & all;
    if (narrow < 0) {
      bits = at::Half(std::bit_cast<float>(static_cast<uint32_t>(bits))).x;
    } else {
      bits >>= narrow;
    }
    return true;
  }
};

bool by_digits(const at::Tensor& self) {
  // Lines of a few elements are sorted in registers, one thread each.
  const int64_t size = self.size(-1);
  return size > kSortRun && size <= std::numeric_limits<int32_t>::max() &&
      c10::musa::device_properties(self.get_device()).sharedMemPerBlock >= kRadixSharedMemory;
}

RadixSorted sorted_by_digits(const at::Tensor& self, bool descending, int64_t keep) {
  const KeyBits bits(self.scalar_type(), descending);
  const at::Tensor keys = order_keys(self, bits.flip);
  const bool few_bits = !bits.floating && self.element_size() > 2;
  return self.element_size() <= 4 ? radix_order<uint32_t>(keys, bits.low, bits.high, keep, few_bits)
                                  : radix_order<uint64_t>(keys, bits.low, bits.high, keep, few_bits);
}

// ---- selection from sorted lines

at::Tensor along_last(const at::Tensor& tensor, int64_t dim) {
  return tensor.dim() == 0 ? tensor.unsqueeze(0) : tensor.transpose(at::maybe_wrap_dim(dim, tensor.dim()), -1);
}

// Writes values and indices of the elements at `places` of each line, or at the places of `order` if `places` is
// undefined.
void pick(
    const at::Tensor& lines, const at::Tensor& places, const at::Tensor& values, const at::Tensor& indices,
    const RadixOrder& order = {}, bool descending = false) {
  check_overlap_within(values, indices);
  const at::Tensor self = values.is_alias_of(lines) ? lines.clone() : lines;
  at::DimVector starts(self.strides());
  const int64_t stride = starts.back();
  starts.back() = 0;
  const int64_t* const from = places.defined() ? places.const_data_ptr<int64_t>() : nullptr;
  int64_t* const where = indices.mutable_data_ptr<int64_t>();
  const KeyBits key_bits(self.scalar_type(), descending);
  MUSA_BY_SIZE(self.element_size(), {
    const Bytes* const in = static_cast<const Bytes*>(self.const_data_ptr());
    Bytes* const out = elements_of<Bytes>(values, self);
    for_each_offset(
        values.sizes(),
        [=] __device__(int64_t i, const auto& at) {
          const int64_t place = from != nullptr ? from[i] : order.place(i);
          where[at[1]] = place;
          uint64_t bits = 0;
          if (from == nullptr && key_bits.element(order.key(i), bits)) {
            // Avoids an uncoalesced load.
            std::memcpy(&out[at[0]], &bits, sizeof(Bytes) < sizeof(bits) ? sizeof(Bytes) : sizeof(bits));
          } else {
            out[at[0]] = in[at[2] + place * stride];
          }
        },
        values.strides(), indices.strides(), starts);
  });
}

// Writes values and indices of the first `keep` elements of each sorted line.
void pick_first(
    const at::Tensor& lines, bool descending, int64_t keep, const at::Tensor& values, const at::Tensor& indices) {
  if (by_digits(lines)) {
    const RadixSorted sorted = sorted_by_digits(lines, descending, keep);
    pick(lines, at::Tensor(), values, indices, sorted.order, descending);
  } else {
    pick(lines, sorted_places(lines, descending, keep), values, indices);
  }
}

// Resizes results of operators that keep one element per line, before the dimension is dropped.
void resize_to_one(
    const char* name, const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  TORCH_CHECK(
      values.options().type_equal(self.options()), name, ": output values must be of the same type as the input, ",
      self.toString(), ", got ", values.toString());
  TORCH_CHECK(
      indices.scalar_type() == at::kLong, name, ": output indices must be of scalar type Long, got ",
      indices.scalar_type());
  TORCH_CHECK(indices.device() == self.device(), name, ": output indices must be on the same device as the input");
  at::DimVector sizes(self.sizes());
  if (!sizes.empty() && keepdim) {
    sizes[dim] = 1;
  } else if (!sizes.empty()) {
    sizes.erase(sizes.begin() + dim);
  }
  aten::resize_output(values, sizes);
  aten::resize_output(indices, sizes);
  at::assert_no_overlap(values, self);
}

int64_t checked_dim(const char* name, const at::Tensor& self, int64_t dimension) {
  const int64_t dim = at::maybe_wrap_dim(dimension, self.dim());
  TORCH_CHECK_INDEX(
      self.dim() == 0 || self.numel() != 0 || self.size(dim) != 0, name, ": Expected reduction dim ", dim,
      " to have non-zero size.");
  return dim;
}

// Selects one element per line; the results may lack the line's dimension.
void pick_one(
    const at::Tensor& self, int64_t dim, bool keepdim, const at::Tensor& places, const at::Tensor& values,
    const at::Tensor& indices) {
  const auto restored = [&](const at::Tensor& result) {
    return along_last(keepdim || self.dim() == 0 ? result : result.unsqueeze(dim), dim);
  };
  pick(along_last(self, dim), places, restored(values), restored(indices));
}

// The place of the median of each sorted line. If the line has NaNs: the first NaN, or with ignore_nan the median of
// the rest.
template <typename T>
void median_places(const at::Tensor& self, const at::Tensor& sorted, bool ignore_nan, const at::Tensor& places) {
  at::DimVector starts(self.strides());
  const int64_t stride = starts.back();
  starts.back() = 0;
  const int64_t size = self.size(-1);
  const T* const in = self.const_data_ptr<T>();
  const int64_t* const from = sorted.const_data_ptr<int64_t>();
  int64_t* const to = places.mutable_data_ptr<int64_t>();
  for_each_offset(
      places.sizes(),
      [=] __device__(int64_t line, const auto& at) {
        int64_t numbers = size; // number of elements that are not NaN, which come first
        for (int64_t low = 0; std::is_floating_point_v<at::opmath_type<T>> && low < numbers;) {
          const int64_t middle = (low + numbers) / 2;
          const T value = in[at[0] + from[line * size + middle] * stride];
          if (value != value) {
            numbers = middle;
          } else {
            low = middle + 1;
          }
        }
        const int64_t of_numbers = numbers > 0 ? (numbers - 1) / 2 : 0;
        to[line] = from[line * size + (ignore_nan || numbers == size ? of_numbers : numbers)];
      },
      starts);
}

at::Tensor places_of_median(const at::Tensor& lines, bool ignore_nan) {
  at::DimVector sizes(lines.sizes());
  sizes.back() = 1;
  if (!at::isFloatingType(lines.scalar_type())) {
    const int64_t keep = (lines.size(-1) - 1) / 2 + 1;
    return sorted_places(lines, /*descending=*/false, keep).narrow(-1, keep - 1, 1).contiguous();
  }
  const at::Tensor sorted = sorted_places(lines, /*descending=*/false, lines.size(-1));
  const at::Tensor places = aten::empty(sizes, sorted.options());
  MUSA_DISPATCH(
      lines.scalar_type(), "median", (MUSA_FLOATING), { median_places<scalar_t>(lines, sorted, ignore_nan, places); });
  return places;
}

at::Tensor median_of_all(const at::Tensor& self, bool ignore_nan) {
  if (self.numel() == 0) {
    const auto floats = self.options().dtype(at::kFloat);
    return aten::full({}, std::numeric_limits<float>::quiet_NaN(), floats).to(self.scalar_type());
  }
  const at::Tensor line = self.reshape({-1});
  return line.index_select(0, places_of_median(line, ignore_nan)).squeeze(0);
}

void median_of_lines(
    const char* name, const at::Tensor& self, int64_t dimension, bool keepdim, bool ignore_nan, at::Tensor& values,
    at::Tensor& indices) {
  const int64_t dim = checked_dim(name, self, dimension);
  resize_to_one(name, self, dim, keepdim, values, indices);
  if (self.numel() > 0) {
    pick_one(self, dim, keepdim, places_of_median(along_last(self, dim), ignore_nan), values, indices);
  }
}

// Counts the elements of a sorted line up to this one that equal it.
template <typename T>
void count_equals(const at::Tensor& sorted, const at::Tensor& lengths) {
  const int64_t size = sorted.size(-1);
  const T* const in = sorted.const_data_ptr<T>();
  int64_t* const out = lengths.mutable_data_ptr<int64_t>();
  for_each(sorted.numel(), [=] __device__(int64_t i) {
    const T value = c10::load(in + i);
    int64_t first = i - i % size;
    for (int64_t end = i; first < end;) {
      const int64_t middle = (first + end) / 2;
      if (c10::load(in + middle) == value || value != value) {
        end = middle;
      } else {
        first = middle + 1;
      }
    }
    out[i] = value == value ? i - first + 1 : 1;
  });
}

} // namespace

at::Tensor sorted_places(const at::Tensor& self, bool descending, int64_t keep) {
  at::DimVector sizes(self.sizes());
  sizes.back() = keep;
  const at::Tensor places = aten::empty(sizes, self.options().dtype(at::kLong));
  if (places.numel() == 0) {
    return places;
  }
  if (by_digits(self)) {
    const RadixSorted sorted = sorted_by_digits(self, descending, keep);
    const RadixOrder order = sorted.order;
    int64_t* const to = places.mutable_data_ptr<int64_t>();
    for_each(places.numel(), [=] __device__(int64_t i) { to[i] = order.place(i); });
    return places;
  }
  const bool short_lines = self.size(-1) <= int64_t{0xffffffff};
  MUSA_DISPATCH(self.scalar_type(), "sort", (MUSA_REAL, MUSA_UNSIGNED, at::kBool), {
    if (sizeof(scalar_t) <= 4 && short_lines) {
      sort_as<scalar_t, PackedPair>(self, descending, places);
    } else {
      sort_as<scalar_t, WidePair>(self, descending, places);
    }
  });
  return places;
}

at::Tensor order_keys(const at::Tensor& self, uint64_t flip) {
  const auto dtype = self.element_size() <= 4 ? at::kInt : at::kLong;
  const at::Tensor keys = aten::empty(self.sizes(), self.options().dtype(dtype));
  MUSA_DISPATCH(self.scalar_type(), "order_keys", (MUSA_REAL, MUSA_UNSIGNED, at::kBool), {
    const scalar_t* const in = self.const_data_ptr<scalar_t>();
    auto* const out = static_cast<KeyOf<scalar_t>*>(keys.mutable_data_ptr());
    for_each_offset(
        self.sizes(),
        [=] __device__(int64_t i, const auto& at) {
          out[i] = key_of(c10::load(in + at[0])) ^ static_cast<KeyOf<scalar_t>>(flip);
        },
        self.strides());
  });
  return keys;
}

void sort_stable(
    const at::Tensor& self, std::optional<bool>, int64_t dim, bool descending, const at::Tensor& values,
    const at::Tensor& indices) {
  if (self.numel() > 0) {
    check_overlap(values, self);
    const at::Tensor lines = along_last(self, dim);
    pick_first(lines, descending, lines.size(-1), along_last(values, dim), along_last(indices, dim));
  }
}

void topk(
    const at::Tensor& self, int64_t k, int64_t dim, bool largest, bool, const at::Tensor& values,
    const at::Tensor& indices) {
  if (values.numel() > 0) {
    const at::Tensor lines = along_last(self, dim);
    pick_first(lines, largest, k, along_last(values, dim), along_last(indices, dim));
  }
}

std::tuple<at::Tensor&, at::Tensor&> kthvalue_values(
    const at::Tensor& self, int64_t k, int64_t dimension, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  const int64_t dim = checked_dim("kthvalue()", self, dimension);
  const int64_t size = self.dim() == 0 ? 1 : self.size(dim);
  TORCH_CHECK(k >= 1 && k <= size, "kthvalue(): selected number k out of range for dimension ", dim);
  resize_to_one("kthvalue()", self, dim, keepdim, values, indices);
  if (self.numel() > 0) {
    const at::Tensor places = sorted_places(along_last(self, dim), /*descending=*/false, k);
    pick_one(self, dim, keepdim, places.narrow(-1, k - 1, 1).contiguous(), values, indices);
  }
  return {values, indices};
}

at::Tensor median(const at::Tensor& self) { return median_of_all(self, /*ignore_nan=*/false); }
at::Tensor nanmedian(const at::Tensor& self) { return median_of_all(self, /*ignore_nan=*/true); }
std::tuple<at::Tensor&, at::Tensor&> median_dim_values(
    const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  median_of_lines("median()", self, dim, keepdim, /*ignore_nan=*/false, values, indices);
  return {values, indices};
}
std::tuple<at::Tensor&, at::Tensor&> nanmedian_dim_values(
    const at::Tensor& self, int64_t dim, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  median_of_lines("nanmedian()", self, dim, keepdim, /*ignore_nan=*/true, values, indices);
  return {values, indices};
}

// Among equally frequent values the smallest is returned.
std::tuple<at::Tensor&, at::Tensor&> mode_values(
    const at::Tensor& self, int64_t dimension, bool keepdim, at::Tensor& values, at::Tensor& indices) {
  const int64_t dim = checked_dim("mode()", self, dimension);
  resize_to_one("mode()", self, dim, keepdim, values, indices);
  if (self.numel() > 0) {
    const at::Tensor lines = along_last(self, dim);
    const at::Tensor places = sorted_places(lines, /*descending=*/false, lines.size(-1));
    const at::Tensor sorted = aten::empty(lines.sizes(), self.options());
    const at::Tensor lengths = aten::empty_like(places);
    pick(lines, places, sorted, lengths);
    MUSA_DISPATCH(self.scalar_type(), "mode", (MUSA_REAL, at::kBool), { count_equals<scalar_t>(sorted, lengths); });
    const at::Tensor best = at::argmax(lengths, -1, /*keepdim=*/true);
    pick_one(self, dim, keepdim, places.gather(-1, best), values, indices);
  }
  return {values, indices};
}
std::tuple<at::Tensor, at::Tensor> mode(const at::Tensor& self, int64_t dim, bool keepdim) {
  at::Tensor values = aten::empty({0}, self.options());
  at::Tensor indices = aten::empty({0}, self.options().dtype(at::kLong));
  mode_values(self, dim, keepdim, values, indices);
  return {values, indices};
}

} // namespace musa_ops_ported
