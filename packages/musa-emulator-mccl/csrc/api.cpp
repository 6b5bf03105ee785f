// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The entry points. They validate the arguments and report the reason for a refusal on stderr.
#include <mccl.h>

#include <cstring>
#include <numeric>
#include <set>
#include <stdexcept>

#include "engine/api.h"
#include "engine/device.h"
#include "engine/memory.h"
#include "engine/stream.h"
#include "faults.h"
#include "group.h"
#include "log.h"
#include "meeting.h"

using namespace musa_emulator;
using namespace musa_emulator::mccl;

// The handle. Never freed, so that use after destruction is detected.
struct mcclComm {
  enum : uint32_t { kAlive = 0x4343434d, kDead = 0xdead434d };
  std::atomic<uint32_t> magic{kDead};
  std::atomic<std::shared_ptr<Communicator>> comm; // atomic, because another thread may abort it
};

namespace {

// Converts the exception being handled to a result code.
mcclResult_t explain(const char* call) {
  try {
    throw;
  } catch (const std::invalid_argument& error) {
    return refuse(mcclInvalidUsage, call, error.what());
  } catch (const c10::Error& error) {
    return refuse(mcclSystemError, call, error.what_without_backtrace());
  } catch (const std::exception& error) {
    return refuse(mcclSystemError, call, error.what());
  }
}

// Common frame of the entry points: counts the call, injects faults, and converts exceptions.
template <ApiName Name, unsigned Traits = kOrdinary, class Body>
mcclResult_t entry(Body&& body) {
  mcclResult_t result = mcclSuccess;
  const musaError_t status = api<Name, Traits>([&] {
    try {
      result = body();
    } catch (...) {
      result = explain(Name.text);
    }
    return musaSuccess;
  });
  if (status != musaSuccess) {
    result = result_of(status);
  }
  return result == mcclSuccess ? result : Group::of_this_thread().refused(result);
}

std::shared_ptr<Communicator> communicator_of(mcclComm_t handle, const char* call) {
  auto alive = handle != nullptr && handle->magic.load() == mcclComm::kAlive ? handle->comm.load() : nullptr;
  if (alive == nullptr) {
    refuse(mcclInvalidArgument, call, "the communicator was destroyed, or is not a communicator");
  }
  return alive;
}

// Whether memory belongs to the device, or is host memory that the device can read.
bool reachable(const void* memory, size_t bytes, int device) {
  const PointerInfo info = classify(memory);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const bool known =
      info.type != musaMemoryTypeUnregistered && (info.type != musaMemoryTypeDevice || info.device == device);
  return known && address - info.base + bytes <= info.bytes;
}

mcclResult_t check_buffer(
    const Communicator& comm, const char* call, const char* which, const void* memory, size_t bytes) {
  if (reachable(memory, bytes, comm.device)) {
    return mcclSuccess;
  }
  return refuse(
      mcclInvalidArgument, call,
      std::string(which) + " is not " + std::to_string(bytes) + " accessible bytes for " + comm.name());
}

struct Call {
  Signature signature;
  const void* send;
  void* recv;
};

mcclResult_t issue(const Call& call, mcclComm_t handle, musaStream_t stream_handle) {
  const Signature& s = call.signature;
  const char* name = s.call();
  const auto comm = communicator_of(handle, name);
  if (comm == nullptr) {
    return mcclInvalidArgument;
  }
  if (logs_calls()) {
    info(comm->name() + " calls " + s.describe());
  }
  const size_t element = size_of(s.datatype);
  if (element == 0) {
    return refuse(mcclInvalidArgument, name, "unknown data type " + std::to_string(s.datatype));
  }
  const int arch = engine().config.arch;
  if ((s.datatype == mcclBfloat16 && arch < 22) || (s.datatype >= mcclFp8E4M3 && arch < 31)) {
    return refuse(
        mcclInvalidArgument, name, std::string(name_of(s.datatype)) + " is unsupported on mp_" + std::to_string(arch));
  }
  if (s.root < 0 || s.root >= comm->ranks) {
    return refuse(mcclInvalidArgument, name, "rank out of range: " + std::to_string(s.root) + " for " + comm->name());
  }
  const auto reduction = comm->reduction(s.op);
  if (!reduction.has_value()) {
    return refuse(mcclInvalidArgument, name, "unknown reduction " + std::to_string(s.op));
  }
  if (reduction->multiplier != nullptr && reduction->multiplier->datatype != s.datatype) {
    return refuse(mcclInvalidArgument, name, "the data type of the operation's scalar differs from that of the call");
  }
  Stream* const stream = resolve_stream(stream_handle);
  if (stream == nullptr || stream->device->ordinal != comm->device) {
    return refuse(mcclInvalidArgument, name, "the stream is not one of the device of " + comm->name());
  }
  const auto [sent, received] = s.amounts(comm->rank, comm->ranks);
  if (sent == 0 && received == 0) {
    return mcclSuccess; // on every rank
  }
  if (sent != 0) {
    if (const auto bad = check_buffer(*comm, name, "the send buffer", call.send, sent * element); bad != mcclSuccess) {
      return bad;
    }
  }
  if (received != 0) {
    if (const auto bad = check_buffer(*comm, name, "the receive buffer", call.recv, received * element);
        bad != mcclSuccess) {
      return bad;
    }
  }
  if (s.kind == Kind::Send || s.kind == Kind::Recv) {
    void* const memory = s.kind == Kind::Send ? const_cast<void*>(call.send) : call.recv;
    return Group::of_this_thread().add(Issued{comm, stream, s, nullptr, memory});
  }
  return Group::of_this_thread().add(
      Issued{comm, stream, s, make_collective(comm, s, *reduction, call.send, call.recv), nullptr});
}

mcclResult_t join(mcclComm_t* out, int ranks, const mcclUniqueId& id, int rank, const Device& device) {
  auto created = std::make_shared<Communicator>(id, ranks, rank, device);
  info(created->name() + " is ready");
  auto* handle = new mcclComm;
  handle->comm.store(std::move(created));
  handle->magic.store(mcclComm::kAlive);
  *out = handle;
  return mcclSuccess;
}

mcclResult_t join_or_explain(mcclComm_t* out, int ranks, const mcclUniqueId& id, int rank, const Device& device) {
  try {
    return join(out, ranks, id, rank, device);
  } catch (...) {
    return explain("mcclCommInitRank");
  }
}

mcclResult_t retire(mcclComm_t handle) {
  if (handle->magic.exchange(mcclComm::kDead) != mcclComm::kAlive) {
    return mcclInvalidArgument;
  }
  handle->comm.store(nullptr); // pending operations also own it
  return mcclSuccess;
}

} // namespace

