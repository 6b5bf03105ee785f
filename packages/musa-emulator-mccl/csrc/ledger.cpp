// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <sstream>

#include "host.h"

namespace musa_emulator::mccl {
namespace {

// Number of calls by which ranks may differ and still be compared: a broadcast root may run ahead of the receivers.
constexpr uint64_t kDepth = 64;
constexpr uint64_t kTransferDepth = 16;

constexpr char kName[] = "musa-emulator-mccl";

std::string link_of(const std::string& path) {
  std::array<char, 256> text{};
  const ssize_t length = readlink(path.c_str(), text.data(), text.size());
  return length > 0 ? std::string(text.data(), static_cast<size_t>(length)) : "";
}

// Closes the file descriptor in the destructor.
struct Descriptor {
  explicit Descriptor(int descriptor) : number(descriptor) {}
  ~Descriptor() {
    if (number >= 0) {
      close(number);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  const int number;
};

} // namespace

// Initialized to zero; call numbers start at 1.
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

bool Ledger::create_page(int ranks) {
  descriptor_ = memfd_create(kName, MFD_CLOEXEC);
  return descriptor_ >= 0 && ftruncate(descriptor_, static_cast<off_t>(bytes(ranks))) == 0 && map(descriptor_, ranks);
}

std::string Ledger::create(int ranks) {
  struct stat page = {};
  if (!create_page(ranks) || fstat(descriptor_, &page) != 0) {
    return "";
  }
  return host_identity() + '\n' + pid_space() + '\n' + std::to_string(getpid()) + ' ' + std::to_string(descriptor_) +
      ' ' + std::to_string(page.st_ino);
}

std::optional<std::string> Ledger::open(const std::string& where, int ranks) {
  std::istringstream text(where);
  std::string host, space;
  std::getline(text, host);
  std::getline(text, space);
  if (host != host_identity() || space != pid_space()) {
    return "rank 0 is on another host or in another pid namespace";
  }
  uint32_t process = 0, number = 0;
  uint64_t inode = 0;
  if (!(text >> process >> number >> inode) || text.peek() != std::istringstream::traits_type::eof()) {
    return "rank 0 did not send a process, a descriptor and an inode";
  }
  // O_PATH opens a file without read or write access, so a wrong file is rejected before it is touched.
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(number);
  const Descriptor found(::open(path.c_str(), O_PATH | O_CLOEXEC)), own(memfd_create(kName, MFD_CLOEXEC));
  const std::string reopened = "/proc/self/fd/" + std::to_string(found.number);
  struct stat theirs = {}, ours = {};
  if (found.number < 0 || own.number < 0 || fstat(found.number, &theirs) != 0 || fstat(own.number, &ours) != 0) {
    return path + " of rank 0 cannot be opened";
  }
  if (theirs.st_dev != ours.st_dev || theirs.st_ino != inode ||
      link_of(reopened) != std::string("/memfd:") + kName + " (deleted)") {
    return path + " of rank 0 is not the page of a ledger";
  }
  if (theirs.st_size != static_cast<off_t>(bytes(ranks))) {
    return path + " of rank 0 has " + std::to_string(theirs.st_size) + " bytes, and " + std::to_string(bytes(ranks)) +
        " are needed";
  }
  const Descriptor writable(::open(reopened.c_str(), O_RDWR | O_CLOEXEC));
  if (writable.number < 0 || !map(writable.number, ranks)) {
    return path + " of rank 0 cannot be mapped";
  }
  return std::nullopt;
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
  return entry.number.load() == number ? std::optional(signature) : std::nullopt; // overwritten while it was read
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
