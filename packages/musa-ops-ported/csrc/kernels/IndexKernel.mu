// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Indexing with index tensors. An index out of range fails an assertion on the device.
#include <ATen/core/Tensor.h>
#include <ATen/musa/Atomic.muh>
#include <ATen/ExpandUtils.h>
#include <ATen/native/IndexKernel.h>
#include <ATen/native/IndexingUtils.h>
#include <ATen/native/TensorAdvancedIndexing.h>
#include <ATen/native/TensorIterator.h>
#include <c10/util/complex.h>
#include <c10/util/Load.h>

#include <algorithm>

#include "engines/aten.h"
#include "engines/dispatch.h"
#include "engines/for_each.muh"
#include "engines/vector.h"
#include "kernels/IndexKernel.h"

namespace musa_ops_ported {
namespace {

// ---- x[indices] and assignment to it

// Addresses of the operands of an iterator over (result or indexed, values, indices...). Holds at most kIndices
// indices, the number that fits into kernel arguments, starting with index `from`; `earlier` holds the offsets from
// preceding indices per element.
struct IndexPlan {
  static constexpr int kDims = kMaxDims;
  static constexpr int kIndices = 10;
  int dims, indices;
  const int64_t* earlier;
  int64_t sizes[kDims];
  int64_t first[kDims], second[kDims], index[kIndices][kDims]; // strides in bytes
  const char* index_data[kIndices];
  int64_t indexed_sizes[kIndices], indexed_strides[kIndices];

  IndexPlan(
      const at::TensorIteratorBase& iter, at::IntArrayRef sizes_of, at::IntArrayRef strides_of, int from,
      const at::Tensor& offsets)
      : dims(iter.ndim()),
        indices(std::min(kIndices, static_cast<int>(sizes_of.size()) - from)),
        earlier(offsets.defined() ? offsets.const_data_ptr<int64_t>() : nullptr) {
    TORCH_CHECK(dims <= kDims, "indexing is not supported for tensors of more than ", kDims, " dimensions, got ", dims);
    TORCH_INTERNAL_ASSERT(iter.ntensors() == static_cast<int>(sizes_of.size()) + 2);
    for (int d = 0; d < dims; ++d) {
      sizes[d] = iter.shape()[d];
      first[d] = iter.strides(0)[d];
      second[d] = iter.strides(1)[d];
      for (int k = 0; k < indices; ++k) {
        index[k][d] = iter.strides(from + k + 2)[d];
      }
    }
    for (int k = 0; k < indices; ++k) {
      index_data[k] = static_cast<const char*>(iter.data_ptr(from + k + 2));
      indexed_sizes[k] = sizes_of[from + k];
      indexed_strides[k] = strides_of[from + k];
    }
  }

  struct Place {
    int64_t first, second, indexed;
  };
  // Divides in 32 bits if the element index allows it. Each further index has its own loop, because an array of
  // offsets would be placed in local memory.
  template <typename Use>
  __device__ C10_ALWAYS_INLINE void each_coordinate(int64_t element, const Use& use) const {
    for (int d = 0; d + 1 < dims; ++d) {
      const int64_t quotient =
          (element >> 31) == 0 ? static_cast<uint32_t>(element) / static_cast<uint32_t>(sizes[d]) : element / sizes[d];
      use(d, element - quotient * sizes[d]);
      element = quotient;
    }
    if (dims > 0) {
      use(dims - 1, element);
    }
  }
  __device__ C10_ALWAYS_INLINE int64_t chosen(int k, int64_t offset) const {
    const int64_t chosen = *reinterpret_cast<const int64_t*>(index_data[k] + offset);
    CUDA_KERNEL_ASSERT(-indexed_sizes[k] <= chosen && chosen < indexed_sizes[k] && "index out of bounds");
    return (chosen < 0 ? chosen + indexed_sizes[k] : chosen) * indexed_strides[k];
  }
  __device__ C10_ALWAYS_INLINE Place at(int64_t element) const {
    Place place{0, 0, earlier != nullptr ? earlier[element] : 0};
    int64_t offset = 0;
    each_coordinate(element, [&](int d, int64_t coordinate) {
      place.first += coordinate * first[d];
      place.second += coordinate * second[d];
      offset += coordinate * index[0][d];
    });
    if (indices > 0) {
      place.indexed += chosen(0, offset);
    }
    for (int k = 1; k < indices; ++k) {
      offset = 0;
      each_coordinate(element, [&](int d, int64_t coordinate) { offset += coordinate * index[k][d]; });
      place.indexed += chosen(k, offset);
    }
    return place;
  }

