// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "operation.h"

#include <c10/core/DispatchKeySet.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <signal.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <thread>

#include "engine/memory.h"
#include "faults.h"

namespace musa_emulator::mccl {
namespace {

// Runs torch without modes: the thread may be the caller's, whose modes must not affect the device's work.
class PlainTorch {
  const c10::impl::ExcludeDispatchKeyGuard exclude_{c10::DispatchKeySet(c10::DispatchKeySet::FULL)
                                                        .remove(c10::DispatchKey::Dense)
                                                        .remove(c10::DispatchKey::BackendSelect)};
  const c10::AutoGradMode no_grad_{false};
};

// Applies the injected fault of this run. `signature` is the call that the rank reports to the others.
void suffer(Communicator& comm, Signature& signature) {
  const Fault fault = next_fault(signature.kind);
  switch (fault.action) {
    case Fault::Action::None: break;
    case Fault::Action::Delay: std::this_thread::sleep_for(fault.delay); break;
    case Fault::Action::Drop: comm.hang(comm.name() + " takes no part in " + signature.describe() + ", as injected");
    case Fault::Action::Size: --signature.count; break;
    case Fault::Action::Die: kill(getpid(), SIGKILL); break;
  }
}

void move(void* to, const void* from, size_t bytes) {
  if (to != from) {
    std::memmove(to, from, bytes);
  }
}

class Collective final : public Launch {
 public:
  Collective(
      std::shared_ptr<Communicator> comm, const Signature& signature, Reduction reduction, const void* send, void* recv)
      : comm_(std::move(comm)), signature_(signature), reduction_(std::move(reduction)), send_(send), recv_(recv) {}

  const char* name() const override { return signature_.call(); }
  bool waits_for_others() const override { return true; }

  musaError_t run() override {
    comm_->run([this] {
      Signature shown = signature_;
      suffer(*comm_, shown);
      if (const auto objection = comm_->ledger().collective(comm_->rank, comm_->next_collective(), shown)) {
        comm_->mismatch(*objection);
      }
      const PlainTorch plain;
      const auto [sent, received] = signature_.amounts(comm_->rank, comm_->ranks);
      const size_t element = size_of(signature_.datatype);
      const MemoryAccess access(send_, sent * element, recv_, received * element);
      const void* factor = reduction_.multiplier != nullptr ? reduction_.multiplier->on_device : nullptr;
      const MemoryAccess factor_access(factor, factor != nullptr ? 8 : 0, nullptr, 0);
      compute();
    });
    return musaSuccess;
  }

 private:
  size_t part() const { return signature_.count * size_of(signature_.datatype); }

  void compute() {
    const Signature& s = signature_;
    Transport* transport = comm_->transport();
    switch (s.kind) {
      case Kind::AllReduce:
        move(recv_, send_, part());
        all_reduce(view(recv_, s.count, s.datatype), reduction_, transport, comm_->ranks);
        return;
      case Kind::Reduce:
        if (comm_->rank == s.root) {
          move(recv_, send_, part());
          reduce(view(recv_, s.count, s.datatype), reduction_, s.root, transport, comm_->ranks);
        } else {
          const at::Tensor scratch = view(send_, s.count, s.datatype).clone();
          reduce(scratch, reduction_, s.root, transport, comm_->ranks);
        }
        return;
      case Kind::Broadcast:
        if (comm_->rank == s.root) {
          move(recv_, send_, part());
        }
        if (transport != nullptr) {
          transport->broadcast(bytes_of(recv_, s.count, s.datatype), s.root);
        }
        return;
      case Kind::AllGather:
        if (transport == nullptr) {
          move(recv_, send_, part());
        } else {
          transport->exchange(
              bytes_of(send_, s.count, s.datatype).unsqueeze(0),
              bytes_of(recv_, s.count * static_cast<size_t>(comm_->ranks), s.datatype).view({comm_->ranks, -1}));
        }
        return;
      case Kind::ReduceScatter:
        reduce_scatter(
            view(send_, s.count * static_cast<size_t>(comm_->ranks), s.datatype), view(recv_, s.count, s.datatype),
            reduction_, transport, comm_->ranks);
        return;
      case Kind::Send:
      case Kind::Recv: break; // transfers
    }
  }

