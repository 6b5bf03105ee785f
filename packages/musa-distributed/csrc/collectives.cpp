// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The collectives that MCCL provides itself.
#include <ATen/ops/zeros.h>
#include <c10/musa/MUSADeviceArgument.h>
#include <c10/musa/MUSADeviceChoice.h>

#include <algorithm>
#include <cstdlib>

#include "elements.h"
#include "errors.h"
#include "process_group.h"
#include "tensors.h"

namespace c10d {

using namespace mccl;

namespace {

// Complex tensors are reduced as pairs of real numbers. Raises TypeError for reductions whose result would be wrong
// then.
at::Tensor to_reduce(const at::Tensor& tensor, const ReduceOp& op) {
  TORCH_CHECK_TYPE(
      !tensor.is_complex() || isComplexViewAsRealAllowed(op),
      "Complex tensors support ReduceOp.SUM and AVG only: "
      "other reductions are not defined on pairs of real numbers.");
  return as_real(tensor);
}

void call_all_reduce(const at::Tensor& memory, const ReduceOp& op, mcclComm_t comm, musaStream_t stream) {
  const Elements elements = elements_to_reduce(memory);
  const Reduction reduction(op, memory.scalar_type(), comm);
  MCCL_CHECK(mcclAllReduce(
      memory.const_data_ptr(), memory.data_ptr(), elements.count, elements.type, reduction, comm, stream));
}

void call_all_gather(const at::Tensor& whole, const at::Tensor& own, mcclComm_t comm, musaStream_t stream) {
  const Elements elements = elements_to_move(own.scalar_type(), own.numel());
  MCCL_CHECK(mcclAllGather(own.const_data_ptr(), whole.data_ptr(), elements.count, elements.type, comm, stream));
}

void call_reduce_scatter(
    const at::Tensor& own, const at::Tensor& whole, const ReduceOp& op, mcclComm_t comm, musaStream_t stream) {
  const Elements elements = elements_to_reduce(own);
  const Reduction reduction(op, own.scalar_type(), comm);
  MCCL_CHECK(mcclReduceScatter(
      whole.const_data_ptr(), own.data_ptr(), elements.count, elements.type, reduction, comm, stream));
}

bool same_numel(const std::vector<at::Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
    return tensor.numel() == tensors.front().numel();
  });
}

void check_list(const char* call, const std::vector<at::Tensor>& list, const at::Tensor& own, int rank, int size) {
  TORCH_CHECK_VALUE(
      list.size() == static_cast<size_t>(size), "mccl:", call, " takes a tensor for each of the ", size, " ranks, not ",
      list.size(), ".");
  for (const at::Tensor& tensor : list) {
    check_same_dtype(call, tensor, own);
  }
  const at::Tensor& mine = list[static_cast<size_t>(rank)];
  TORCH_CHECK_VALUE(
      mine.numel() == own.numel(), "mccl:", call, ": the list's tensor for this rank has the shape ", mine.sizes(),
      " and the tensor itself ", own.sizes(), ".");
}

void check_whole(const char* call, const at::Tensor& whole, const at::Tensor& part, int size) {
  check_same_dtype(call, whole, part);
  TORCH_CHECK_VALUE(
      whole.numel() == part.numel() * size, "mccl:", call, ": the number of elements of a tensor of shape ",
      whole.sizes(), " is not ", size, " times that of a tensor of shape ", part.sizes(), ".");
}

// Returns the device of this rank for a process that has chosen none: the one whose index is the local rank that a
// launcher sets, else the global rank, modulo the number of devices.
c10::Device device_of_rank(int global_rank) {
  const char* const local = std::getenv("LOCAL_RANK");
  const int rank = local != nullptr ? std::atoi(local) : global_rank;
  return {c10::kPrivateUse1, static_cast<c10::DeviceIndex>(rank % c10::musa::device_count_ensure_non_zero())};
}

