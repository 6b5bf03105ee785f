// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Sends and receives, and the collectives that are composed of them. A rank's part for itself is copied.
#include <algorithm>
#include <numeric>

#include "elements.h"
#include "errors.h"
#include "process_group.h"
#include "tensors.h"

namespace c10d {

using namespace mccl;

namespace {

void call_send(const at::Tensor& memory, int peer, mcclComm_t comm, musaStream_t stream) {
  const Elements elements = elements_to_move(memory.scalar_type(), memory.numel());
  if (elements.count != 0) {
    MCCL_CHECK(mcclSend(memory.const_data_ptr(), elements.count, elements.type, peer, comm, stream));
  }
}

void call_recv(const at::Tensor& memory, int peer, mcclComm_t comm, musaStream_t stream) {
  const Elements elements = elements_to_move(memory.scalar_type(), memory.numel());
  if (elements.count != 0) {
    MCCL_CHECK(mcclRecv(memory.data_ptr(), elements.count, elements.type, peer, comm, stream));
  }
}

// Sends to[rank] to each rank and receives from[rank] from it; the tensors may have any sizes.
void exchange(Request& request, const std::vector<at::Tensor>& to, const std::vector<at::Tensor>& from) {
  request.call = [to, from](mcclComm_t comm, musaStream_t stream, int) {
    for (size_t peer = 0; peer < to.size(); ++peer) {
      call_send(to[peer], static_cast<int>(peer), comm, stream);
    }
    for (size_t peer = 0; peer < from.size(); ++peer) {
      call_recv(from[peer], static_cast<int>(peer), comm, stream);
    }
  };
}

// Like request_for, for operands whose elements are only moved.
template <class Options>
Request exchange_request(
    OpType type, Title title, const Options& options, const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& outputs) {
  Request request = request_for(type, title, options, inputs, outputs);
  for (const auto* tensors : {&inputs, &outputs}) {
    for (const at::Tensor& tensor : *tensors) {
      check_same_dtype(title.name(), tensor, inputs.empty() ? outputs.front() : inputs.front());
    }
  }
  return request;
}

// Checks and returns the root's list: one tensor per rank, each with as many elements as `like`. Returns an empty list
// on other ranks.
std::vector<at::Tensor> list_of_root(
    const char* call, const std::vector<std::vector<at::Tensor>>& lists, bool is_root, int rank, const at::Tensor& like,
    int size) {
  TORCH_CHECK_VALUE(
      lists.size() == (is_root ? 1 : 0), "mccl:", call,
      " takes one list on the root and none on the other ranks; rank ", rank, " has ", lists.size(), ".");
  if (!is_root) {
    return {};
  }
  TORCH_CHECK_VALUE(
      lists.front().size() == static_cast<size_t>(size), "mccl:", call, " takes one tensor for each of the ", size,
      " ranks, not ", lists.front().size(), ".");
  for (const at::Tensor& tensor : lists.front()) {
    TORCH_CHECK_VALUE(
        tensor.numel() == like.numel(), "mccl:", call, ": the list has a tensor of shape ", tensor.sizes(),
        ", but the tensor has the shape ", like.sizes(), ".");
  }
  return lists.front();
}

// Returns the rows of each rank as views; empty `sizes` means equal parts.
std::vector<at::Tensor> split_rows(
    const at::Tensor& memory, const at::Tensor& tensor, const std::vector<int64_t>& sizes, int ranks) {
  const int64_t rows = tensor.dim() == 0 ? 0 : tensor.size(0);
  std::vector<int64_t> parts = sizes;
  if (parts.empty()) {
    TORCH_CHECK_VALUE(
        rows % ranks == 0, "mccl:all_to_all: ", rows, " rows cannot be split evenly among ", ranks,
        " ranks.\nFix: pass input_split_sizes and output_split_sizes.");
    parts.assign(static_cast<size_t>(ranks), rows / ranks);
  }
  TORCH_CHECK_VALUE(
      parts.size() == static_cast<size_t>(ranks) && std::accumulate(parts.begin(), parts.end(), int64_t{0}) == rows &&
          std::all_of(parts.begin(), parts.end(), [](int64_t part) { return part >= 0; }),
      "mccl:all_to_all: the sizes ", parts, " do not split ", rows, " rows among ", ranks, " ranks.");
  std::vector<at::Tensor> views;
  int64_t begin = 0;
  for (const int64_t part : parts) {
    views.push_back(memory.narrow(0, begin, part));
    begin += part;
  }
  return views;
}

void check_transfer(const char* call, int peer, int tag, int size) {
  check_root(call, peer, size);
  TORCH_CHECK_VALUE(
      tag == 0, "mccl:", call, " has no tags: messages between two ranks arrive in the order of the sends; tag is ",
      tag, ".");
}

} // namespace

c10::intrusive_ptr<Work> ProcessGroupMCCL::gather(
    std::vector<std::vector<at::Tensor>>& output_lists, std::vector<at::Tensor>& inputs, const GatherOptions& options) {
  const at::Tensor& input = single("gather", inputs);
  check_root("gather", options.rootRank, size_);
  const auto outputs = list_of_root("gather", output_lists, options.rootRank == rank_, rank_, input, size_);
  Request request = exchange_request(OpType::GATHER, "mccl:gather", options, inputs, outputs);
  const at::Tensor own = memory_to_read(request, input);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& output : outputs) {
    parts.push_back(memory_to_write(request, output));
  }
  request.call = [own, parts, root = static_cast<int>(options.rootRank)](mcclComm_t comm, musaStream_t stream, int) {
    call_send(own, root, comm, stream);
    for (size_t peer = 0; peer < parts.size(); ++peer) {
      call_recv(parts[peer], static_cast<int>(peer), comm, stream);
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::scatter(
    std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& input_lists,
    const ScatterOptions& options) {
  const at::Tensor& output = single("scatter", outputs);
  check_root("scatter", options.rootRank, size_);
  const auto inputs = list_of_root("scatter", input_lists, options.rootRank == rank_, rank_, output, size_);
  Request request = exchange_request(OpType::SCATTER, "mccl:scatter", options, inputs, outputs);
  const at::Tensor own = memory_to_write(request, output);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& input : inputs) {
    parts.push_back(memory_to_read(request, input));
  }
  request.call = [own, parts, root = static_cast<int>(options.rootRank)](mcclComm_t comm, musaStream_t stream, int) {
    for (size_t peer = 0; peer < parts.size(); ++peer) {
      call_send(parts[peer], static_cast<int>(peer), comm, stream);
    }
    call_recv(own, root, comm, stream);
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::alltoall_base(
    at::Tensor& output, at::Tensor& input, std::vector<int64_t>& output_splits, std::vector<int64_t>& input_splits,
    const AllToAllOptions& options) {
  Request request = exchange_request(OpType::ALLTOALL_BASE, "mccl:all_to_all", options, {input}, {output});
  const at::Tensor to = memory_to_read(request, input), from = memory_to_write(request, output);
  exchange(request, split_rows(to, input, input_splits, size_), split_rows(from, output, output_splits, size_));
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::alltoall(
    std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const AllToAllOptions& options) {
  TORCH_CHECK_VALUE(
      outputs.size() == static_cast<size_t>(size_) && inputs.size() == outputs.size(),
      "mccl:all_to_all takes one tensor for each of the ", size_, " ranks; there are ", inputs.size(), " inputs and ",
      outputs.size(), " outputs.");
  Request request = exchange_request(OpType::ALLTOALL, "mccl:all_to_all", options, inputs, outputs);
  std::vector<at::Tensor> to, from;
  for (const at::Tensor& input : inputs) {
    to.push_back(memory_to_read(request, input));
  }
  for (const at::Tensor& output : outputs) {
    from.push_back(memory_to_write(request, output));
  }
  exchange(request, to, from);
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::send(std::vector<at::Tensor>& tensors, int peer, int tag) {
  const at::Tensor& tensor = single("send", tensors);
  check_transfer("send", peer, tag, size_);
  Request request{OpType::SEND, "mccl:send"};
  request.device = check_tensors("send", tensors);
  request.inputs = tensors;
  request.peer = peer;
  const at::Tensor memory = memory_to_read(request, tensor);
  request.call = [memory](mcclComm_t comm, musaStream_t stream, int to) { call_send(memory, to, comm, stream); };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::recv(std::vector<at::Tensor>& tensors, int peer, int tag) {
  const at::Tensor& tensor = single("recv", tensors);
  check_transfer("recv", peer, tag, size_);
  Request request{OpType::RECV, "mccl:recv"};
  request.device = check_tensors("recv", tensors);
  request.outputs = tensors;
  request.peer = peer;
  const at::Tensor memory = memory_to_write(request, tensor);
  request.call = [memory](mcclComm_t comm, musaStream_t stream, int from) { call_recv(memory, from, comm, stream); };
  return launcher_->run(std::move(request));
}

} // namespace c10d
