// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// How elements of a tensor travel: MCCL's data types and reductions for torch's.
#pragma once

#include <ATen/core/Tensor.h>
#include <mccl.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

namespace c10d::mccl {

struct Elements {
  mcclDataType_t type;
  size_t count;
};

// For what computes. Raises TypeError for a dtype that MCCL cannot reduce. Complex numbers must be viewed as real ones before.
Elements elements_to_reduce(const at::Tensor& tensor);
// For what only moves: every dtype can.
Elements elements_to_move(at::ScalarType dtype, int64_t numel);

// A reduction operation for the calls of one communicator on tensors of one dtype.
class Reduction {
 public:
  // Raises ValueError for what MCCL has not: bitwise operations, and averages of booleans.
  Reduction(const ReduceOp& op, at::ScalarType dtype, mcclComm_t comm);
  ~Reduction();
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  operator mcclRedOp_t() const {
    return op_;
  }

 private:
  mcclRedOp_t op_ = mcclSum;
  mcclComm_t owner_ = nullptr; // where the operation was made for this scalar
};

} // namespace c10d::mccl
