// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "reduction.h"

#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#include <algorithm>
#include <cstring>

namespace musa_emulator::mccl {
namespace {

using c10d::ReduceOp;

bool gloo_reduces(c10::ScalarType type) {
  switch (type) {
    case at::kFloat:
    case at::kDouble:
    case at::kHalf:
    case at::kBFloat16:
    case at::kChar:
    case at::kByte:
    case at::kInt:
    case at::kLong: return true;
    default: return false;
  }
}

ReduceOp::RedOpType gloo_op(mcclRedOp_t op) {
  switch (op) {
    case mcclProd: return ReduceOp::PRODUCT;
    case mcclMax: return ReduceOp::MAX;
    case mcclMin: return ReduceOp::MIN;
    default: return ReduceOp::SUM; // of an average, the first step
  }
}

template <class T>
struct ComputesIn {
  using type = T;
};
template <>
struct ComputesIn<c10::Float8_e4m3fn> {
  using type = float;
};
template <>
struct ComputesIn<c10::Float8_e5m2> {
  using type = float;
};

template <class Function>
void with_type_of(const at::Tensor& values, Function&& function) {
  switch (values.scalar_type()) {
    case at::kUInt32: function(uint32_t{}); break;
    case at::kUInt64: function(uint64_t{}); break;
    case at::kFloat8_e4m3fn: function(c10::Float8_e4m3fn{}); break;
    case at::kFloat8_e5m2: function(c10::Float8_e5m2{}); break;
    default: TORCH_INTERNAL_ASSERT(false);
  }
}

// result = op over the rows, in the order of the ranks.
template <class T>
void reduce_rows(const T* rows, T* result, int ranks, size_t count, mcclRedOp_t op) {
  using Wide = typename ComputesIn<T>::type;
  for (size_t i = 0; i < count; ++i) {
    Wide total = static_cast<Wide>(rows[i]);
    for (int rank = 1; rank < ranks; ++rank) {
      const auto next = static_cast<Wide>(rows[static_cast<size_t>(rank) * count + i]);
      total = op == mcclProd ? total * next
          : op == mcclMax    ? std::max(total, next)
          : op == mcclMin    ? std::min(total, next)
                             : total + next;
    }
    result[i] = static_cast<T>(op == mcclAvg ? total / static_cast<Wide>(ranks) : total);
  }
}

void gather_and_reduce(const at::Tensor& values, mcclRedOp_t op, Transport& transport, int ranks) {
  const int64_t bytes = values.numel() * static_cast<int64_t>(values.element_size());
  const at::Tensor own = at::from_blob(values.mutable_data_ptr(), {bytes}, at::kByte);
  const at::Tensor all = at::empty({ranks * bytes}, at::kByte);
  transport.all_gather(all, own);
  with_type_of(values, [&](auto type) {
    using T = decltype(type);
    reduce_rows(
        static_cast<const T*>(all.const_data_ptr()), static_cast<T*>(values.mutable_data_ptr()), ranks,
        static_cast<size_t>(values.numel()), op);
  });
}

void finish(const at::Tensor& values, mcclRedOp_t op, int ranks) {
  if (op != mcclAvg) {
    return;
  }
  at::Tensor result = values;
  if (at::isFloatingType(values.scalar_type())) {
    at::cpu::div_(result, at::scalar_tensor(ranks, values.options()));
  } else {
    at::cpu::div_(result, at::scalar_tensor(ranks, values.options()), "trunc");
  }
}

// Before the exchange: each rank's own values, in place.
void prepare(const at::Tensor& values, const Reduction& reduction) {
  if (reduction.multiplier == nullptr) {
    return;
  }
  const PreMultiplier& by = *reduction.multiplier;
  const void* factor = by.on_device != nullptr ? by.on_device : by.value.data();
  if (gloo_reduces(values.scalar_type())) {
    at::Tensor result = values;
    at::cpu::mul_(result, view(factor, 1, by.datatype).select(0, 0));
    return;
  }
  with_type_of(values, [&](auto type) {
    using T = decltype(type);
    using Wide = typename ComputesIn<T>::type;
    T* elements = static_cast<T*>(values.mutable_data_ptr());
    const auto scale = static_cast<Wide>(*static_cast<const T*>(factor));
    for (int64_t i = 0; i < values.numel(); ++i) {
      elements[i] = static_cast<T>(static_cast<Wide>(elements[i]) * scale);
    }
  });
}

} // namespace

c10::ScalarType scalar_type(mcclDataType_t datatype) {
  switch (datatype) {
    case mcclInt8: return at::kChar;
    case mcclUint8: return at::kByte;
    case mcclInt32: return at::kInt;
    case mcclUint32: return at::kUInt32;
    case mcclInt64: return at::kLong;
    case mcclUint64: return at::kUInt64;
    case mcclFloat16: return at::kHalf;
    case mcclFloat32: return at::kFloat;
    case mcclFloat64: return at::kDouble;
    case mcclBfloat16: return at::kBFloat16;
    case mcclFp8E4M3: return at::kFloat8_e4m3fn;
    case mcclFp8E5M2: return at::kFloat8_e5m2;
  }
  return at::kByte;
}

at::Tensor view(const void* memory, size_t count, mcclDataType_t datatype) {
  return at::from_blob(const_cast<void*>(memory), {static_cast<int64_t>(count)}, scalar_type(datatype));
}

at::Tensor bytes_of(const void* memory, size_t count, mcclDataType_t datatype) {
  const size_t bytes = count * c10::elementSize(scalar_type(datatype));
  return at::from_blob(const_cast<void*>(memory), {static_cast<int64_t>(bytes)}, at::kByte);
}

void all_reduce(const at::Tensor& values, const Reduction& reduction, Transport* transport, int ranks) {
  prepare(values, reduction);
  if (transport == nullptr) {
    return;
  }
  if (gloo_reduces(values.scalar_type())) {
    transport->all_reduce(values, gloo_op(reduction.op));
    finish(values, reduction.op, ranks);
  } else {
    gather_and_reduce(values, reduction.op, *transport, ranks);
  }
}

void reduce(const at::Tensor& values, const Reduction& reduction, int root, Transport* transport, int ranks) {
  prepare(values, reduction);
  if (transport == nullptr) {
    return;
  }
  if (gloo_reduces(values.scalar_type())) {
    transport->reduce(values, gloo_op(reduction.op), root);
    finish(values, reduction.op, ranks); // of use at the root alone
  } else {
    gather_and_reduce(values, reduction.op, *transport, ranks);
  }
}

} // namespace musa_emulator::mccl
