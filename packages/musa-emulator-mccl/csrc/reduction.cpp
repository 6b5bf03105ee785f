// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "reduction.h"

#include <ATen/ops/add_cpu_dispatch.h>
#include <ATen/ops/div_cpu_dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/maximum_cpu_dispatch.h>
#include <ATen/ops/minimum_cpu_dispatch.h>
#include <ATen/ops/mul_cpu_dispatch.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Float8_e4m3fn.h>
#include <c10/util/Float8_e5m2.h>

#include <algorithm>
#include <cstring>

namespace musa_emulator::mccl {
namespace {

using c10d::ReduceOp;

// Largest receive size in bytes for which an all-reduce gathers: that sends more bytes than Gloo's algorithm, in
// fewer messages.
constexpr size_t kSmall = 1 << 21;

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
    default: return ReduceOp::SUM; // mcclAvg is a sum, divided afterwards
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

// Sets result to op over the rows, in row order.
template <class T>
void reduce_elements(const T* rows, T* result, int ranks, size_t count, mcclRedOp_t op) {
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

void combine(const at::Tensor& one, const at::Tensor& other, at::Tensor result, mcclRedOp_t op) {
  switch (op) {
    case mcclProd: at::cpu::mul_outf(one, other, result); break;
    case mcclMax: at::cpu::maximum_outf(one, other, result); break;
    case mcclMin: at::cpu::minimum_outf(one, other, result); break;
    default: at::cpu::add_outf(one, other, 1, result); break; // mcclAvg is a sum, divided afterwards
  }
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

// Sets result to op over `rows`, (ranks, elements), in rank order, so that all ranks get the same bits.
void reduce_rows(const at::Tensor& rows, const at::Tensor& result, mcclRedOp_t op, int ranks) {
  if (gloo_reduces(result.scalar_type())) {
    combine(rows.select(0, 0), rows.select(0, 1), result, op);
    for (int rank = 2; rank < ranks; ++rank) {
      combine(result, rows.select(0, rank), result, op);
    }
    finish(result, op, ranks);
    return;
  }
  with_type_of(result, [&](auto type) {
    using T = decltype(type);
    reduce_elements(
        static_cast<const T*>(rows.const_data_ptr()), static_cast<T*>(result.mutable_data_ptr()), ranks,
        static_cast<size_t>(result.numel()), op);
  });
}

// Every rank gathers the values of all ranks and reduces them locally.
void gather_and_reduce(const at::Tensor& values, mcclRedOp_t op, Transport& transport, int ranks) {
  const at::Tensor rows = at::empty({ranks, values.numel()}, values.options());
  transport.exchange(values.unsqueeze(0), rows);
  reduce_rows(rows, values, op, ranks);
}

// Applied in place to each rank's own values before the exchange.
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
  const bool small = values.nbytes() * static_cast<size_t>(ranks - 1) <= kSmall;
  if (gloo_reduces(values.scalar_type()) && !small) {
    transport->all_reduce(values, gloo_op(reduction.op));
    finish(values, reduction.op, ranks);
  } else {
    gather_and_reduce(values, reduction.op, *transport, ranks);
  }
}

void reduce_scatter(
    const at::Tensor& whole, const at::Tensor& part, const Reduction& reduction, Transport* transport, int ranks) {
  at::Tensor values = whole;
  if (reduction.multiplier != nullptr) {
    values = whole.clone(); // the caller's send buffer must not change
    prepare(values, reduction);
  }
  if (transport == nullptr) {
    if (part.const_data_ptr() != values.const_data_ptr()) {
      std::memcpy(part.mutable_data_ptr(), values.const_data_ptr(), part.nbytes());
    }
    return;
  }
  const at::Tensor rows = at::empty({ranks, part.numel()}, part.options());
  transport->exchange(values.view({ranks, -1}), rows);
  reduce_rows(rows, part, reduction.op, ranks);
}

void reduce(const at::Tensor& values, const Reduction& reduction, int root, Transport* transport, int ranks) {
  prepare(values, reduction);
  if (transport == nullptr) {
    return;
  }
  if (gloo_reduces(values.scalar_type())) {
    transport->reduce(values, gloo_op(reduction.op), root);
    finish(values, reduction.op, ranks); // needed only at the root
  } else {
    gather_and_reduce(values, reduction.op, *transport, ranks);
  }
}

} // namespace musa_emulator::mccl