extern "C" {

#define MCCL_PUBLIC __attribute__((visibility("default")))

MCCL_PUBLIC const char* mcclGetErrorString(mcclResult_t result) {
  switch (result) {
    case mcclSuccess: return "no error";
    case mcclUnhandledMusaError: return "unhandled musa error";
    case mcclSystemError: return "unhandled system error";
    case mcclInternalError: return "internal error";
    case mcclInvalidArgument: return "invalid argument";
    case mcclInvalidUsage: return "invalid usage";
    case mcclRemoteError: return "remote process exited or there was a network error";
  }
  return "unknown result code";
}

MCCL_PUBLIC mcclResult_t mcclGetVersion(int* version) {
  return entry<"mcclGetVersion">([&] {
    if (version == nullptr) {
      return refuse(mcclInvalidArgument, "mcclGetVersion", "version is null");
    }
    *version = MCCL_VERSION_CODE;
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclGetUniqueId(mcclUniqueId* id) {
  return entry<"mcclGetUniqueId">([&] {
    if (id == nullptr) {
      return refuse(mcclInvalidArgument, "mcclGetUniqueId", "uniqueId is null");
    }
    make_id(id);
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclCommInitRank(mcclComm_t* comm, int nranks, mcclUniqueId id, int rank) {
  return entry<"mcclCommInitRank">([&] {
    if (comm == nullptr || nranks < 1 || rank < 0 || rank >= nranks) {
      return refuse(
          mcclInvalidArgument, "mcclCommInitRank",
          "rank " + std::to_string(rank) + " of " + std::to_string(nranks) + " is out of range");
    }
    if (!problem_of_faults().empty()) {
      return refuse(mcclInvalidUsage, "mcclCommInitRank", problem_of_faults());
    }
    Device* const device = current_device();
    if (device == nullptr) {
      return refuse(mcclUnhandledMusaError, "mcclCommInitRank", "no device is available");
    }
    return Group::of_this_thread().add(
        [comm, nranks, id, rank, device] { return join_or_explain(comm, nranks, id, rank, *device); });
  });
}

MCCL_PUBLIC mcclResult_t mcclCommInitAll(mcclComm_t* comms, int ndev, const int* devs) {
  return entry<"mcclCommInitAll">([&] {
    std::vector<int> ordinals(static_cast<size_t>(std::max(ndev, 0)));
    if (devs != nullptr) {
      std::copy_n(devs, ordinals.size(), ordinals.begin());
    } else {
      std::iota(ordinals.begin(), ordinals.end(), 0);
    }
    for (const int ordinal : ordinals) {
      if (find_device(ordinal) == nullptr) {
        return refuse(mcclInvalidArgument, "mcclCommInitAll", "unknown device " + std::to_string(ordinal));
      }
    }
    if (comms == nullptr || ndev < 1 || std::set<int>(ordinals.begin(), ordinals.end()).size() != ordinals.size()) {
      return refuse(mcclInvalidUsage, "mcclCommInitAll", "expected one or more distinct devices");
    }
    mcclUniqueId id;
    make_id(&id);
    Group& group = Group::of_this_thread();
    group.start();
    for (int rank = 0; rank < ndev; ++rank) {
      Device& device = *find_device(ordinals[static_cast<size_t>(rank)]);
      device.active.store(true);
      group.add([comms, ndev, id, rank, &device] { return join_or_explain(&comms[rank], ndev, id, rank, device); });
    }
    return group.end();
  });
}

MCCL_PUBLIC mcclResult_t mcclCommDestroy(mcclComm_t comm) {
  return entry<"mcclCommDestroy", kReleases>([&] {
    const auto alive = communicator_of(comm, "mcclCommDestroy");
    if (alive == nullptr) {
      return mcclInvalidArgument;
    }
    alive->drain();
    alive->leave();
    return retire(comm);
  });
}

MCCL_PUBLIC mcclResult_t mcclCommAbort(mcclComm_t comm) {
  return entry<"mcclCommAbort", kReleases>([&] {
    const auto alive = communicator_of(comm, "mcclCommAbort");
    if (alive == nullptr) {
      return mcclInvalidArgument;
    }
    alive->abort();
    return retire(comm);
  });
}

MCCL_PUBLIC mcclResult_t mcclCommGetAsyncError(mcclComm_t comm, mcclResult_t* error) {
  return entry<"mcclCommGetAsyncError">([&] {
    const auto alive = communicator_of(comm, "mcclCommGetAsyncError");
    if (alive == nullptr || error == nullptr) {
      return mcclInvalidArgument;
    }
    *error = alive->async_error();
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclCommCount(const mcclComm_t comm, int* count) {
  return entry<"mcclCommCount">([&] {
    const auto alive = communicator_of(comm, "mcclCommCount");
    return alive != nullptr && count != nullptr ? (*count = alive->ranks, mcclSuccess) : mcclInvalidArgument;
  });
}

MCCL_PUBLIC mcclResult_t mcclCommMuDevice(const mcclComm_t comm, int* device) {
  return entry<"mcclCommMuDevice">([&] {
    const auto alive = communicator_of(comm, "mcclCommMuDevice");
    return alive != nullptr && device != nullptr ? (*device = alive->device, mcclSuccess) : mcclInvalidArgument;
  });
}

MCCL_PUBLIC mcclResult_t mcclCommUserRank(const mcclComm_t comm, int* rank) {
  return entry<"mcclCommUserRank">([&] {
    const auto alive = communicator_of(comm, "mcclCommUserRank");
    return alive != nullptr && rank != nullptr ? (*rank = alive->rank, mcclSuccess) : mcclInvalidArgument;
  });
}

MCCL_PUBLIC mcclResult_t mcclRedOpCreatePreMulSum(
    mcclRedOp_t* op, void* scalar, mcclDataType_t datatype, mcclScalarResidence_t residence, mcclComm_t comm) {
  return entry<"mcclRedOpCreatePreMulSum">([&] {
    const auto alive = communicator_of(comm, "mcclRedOpCreatePreMulSum");
    const size_t bytes = size_of(datatype);
    if (alive == nullptr || op == nullptr || scalar == nullptr || bytes == 0 ||
        (residence != mcclScalarDevice && residence != mcclScalarHostImmediate)) {
      return refuse(mcclInvalidArgument, "mcclRedOpCreatePreMulSum", "an argument is null or not supported");
    }
    PreMultiplier multiplier{datatype};
    if (residence == mcclScalarDevice) {
      if (const auto bad = check_buffer(*alive, "mcclRedOpCreatePreMulSum", "the scalar", scalar, bytes);
          bad != mcclSuccess) {
        return bad;
      }
      multiplier.on_device = scalar;
    } else {
      std::memcpy(multiplier.value.data(), scalar, bytes);
    }
    *op = alive->add_multiplier(multiplier);
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclRedOpDestroy(mcclRedOp_t op, mcclComm_t comm) {
  return entry<"mcclRedOpDestroy", kReleases>([&] {
    const auto alive = communicator_of(comm, "mcclRedOpDestroy");
    if (alive == nullptr || !alive->remove_multiplier(op)) {
      return refuse(mcclInvalidArgument, "mcclRedOpDestroy", "the operation was not created by this communicator");
    }
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclAllReduce(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, mcclRedOp_t op, mcclComm_t comm,
    musaStream_t stream) {
  return entry<"mcclAllReduce">(
      [&] { return issue({{Kind::AllReduce, datatype, op, 0, count}, sendbuff, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t mcclReduce(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, mcclRedOp_t op, int root,
    mcclComm_t comm, musaStream_t stream) {
  return entry<"mcclReduce">(
      [&] { return issue({{Kind::Reduce, datatype, op, root, count}, sendbuff, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t mcclBroadcast(
    const void* sendbuff, void* recvbuff, size_t count, mcclDataType_t datatype, int root, mcclComm_t comm,
    musaStream_t stream) {
  return entry<"mcclBroadcast">(
      [&] { return issue({{Kind::Broadcast, datatype, mcclSum, root, count}, sendbuff, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t
mcclBcast(void* buff, size_t count, mcclDataType_t datatype, int root, mcclComm_t comm, musaStream_t stream) {
  return mcclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

MCCL_PUBLIC mcclResult_t mcclAllGather(
    const void* sendbuff, void* recvbuff, size_t sendcount, mcclDataType_t datatype, mcclComm_t comm,
    musaStream_t stream) {
  return entry<"mcclAllGather">(
      [&] { return issue({{Kind::AllGather, datatype, mcclSum, 0, sendcount}, sendbuff, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t mcclReduceScatter(
    const void* sendbuff, void* recvbuff, size_t recvcount, mcclDataType_t datatype, mcclRedOp_t op, mcclComm_t comm,
    musaStream_t stream) {
  return entry<"mcclReduceScatter">(
      [&] { return issue({{Kind::ReduceScatter, datatype, op, 0, recvcount}, sendbuff, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t
mcclSend(const void* sendbuff, size_t count, mcclDataType_t datatype, int peer, mcclComm_t comm, musaStream_t stream) {
  return entry<"mcclSend">(
      [&] { return issue({{Kind::Send, datatype, mcclSum, peer, count}, sendbuff, nullptr}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t
mcclRecv(void* recvbuff, size_t count, mcclDataType_t datatype, int peer, mcclComm_t comm, musaStream_t stream) {
  return entry<"mcclRecv">(
      [&] { return issue({{Kind::Recv, datatype, mcclSum, peer, count}, nullptr, recvbuff}, comm, stream); });
}

MCCL_PUBLIC mcclResult_t mcclGroupStart(void) {
  return entry<"mcclGroupStart">([] {
    Group::of_this_thread().start();
    return mcclSuccess;
  });
}

MCCL_PUBLIC mcclResult_t mcclGroupEnd(void) {
  return entry<"mcclGroupEnd">([] { return Group::of_this_thread().end(); });
}

} // extern "C"
