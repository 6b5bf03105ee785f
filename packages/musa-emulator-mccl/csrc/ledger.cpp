// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>

#include "meeting.h"

namespace musa_emulator::mccl {
namespace {

// Calls by which ranks may be apart and still compared: a root may run ahead of who listens to it.
constexpr uint64_t kDepth = 64;
constexpr uint64_t kTransferDepth = 16;

} // namespace

// All zero to begin with; numbers count from 1.
struct Ledger::Entry {
  std::atomic<uint64_t> number;
  std::atomic<uint64_t> count;
  std::atomic<uint64_t> kind, datatype, op, root;
};

Ledger::~Ledger() {
  if (entries_ != nullptr) {
    munmap(entries_, bytes(ranks_));
  }
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

size_t Ledger::bytes(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  return sizeof(Entry) * (n * kDepth + n * n * 2 * kTransferDepth);
}

Ledger::Entry& Ledger::slot(int rank, uint64_t number) const {
  return entries_[static_cast<size_t>(rank) * kDepth + number % kDepth];
}

Ledger::Entry& Ledger::slot(int from, int to, bool sends, uint64_t number) const {
  const size_t n = static_cast<size_t>(ranks_);
  const size_t pair = (static_cast<size_t>(from) * n + static_cast<size_t>(to)) * 2 + (sends ? 1 : 0);
  return entries_[n * kDepth + pair * kTransferDepth + number % kTransferDepth];
}

bool Ledger::map(int descriptor, int ranks) {
  void* mapped = mmap(nullptr, bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) {
    return false;
  }
  entries_ = static_cast<Entry*>(mapped);
  ranks_ = ranks;
  return true;
}

std::string Ledger::create(int ranks) {
  descriptor_ = memfd_create("musa-emulator-mccl", MFD_CLOEXEC);
  if (descriptor_ < 0 || ftruncate(descriptor_, static_cast<off_t>(bytes(ranks))) != 0 || !map(descriptor_, ranks)) {
    return "";
  }
  return host_identity() + "\n/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_);
}

bool Ledger::open(const std::string& where, int ranks) {
  const size_t line = where.find('\n');
  if (line == std::string::npos || where.substr(0, line) != host_identity()) {
    return false;
  }
  const int descriptor = ::open(where.c_str() + line + 1, O_RDWR | O_CLOEXEC);
  const bool mapped = descriptor >= 0 && map(descriptor, ranks);
  if (descriptor >= 0) {
    close(descriptor);
  }
  return mapped;
}

void Ledger::write(Entry& entry, uint64_t number, const Signature& signature) {
  entry.number.store(0);
  entry.count.store(signature.count);
  entry.kind.store(static_cast<uint64_t>(signature.kind));
  entry.datatype.store(static_cast<uint64_t>(signature.datatype));
  entry.op.store(static_cast<uint64_t>(signature.op));
  entry.root.store(static_cast<uint64_t>(signature.root));
  entry.number.store(number);
}

std::optional<Signature> Ledger::read(const Entry& entry, uint64_t number) {
  if (entry.number.load() != number) {
    return std::nullopt;
  }
  Signature signature{
      static_cast<Kind>(entry.kind.load()), static_cast<mcclDataType_t>(entry.datatype.load()),
      static_cast<mcclRedOp_t>(entry.op.load()), static_cast<int>(entry.root.load()), entry.count.load()};
  return entry.number.load() == number ? std::optional(signature) : std::nullopt; // overwritten meanwhile
}

std::optional<std::string> Ledger::collective(int rank, uint64_t number, const Signature& signature) {
  if (entries_ == nullptr) {
    return std::nullopt;
  }
  write(slot(rank, number), number, signature);
  for (int other = 0; other < ranks_; ++other) {
    const auto theirs = read(slot(other, number), number);
    if (theirs.has_value() && *theirs != signature) {
      return "call " + std::to_string(number) + " of rank " + std::to_string(rank) + " is " + signature.describe() +
          ", and of rank " + std::to_string(other) + " " + theirs->describe();
    }
  }
  return std::nullopt;
}

std::optional<std::string> Ledger::transfer(int from, int to, bool sends, uint64_t number, const Signature& signature) {
  if (entries_ == nullptr) {
    return std::nullopt;
  }
  write(slot(from, to, sends, number), number, signature);
  const auto theirs = read(slot(from, to, !sends, number), number);
  if (!theirs.has_value() ||
      signature.count * size_of(signature.datatype) == theirs->count * size_of(theirs->datatype)) {
    return std::nullopt;
  }
  return "rank " + std::to_string(sends ? from : to) + " calls " + signature.describe() + ", and its peer " +
      theirs->describe();
}

} // namespace musa_emulator::mccl