  // Merges adjacent elements that are copied together into one of up to 16 bytes, and returns its size. An index that
  // selects rows keeps the elements of a row together.
  int64_t widen(int64_t size, const void* out, const void* in) {
    if (dims == 0 || earlier != nullptr || first[0] != size || second[0] != size) {
      return size;
    }
    uint64_t all =
        reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(in) | static_cast<uint64_t>(sizes[0] * size);
    for (int d = 1; d < dims; ++d) {
      all |= static_cast<uint64_t>(first[d]) | static_cast<uint64_t>(second[d]);
    }
    for (int k = 0; k < indices; ++k) {
      if (index[k][0] != 0) {
        return size;
      }
      all |= static_cast<uint64_t>(indexed_strides[k]);
    }
    int64_t wide = 16;
    while (wide > size && all % wide != 0) {
      wide /= 2;
    }
    sizes[0] = sizes[0] * size / wide;
    first[0] = second[0] = wide;
    return wide;
  }
};

// Plans the last indices; preceding indices are accumulated into the offsets that the plan starts from.
IndexPlan plan_indices(const at::TensorIteratorBase& iter, at::IntArrayRef sizes, at::IntArrayRef strides) {
  at::Tensor offsets;
  int from = 0;
  for (; static_cast<int>(sizes.size()) - from > IndexPlan::kIndices; from += IndexPlan::kIndices) {
    const IndexPlan plan(iter, sizes, strides, from, offsets);
    offsets = aten::empty({iter.numel()}, iter.tensor_base(2).options().dtype(at::kLong));
    int64_t* const to = offsets.mutable_data_ptr<int64_t>();
    for_each(iter.numel(), [=] __device__(int64_t i) { to[i] = plan.at(i).indexed; });
  }
  return IndexPlan(iter, sizes, strides, from, offsets);
}

void index(at::TensorIteratorBase& iter, at::IntArrayRef sizes, at::IntArrayRef strides) {
  if (iter.numel() == 0) {
    return;
  }
  IndexPlan plan = plan_indices(iter, sizes, strides);
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const in = static_cast<const char*>(iter.data_ptr(1));
  const int64_t size = iter.element_size(0);
  const int64_t wide = plan.widen(size, out, in);
  MUSA_BY_SIZE(wide, {
    for_each(iter.numel() * size / wide, [=] __device__(int64_t i) {
      const auto place = plan.at(i);
      *reinterpret_cast<Bytes*>(out + place.first) = *reinterpret_cast<const Bytes*>(in + place.second + place.indexed);
    });
  });
}

void index_put(at::TensorIterator& iter, at::IntArrayRef sizes, at::IntArrayRef strides, bool accumulate) {
  if (iter.numel() == 0) {
    return;
  }
  IndexPlan plan = plan_indices(iter, sizes, strides);
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const in = static_cast<const char*>(iter.data_ptr(1));
  if (accumulate) {
    MUSA_DISPATCH(iter.dtype(0), "index_put", (MUSA_ALL), {
      for_each(iter.numel(), [=] __device__(int64_t i) {
        const auto place = plan.at(i);
        gpuAtomicAddNoReturn(
            reinterpret_cast<scalar_t*>(out + place.first + place.indexed), c10::load<scalar_t>(in + place.second));
      });
    });
    return;
  }
  const int64_t size = iter.element_size(0);
  const int64_t wide = plan.widen(size, out, in);
  MUSA_BY_SIZE(wide, {
    for_each(iter.numel() * size / wide, [=] __device__(int64_t i) {
      const auto place = plan.at(i);
      *reinterpret_cast<Bytes*>(out + place.first + place.indexed) = *reinterpret_cast<const Bytes*>(in + place.second);
    });
  });
}

// As above, for a tensor and its indices as passed by the caller: `self` is expanded to the shape of the values, with
// stride 0 along the dimensions of the indices.
void index_put_into(
    at::Tensor& self, const c10::List<std::optional<at::Tensor>>& given, const at::Tensor& value, bool accumulate,
    bool unsafe) {
  if (accumulate && (self.scalar_type() == at::kHalf || self.scalar_type() == at::kBFloat16)) {
    // Accumulates in float, so that the sum is rounded once.
    at::Tensor wide = self.to(at::kFloat);
    index_put_into(wide, given, value.to(at::kFloat), accumulate, unsafe);
    self.copy_(wide);
    return;
  }
  std::vector<at::Tensor> indices = at::expand_outplace(at::native::expandTensors(self, given));
  at::Tensor front = self;
  indices.resize(self.dim());
  if (!at::native::hasContiguousSubspace(indices)) {
    std::tie(front, indices) = at::native::transposeToFront(self, indices);
  }
  at::DimVector shape, strides, sizes_of, strides_of;
  std::vector<at::Tensor> chosen;
  int64_t before = 0;
  for (int64_t d = 0; d < front.dim(); ++d) {
    if (!indices[d].defined()) {
      shape.push_back(front.size(d));
      strides.push_back(front.stride(d));
      before += chosen.empty();
      continue;
    }
    if (chosen.empty()) {
      shape.append(indices[d].sizes().begin(), indices[d].sizes().end());
      strides.resize(shape.size(), 0);
    }
    chosen.push_back(indices[d].to(self.device(), at::kLong));
    sizes_of.push_back(front.size(d));
    strides_of.push_back(front.stride(d) * static_cast<int64_t>(self.element_size()));
  }
  at::TensorIteratorConfig config;
  config.set_check_mem_overlap(false).resize_outputs(false).check_all_same_dtype(false);
  config.add_owned_output(front.as_strided(shape, strides, front.storage_offset()));
  TORCH_CHECK(
      at::is_expandable_to(value.sizes(), shape), "shape mismatch: value tensor of shape ", value.sizes(),
      " cannot be broadcast to indexing result of shape ", at::IntArrayRef(shape));
  config.add_owned_const_input(value.expand(shape));
  const int64_t after = static_cast<int64_t>(shape.size()) - before - (chosen.empty() ? 0 : chosen[0].dim());
  for (const at::Tensor& index : chosen) {
    at::DimVector aligned(before, 1);
    aligned.append(index.sizes().begin(), index.sizes().end());
    aligned.resize(aligned.size() + after, 1);
    config.add_owned_const_input(index.reshape(aligned));
  }
  auto iter = config.build();
  index_put(iter, sizes_of, strides_of, accumulate);
}

// ---- indexing along one dimension: an iterator over (self without that dimension, index[, source])

// for_each_offset over the operands of an iterator, with offsets in bytes.
template <typename F, typename... Operands>
void over(const at::TensorIteratorBase& iter, const F& f, Operands... operands) {
  const auto outer_first = [](at::IntArrayRef inner_first) {
    return at::DimVector(inner_first.rbegin(), inner_first.rend());
  };
  for_each_offset(outer_first(iter.shape()), f, outer_first(iter.strides(operands))...);
}

__device__ C10_ALWAYS_INLINE int64_t wrapped(int64_t index, int64_t size) {
  CUDA_KERNEL_ASSERT(-size <= index && index < size && "index out of bounds");
  return index < 0 ? index + size : index;
}

void index_fill(at::TensorIterator& iter, int64_t, int64_t size, int64_t stride, const at::Scalar& source) {
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const indices = static_cast<const char*>(iter.data_ptr(1));
  MUSA_DISPATCH(iter.dtype(0), "index_fill", (MUSA_ALL), {
    const auto value = source.to<scalar_t>();
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          const int64_t index = wrapped(*reinterpret_cast<const int64_t*>(indices + at[1]), size);
          reinterpret_cast<scalar_t*>(out + at[0])[index * stride] = value;
        },
        0, 1);
  });
}

