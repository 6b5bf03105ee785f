// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Description of a call of a process group: name, ranks, dtypes and sizes. Texts are formatted only when a failure, the
// flight record or a trace needs them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace c10d::mccl {

// A literal such as "mccl:all_reduce".
class Title {
 public:
  template <size_t N>
  consteval Title(const char (&text)[N]) : text_(text) { // NOLINT: implicit, so that literals convert to Title
    if (!std::string_view(text).starts_with(kPrefix)) {
      throw "a title starts with mccl:";
    }
  }
  // "mccl:all_reduce"
  const char* text() const { return text_; }
  // "all_reduce"
  const char* name() const { return text_ + kPrefix.size(); }

 private:
  static constexpr std::string_view kPrefix = "mccl:";
  const char* text_;
};

// The dtypes and sizes of tensors, without references to the tensors.
class Operands {
 public:
  Operands() = default;
  explicit Operands(const std::vector<at::Tensor>& tensors);

  size_t count() const { return tensors_.size(); }
  at::ScalarType dtype(size_t index) const { return tensors_[index].dtype; }
  at::IntArrayRef sizes(size_t index) const;
  // Returns "Float[4, 2], Int[3]", with a count instead of the tensors after the fourth; "nothing" if there are none.
  std::string text() const;

 private:
  struct Tensor {
    at::ScalarType dtype;
    uint32_t end; // index in sizes_ after its sizes
  };
  c10::SmallVector<Tensor, 2> tensors_;
  c10::SmallVector<int64_t, 8> sizes_;
};

struct Operation {
  OpType type = OpType::UNKNOWN;
  Title title;
  int rank = 0;
  int peer = -1; // for sends and receives
  Operands inputs, outputs;

  // For the flight record: "mccl:all_reduce", "mccl:send 0->1".
  std::string name() const;
  // "mccl:send to rank 1 #3 (in: Float[4]; out: nothing)"
  std::string text(uint64_t seq) const;
};

// Operations enqueued together under one sequence number: one operation, or several coalesced ones.
struct Operations {
  uint64_t seq = 0;
  Title title; // "mccl:coalesced" for several
  std::vector<Operation> parts;

  std::string text() const;
};

} // namespace c10d::mccl