// Returns the device that a barrier runs on: the one the caller passes, else the one the group is bound to, else the
// first one it has used, else the current device if the thread has chosen one, else the one of the rank. torch passes a
// device without an index if its caller passes none.
c10::Device device_of_barrier(
    const BarrierOptions& options, std::optional<c10::Device> bound, std::optional<c10::Device> used, int global_rank) {
  if (options.device.has_value() && options.device->has_index()) {
    return *options.device;
  }
  if (!options.device_ids.empty()) {
    return {c10::kPrivateUse1, c10::musa::to_device_index(options.device_ids.front())};
  }
  if (bound.has_value() || used.has_value()) {
    return bound.has_value() ? *bound : *used;
  }
  const c10::DeviceIndex current = c10::musa::current_device();
  const bool chosen = current != 0 || c10::musa::device_is_chosen();
  return chosen ? c10::Device(c10::kPrivateUse1, current) : device_of_rank(global_rank);
}

} // namespace

c10::intrusive_ptr<Work> ProcessGroupMCCL::broadcast(
    std::vector<at::Tensor>& tensors, const BroadcastOptions& options) {
  const at::Tensor& tensor = single("broadcast", tensors);
  check_root("broadcast", options.rootRank, size_);
  Request request = request_for(OpType::BROADCAST, "mccl:broadcast", options, tensors, tensors);
  const bool sends = options.rootRank == rank_;
  const at::Tensor memory = sends ? memory_to_read(request, tensor) : memory_to_write(request, tensor);
  request.call = [memory, root = static_cast<int>(options.rootRank)](mcclComm_t comm, musaStream_t stream, int) {
    const Elements elements = elements_to_move(memory.scalar_type(), memory.numel());
    MCCL_CHECK(
        mcclBroadcast(memory.const_data_ptr(), memory.data_ptr(), elements.count, elements.type, root, comm, stream));
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::allreduce(
    std::vector<at::Tensor>& tensors, const AllreduceOptions& options) {
  const at::Tensor tensor = to_reduce(single("all_reduce", tensors), options.reduceOp);
  Request request = request_for(OpType::ALLREDUCE, "mccl:all_reduce", options, tensors, tensors);
  const at::Tensor memory = memory_to_read_and_write(request, tensor);
  request.call = [memory, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
    call_all_reduce(memory, op, comm, stream);
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::allreduce_coalesced(
    std::vector<at::Tensor>& tensors, const AllreduceCoalescedOptions& options) {
  Request request = request_for(OpType::COALESCED, "mccl:allreduce_coalesced", options, tensors, tensors);
  std::vector<at::Tensor> memories;
  for (const at::Tensor& tensor : tensors) {
    memories.push_back(memory_to_read_and_write(request, to_reduce(tensor, options.reduceOp)));
  }
  request.call = [memories, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
    for (const at::Tensor& memory : memories) {
      call_all_reduce(memory, op, comm, stream);
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::reduce(std::vector<at::Tensor>& tensors, const ReduceOptions& options) {
  const at::Tensor tensor = to_reduce(single("reduce", tensors), options.reduceOp);
  check_root("reduce", options.rootRank, size_);
  Request request = request_for(OpType::REDUCE, "mccl:reduce", options, tensors, tensors);
  const at::Tensor memory =
      options.rootRank == rank_ ? memory_to_read_and_write(request, tensor) : memory_to_read(request, tensor);
  request.call = [memory, op = options.reduceOp, root = static_cast<int>(options.rootRank)](
                     mcclComm_t comm, musaStream_t stream, int) {
    const Elements elements = elements_to_reduce(memory);
    const Reduction reduction(op, memory.scalar_type(), comm);
    MCCL_CHECK(mcclReduce(
        memory.const_data_ptr(), memory.data_ptr(), elements.count, elements.type, reduction, root, comm, stream));
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::allgather(
    std::vector<std::vector<at::Tensor>>& output_lists, std::vector<at::Tensor>& inputs,
    const AllgatherOptions& options) {
  const at::Tensor& input = single("all_gather", inputs);
  TORCH_CHECK_VALUE(
      output_lists.size() == 1, "mccl:all_gather takes one list of outputs, not ", output_lists.size(), ".");
  const std::vector<at::Tensor>& outputs = output_lists.front();
  check_list("all_gather", outputs, input, rank_, size_);
  Request request = request_for(OpType::ALLGATHER, "mccl:all_gather", options, inputs, outputs);
  const at::Tensor own = memory_to_read(request, input);
  if (same_numel(outputs)) {
    const at::Tensor whole = joined_to_write(request, outputs);
    request.call = [whole, own](mcclComm_t comm, musaStream_t stream, int) {
      call_all_gather(whole, own, comm, stream);
    };
    return launcher_->run(std::move(request));
  }
  // Ranks have different sizes, so each one broadcasts its part.
  std::vector<at::Tensor> parts;
  for (const at::Tensor& output : outputs) {
    parts.push_back(memory_to_write(request, output));
  }
  request.call = [parts, own, rank = rank_](mcclComm_t comm, musaStream_t stream, int) {
    for (int root = 0; root < static_cast<int>(parts.size()); ++root) {
      const at::Tensor& part = parts[static_cast<size_t>(root)];
      const void* const source = root == rank ? own.const_data_ptr() : part.const_data_ptr();
      const Elements elements = elements_to_move(part.scalar_type(), part.numel());
      MCCL_CHECK(mcclBroadcast(source, part.data_ptr(), elements.count, elements.type, root, comm, stream));
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::_allgather_base(
    at::Tensor& output, at::Tensor& input, const AllgatherOptions& options) {
  check_whole("all_gather_into_tensor", output, input, size_);
  Request request = request_for(OpType::_ALLGATHER_BASE, "mccl:_all_gather_base", options, {input}, {output});
  const at::Tensor whole = memory_to_write(request, output), own = memory_to_read(request, input);
  request.call = [whole, own](mcclComm_t comm, musaStream_t stream, int) { call_all_gather(whole, own, comm, stream); };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::allgather_coalesced(
    std::vector<std::vector<at::Tensor>>& output_lists, std::vector<at::Tensor>& inputs,
    const AllgatherOptions& options) {
  // output_lists has one list per rank, with one tensor per input.
  TORCH_CHECK_VALUE(
      output_lists.size() == static_cast<size_t>(size_), "mccl:all_gather_coalesced takes one list for each of the ",
      size_, " ranks, not ", output_lists.size(), ".");
  startCoalescing();
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (const auto& list : output_lists) {
      TORCH_CHECK_VALUE(
          list.size() == inputs.size(), "mccl:all_gather_coalesced has ", inputs.size(), " inputs, but a list with ",
          list.size(), " tensors.");
      outputs.front().push_back(list[i]);
    }
    std::vector<at::Tensor> input{inputs[i]};
    allgather(outputs, input, options);
  }
  return endCoalescing();
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::allgather_into_tensor_coalesced(
    std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const AllgatherOptions& options) {
  TORCH_CHECK_VALUE(
      outputs.size() == inputs.size(), "mccl:all_gather_into_tensor_coalesced has ", inputs.size(), " inputs and ",
      outputs.size(), " outputs.");
  Request request = request_for(OpType::COALESCED, "mccl:all_gather_into_tensor_coalesced", options, inputs, outputs);
  std::vector<at::Tensor> wholes, parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_whole("all_gather_into_tensor_coalesced", outputs[i], inputs[i], size_);
    wholes.push_back(memory_to_write(request, outputs[i]));
    parts.push_back(memory_to_read(request, inputs[i]));
  }
  request.call = [wholes, parts](mcclComm_t comm, musaStream_t stream, int) {
    for (size_t i = 0; i < parts.size(); ++i) {
      call_all_gather(wholes[i], parts[i], comm, stream);
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::reduce_scatter(
    std::vector<at::Tensor>& outputs, std::vector<std::vector<at::Tensor>>& input_lists,
    const ReduceScatterOptions& options) {
  const at::Tensor& output = single("reduce_scatter", outputs);
  TORCH_CHECK_VALUE(
      input_lists.size() == 1, "mccl:reduce_scatter takes one list of inputs, not ", input_lists.size(), ".");
  const std::vector<at::Tensor>& inputs = input_lists.front();
  check_list("reduce_scatter", inputs, output, rank_, size_);
  Request request = request_for(OpType::REDUCE_SCATTER, "mccl:reduce_scatter", options, inputs, outputs);
  const at::Tensor own = memory_to_write(request, to_reduce(output, options.reduceOp));
  if (same_numel(inputs)) {
    const at::Tensor whole = as_real(joined_to_read(request, inputs));
    request.call = [whole, own, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
      call_reduce_scatter(own, whole, op, comm, stream);
    };
    return launcher_->run(std::move(request));
  }
  // Ranks have different sizes, so each part is reduced to its rank.
  std::vector<at::Tensor> parts;
  for (const at::Tensor& input : inputs) {
    parts.push_back(memory_to_read(request, as_real(input)));
  }
  request.call = [parts, own, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
    const Reduction reduction(op, own.scalar_type(), comm);
    for (int root = 0; root < static_cast<int>(parts.size()); ++root) {
      const at::Tensor& part = parts[static_cast<size_t>(root)];
      const Elements elements = elements_to_reduce(part);
      MCCL_CHECK(mcclReduce(
          part.const_data_ptr(), own.data_ptr(), elements.count, elements.type, reduction, root, comm, stream));
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::_reduce_scatter_base(
    at::Tensor& output, at::Tensor& input, const ReduceScatterOptions& options) {
  check_whole("reduce_scatter_tensor", input, output, size_);
  Request request = request_for(OpType::_REDUCE_SCATTER_BASE, "mccl:_reduce_scatter_base", options, {input}, {output});
  const at::Tensor own = memory_to_write(request, to_reduce(output, options.reduceOp));
  const at::Tensor whole = memory_to_read(request, as_real(input));
  request.call = [whole, own, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
    call_reduce_scatter(own, whole, op, comm, stream);
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::reduce_scatter_tensor_coalesced(
    std::vector<at::Tensor>& outputs, std::vector<at::Tensor>& inputs, const ReduceScatterOptions& options) {
  TORCH_CHECK_VALUE(
      outputs.size() == inputs.size(), "mccl:reduce_scatter_tensor_coalesced has ", inputs.size(), " inputs and ",
      outputs.size(), " outputs.");
  Request request = request_for(OpType::COALESCED, "mccl:reduce_scatter_tensor_coalesced", options, inputs, outputs);
  std::vector<at::Tensor> wholes, parts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    check_whole("reduce_scatter_tensor_coalesced", inputs[i], outputs[i], size_);
    wholes.push_back(memory_to_read(request, as_real(inputs[i])));
    parts.push_back(memory_to_write(request, to_reduce(outputs[i], options.reduceOp)));
  }
  request.call = [wholes, parts, op = options.reduceOp](mcclComm_t comm, musaStream_t stream, int) {
    for (size_t i = 0; i < parts.size(); ++i) {
      call_reduce_scatter(parts[i], wholes[i], op, comm, stream);
    }
  };
  return launcher_->run(std::move(request));
}

c10::intrusive_ptr<Work> ProcessGroupMCCL::barrier(const BarrierOptions& options) {
  const c10::Device device =
      device_of_barrier(options, getBoundDeviceId(), communicators->device(), group_->global_rank());
  const at::Tensor token = at::zeros({1}, at::TensorOptions().device(device).dtype(at::kInt));
  Request request = request_for(OpType::BARRIER, "mccl:barrier", options, {token}, {token});
  request.call = [token](mcclComm_t comm, musaStream_t stream, int) {
    call_all_reduce(token, ReduceOp::SUM, comm, stream);
  };
  return launcher_->run(std::move(request));
}

} // namespace c10d
