// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Maps torch's dtypes and reductions to MCCL's.
#pragma once

#include <ATen/core/Tensor.h>
#include <mccl.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace c10d::mccl {

struct Elements {
  mcclDataType_t type;
  size_t count;
};

// For calls that reduce. Raises TypeError for a dtype that MCCL cannot reduce. Complex tensors must be viewed as real
// before.
Elements elements_to_reduce(const at::Tensor& tensor);
// For calls that only move data: every dtype is supported.
Elements elements_to_move(at::ScalarType dtype, int64_t numel);

// A reduction operation for the calls of one communicator on tensors of one dtype.
class Reduction {
 public:
  // Raises ValueError for bitwise operations and TypeError for averages of booleans, which MCCL lacks.
  Reduction(const ReduceOp& op, at::ScalarType dtype, mcclComm_t comm);
  ~Reduction();
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  operator mcclRedOp_t() const { return op_; }

 private:
  mcclRedOp_t op_ = mcclSum;
  mcclComm_t owner_ = nullptr; // set if the operation was created for this scalar
};

} // namespace c10d::mccl