void index_copy(at::TensorIterator& iter, int64_t, int64_t size, int64_t stride) {
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const indices = static_cast<const char*>(iter.data_ptr(1));
  const char* const source = static_cast<const char*>(iter.data_ptr(2));
  MUSA_BY_SIZE(iter.element_size(0), {
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          const int64_t index = *reinterpret_cast<const int64_t*>(indices + at[1]);
          CUDA_KERNEL_ASSERT(index >= 0 && index < size && "index_copy_(): index out of bounds");
          reinterpret_cast<Bytes*>(out + at[0])[index * stride] = *reinterpret_cast<const Bytes*>(source + at[2]);
        },
        0, 1, 2);
  });
}

// ---- indexing of the flattened tensor

// Converts a flat index to an offset.
struct Flat {
  Offsets<1> offsets;
  int64_t count;

  explicit Flat(const at::TensorBase& tensor)
      : offsets(offsets_of<1>(tensor.sizes(), {tensor.strides()})), count(tensor.numel()) {}
  __device__ int64_t at(int64_t index) const { return offsets.of(0, wrapped(index, count)); }
};

void take(at::TensorIterator& iter, const at::TensorBase& input) {
  const Flat flat(input);
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const indices = static_cast<const char*>(iter.data_ptr(1));
  MUSA_BY_SIZE(iter.element_size(0), {
    const Bytes* const in = static_cast<const Bytes*>(input.const_data_ptr());
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          *reinterpret_cast<Bytes*>(out + at[0]) = in[flat.at(*reinterpret_cast<const int64_t*>(indices + at[1]))];
        },
        0, 1);
  });
}

