// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "elements.h"

#include <c10/core/ScalarType.h>
#include <c10/musa/MUSACompat.h>

#include <array>
#include <cstring>
#include <optional>

#include "errors.h"

namespace c10d::mccl {
namespace {

std::optional<mcclDataType_t> type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kBool: // sent as bytes
    case at::kByte: return mcclUint8;
    case at::kChar: return mcclInt8;
    case at::kInt: return mcclInt32;
    case at::kUInt32: return mcclUint32;
    case at::kLong: return mcclInt64;
    case at::kUInt64: return mcclUint64;
    case at::kHalf: return mcclFloat16;
    case at::kFloat: return mcclFloat32;
    case at::kDouble: return mcclFloat64;
    case at::kBFloat16: return mcclBfloat16;
    case at::kFloat8_e4m3fn: return mcclFp8E4M3;
    case at::kFloat8_e5m2: return mcclFp8E5M2;
    default: return std::nullopt;
  }
}

// Values of mcclScalarResidence_t, assumed equal to NCCL's. The names of the enumerators and of the type in MCCL are
// not documented, so the type is deduced from the function.
constexpr int kOnDevice = 0;
constexpr int kOnHost = 1;

template <typename Operation, typename Data, typename Residence, typename Communicator>
Residence residence_of(mcclResult_t (*)(Operation, Data, mcclDataType_t, Residence, Communicator), int place) {
  return static_cast<Residence>(place);
}

// Returns the scalar as an element of `dtype`, in host memory.
std::array<char, 8> scalar_bytes(double value, at::ScalarType dtype) {
  std::array<char, 8> bytes{};
  const auto put = [&](auto element) { std::memcpy(bytes.data(), &element, sizeof element); };
  switch (dtype) {
    case at::kHalf: put(static_cast<at::Half>(value)); break;
    case at::kBFloat16: put(static_cast<at::BFloat16>(value)); break;
    case at::kFloat: put(static_cast<float>(value)); break;
    case at::kDouble: put(value); break;
    default:
      C10_THROW_ERROR(
          TypeError, c10::str("ReduceOp.PREMUL_SUM supports float16, bfloat16, float32 and float64, not ", dtype, "."));
  }
  return bytes;
}

} // namespace

Elements elements_to_reduce(const at::Tensor& tensor) {
  const auto type = type_of(tensor.scalar_type());
  TORCH_CHECK_TYPE(
      type.has_value(), "MCCL cannot reduce tensors of ", tensor.scalar_type(),
      ".\nFix: reduce them in a wider dtype, tensor.to(torch.int32) for small integers.");
  return {*type, static_cast<size_t>(tensor.numel())};
}

Elements elements_to_move(at::ScalarType dtype, int64_t numel) {
  const auto count = static_cast<size_t>(numel);
  const auto type = type_of(dtype);
  // The data is only moved, and 8-bit float types exist on newer architectures only.
  if (type.has_value() && *type != mcclFp8E4M3 && *type != mcclFp8E5M2) {
    return {*type, count};
  }
  return {mcclUint8, count * c10::elementSize(dtype)};
}

Reduction::Reduction(const ReduceOp& op, at::ScalarType dtype, mcclComm_t comm) {
  switch (op) {
    case ReduceOp::SUM:
      // Booleans are reduced as uint8, in which 1 + 1 would be 2.
      op_ = dtype == at::kBool ? mcclMax : mcclSum;
      return;
    case ReduceOp::PRODUCT: op_ = mcclProd; return;
    case ReduceOp::MIN: op_ = mcclMin; return;
    case ReduceOp::MAX: op_ = mcclMax; return;
    case ReduceOp::AVG:
      TORCH_CHECK_TYPE(dtype != at::kBool, "ReduceOp.AVG does not support bool tensors.");
      op_ = mcclAvg;
      return;
    case ReduceOp::PREMUL_SUM: {
      TORCH_CHECK_TYPE(dtype != at::kBool, "ReduceOp.PREMUL_SUM does not support bool tensors.");
      const auto* supplement = dynamic_cast<const MUSA_PREMUL_SUM_SUPPLEMENT*>(op.supplement_.get());
      TORCH_CHECK_VALUE(
          supplement != nullptr,
          "ReduceOp.PREMUL_SUM has no factor.\nFix: create it with torch.distributed._make_nccl_premul_sum(factor).");
      if (supplement->tensor_factor.defined() && !supplement->tensor_factor.is_cpu()) {
        TORCH_CHECK_TYPE(
            supplement->tensor_factor.scalar_type() == dtype, "The factor of ReduceOp.PREMUL_SUM has dtype ",
            supplement->tensor_factor.scalar_type(), " and the tensor ", dtype, ".");
        MCCL_CHECK(mcclRedOpCreatePreMulSum(
            &op_, supplement->tensor_factor.data_ptr(), *type_of(dtype),
            residence_of(mcclRedOpCreatePreMulSum, kOnDevice), comm));
      } else {
        const double factor = supplement->tensor_factor.defined() ? supplement->tensor_factor.item().toDouble()
                                                                  : supplement->double_factor;
        auto scalar = scalar_bytes(factor, dtype);
        MCCL_CHECK(mcclRedOpCreatePreMulSum(
            &op_, scalar.data(), *type_of(dtype), residence_of(mcclRedOpCreatePreMulSum, kOnHost), comm));
      }
      owner_ = comm;
      return;
    }
    case ReduceOp::BAND:
    case ReduceOp::BOR:
    case ReduceOp::BXOR:
      TORCH_CHECK_VALUE(
          false,
          "MCCL has no bitwise reductions (BAND, BOR, BXOR).\nFix: reduce a CPU tensor with backend "
          "\"cpu:gloo,musa:mccl\", or gather the tensors and combine them.");
    default: TORCH_CHECK_VALUE(false, "Unknown reduction ", static_cast<int>(op.op_), ".");
  }
}

Reduction::~Reduction() {
  if (owner_ != nullptr) {
    (void)mcclRedOpDestroy(op_, owner_); // enqueued calls keep it; a destructor cannot report an error
  }
}

} // namespace c10d::mccl