  const std::shared_ptr<Communicator> comm_;
  const Signature signature_;
  const Reduction reduction_;
  const void* const send_;
  void* const recv_;
};

class Transfers final : public Launch {
 public:
  Transfers(std::shared_ptr<Communicator> comm, std::vector<Transfer> transfers)
      : comm_(std::move(comm)), transfers_(std::move(transfers)) {}

  const char* name() const override { return transfers_.front().signature.call(); }
  bool waits_for_others() const override { return true; }

  musaError_t run() override {
    comm_->run([this] {
      const PlainTorch plain;
      std::deque<MemoryAccess> access;
      std::vector<c10::intrusive_ptr<c10d::Work>> works;
      std::optional<std::string> objection;
      for (const Transfer& transfer : transfers_) {
        Signature shown = transfer.signature;
        suffer(*comm_, shown);
        const bool sends = shown.kind == Kind::Send;
        const int peer = shown.root;
        const size_t bytes = transfer.signature.count * size_of(shown.datatype);
        access.emplace_back(transfer.memory, bytes, nullptr, 0);
        if (peer == comm_->rank) {
          continue;
        }
        const uint64_t number = sends ? comm_->next_sent_to(peer) : comm_->next_received_from(peer);
        const auto differs =
            comm_->ledger().transfer(sends ? comm_->rank : peer, sends ? peer : comm_->rank, sends, number, shown);
        if (differs.has_value()) {
          objection = differs;
          continue; // the other transfers of the group may still match
        }
        const at::Tensor values = bytes_of(transfer.memory, transfer.signature.count, shown.datatype);
        const int tag = static_cast<int>(number % Transport::kTags);
        works.push_back(
            sends ? comm_->transport()->send(values, peer, tag) : comm_->transport()->recv(values, peer, tag));
      }
      to_itself();
      for (const auto& work : works) {
        work->wait();
      }
      if (objection.has_value()) {
        comm_->mismatch(*objection);
      }
    });
    return musaSuccess;
  }

 private:
  // The n-th send to the same rank matches the n-th receive from it.
  void to_itself() const {
    std::deque<const Transfer*> sent;
    for (const Transfer& transfer : transfers_) {
      if (transfer.signature.root == comm_->rank && transfer.signature.kind == Kind::Send) {
        sent.push_back(&transfer);
      }
    }
    for (const Transfer& transfer : transfers_) {
      if (transfer.signature.root == comm_->rank && transfer.signature.kind == Kind::Recv) {
        if (sent.empty() || sent.front()->signature.count != transfer.signature.count) {
          comm_->mismatch(comm_->name() + " calls " + transfer.signature.describe() + " and has no matching own send");
        }
        move(transfer.memory, sent.front()->memory, transfer.signature.count * size_of(transfer.signature.datatype));
        sent.pop_front();
      }
    }
    if (!sent.empty()) {
      comm_->mismatch(comm_->name() + " calls " + sent.front()->signature.describe() + " and has no matching receive");
    }
  }

  const std::shared_ptr<Communicator> comm_;
  const std::vector<Transfer> transfers_;
};

} // namespace

std::shared_ptr<Launch> make_collective(
    std::shared_ptr<Communicator> comm, const Signature& signature, Reduction reduction, const void* send, void* recv) {
  return std::make_shared<Collective>(std::move(comm), signature, std::move(reduction), send, recv);
}

std::shared_ptr<Launch> make_transfers(std::shared_ptr<Communicator> comm, std::vector<Transfer> transfers) {
  return std::make_shared<Transfers>(std::move(comm), std::move(transfers));
}

} // namespace musa_emulator::mccl
