// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "operation.h"

#include <c10/util/StringUtil.h>

#include <algorithm>

namespace c10d::mccl {

Operands::Operands(const std::vector<at::Tensor>& tensors) {
  tensors_.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    const at::IntArrayRef sizes = tensor.sizes();
    sizes_.append(sizes.begin(), sizes.end());
    tensors_.push_back({tensor.scalar_type(), static_cast<uint32_t>(sizes_.size())});
  }
}

at::IntArrayRef Operands::sizes(size_t index) const {
  const size_t begin = index == 0 ? 0 : tensors_[index - 1].end;
  return {sizes_.data() + begin, tensors_[index].end - begin};
}

std::string Operands::text() const {
  constexpr size_t kShown = 4;
  if (tensors_.empty()) {
    return "nothing";
  }
  std::string text;
  for (size_t i = 0; i < std::min(count(), kShown); ++i) {
    text += c10::str(i == 0 ? "" : ", ", dtype(i), sizes(i));
  }
  return count() <= kShown ? text : c10::str(text, " and ", count() - kShown, " more");
}

std::string Operation::name() const {
  switch (type) {
    case OpType::SEND: return c10::str(title.text(), " ", rank, "->", peer);
    case OpType::RECV: return c10::str(title.text(), " ", rank, "<-", peer);
    default: return title.text();
  }
}

std::string Operation::text(uint64_t seq) const {
  const std::string other = peer < 0 ? "" : c10::str(type == OpType::SEND ? " to rank " : " from rank ", peer);
  return c10::str(title.text(), other, " #", seq, " (in: ", inputs.text(), "; out: ", outputs.text(), ")");
}

std::string Operations::text() const {
  std::string text;
  for (const Operation& part : parts) {
    text += (text.empty() ? "" : " with ") + part.text(seq);
  }
  return text;
}

} // namespace c10d::mccl