void put(at::TensorIterator& iter, const at::TensorBase& self, bool accumulate) {
  const Flat flat(self);
  const char* const source = static_cast<const char*>(iter.data_ptr(0));
  const char* const indices = static_cast<const char*>(iter.data_ptr(1));
  MUSA_DISPATCH(iter.dtype(0), "put", (MUSA_ALL), {
    scalar_t* const out = self.mutable_data_ptr<scalar_t>();
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          scalar_t* const to = out + flat.at(*reinterpret_cast<const int64_t*>(indices + at[1]));
          const scalar_t value = c10::load<scalar_t>(source + at[0]);
          if (accumulate) {
            gpuAtomicAddNoReturn(to, value);
          } else {
            *to = value;
          }
        },
        0, 1);
  });
}

// ---- masks

void masked_fill(at::TensorIterator& iter, const at::Scalar& value) {
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const mask = static_cast<const char*>(iter.data_ptr(iter.ntensors() - 1));
  MUSA_DISPATCH(iter.dtype(0), "masked_fill", (MUSA_ALL), {
    const auto filler = value.to<scalar_t>();
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          if (*reinterpret_cast<const uint8_t*>(mask + at[1]) != 0) {
            *reinterpret_cast<scalar_t*>(out + at[0]) = filler;
          }
        },
        0, iter.ntensors() - 1);
  });
}

// ---- flip: an iterator whose output has negative strides along the flipped dimensions

void flip(at::TensorIterator& iter, const bool) {
  char* const out = static_cast<char*>(iter.data_ptr(0));
  const char* const in = static_cast<const char*>(iter.data_ptr(1));
  MUSA_BY_SIZE(iter.element_size(0), {
    over(
        iter,
        [=] __device__(int64_t, const auto& at) {
          *reinterpret_cast<Bytes*>(out + at[0]) = *reinterpret_cast<const Bytes*>(in + at[1]);
        },
        0, 1);
  });
}

} // namespace
} // namespace musa_ops_ported

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(index_stub, &musa_ops_ported::index)
REGISTER_PRIVATEUSE1_DISPATCH(index_put_stub, &musa_ops_ported::index_put)
REGISTER_PRIVATEUSE1_DISPATCH(index_put_with_sort_stub, &musa_ops_ported::index_put_into)
REGISTER_PRIVATEUSE1_DISPATCH(index_fill_stub, &musa_ops_ported::index_fill)
REGISTER_PRIVATEUSE1_DISPATCH(index_copy_stub, &musa_ops_ported::index_copy)
REGISTER_PRIVATEUSE1_DISPATCH(take_stub, &musa_ops_ported::take)
REGISTER_PRIVATEUSE1_DISPATCH(put_stub, &musa_ops_ported::put)
REGISTER_PRIVATEUSE1_DISPATCH(masked_fill_stub, &musa_ops_ported::masked_fill)
REGISTER_PRIVATEUSE1_DISPATCH(flip_stub, &musa_ops_ported::flip)
} // namespace at::native
