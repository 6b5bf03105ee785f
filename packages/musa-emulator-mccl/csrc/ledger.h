// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A page that the ranks of one machine share, in which each writes what it is about to do: who finds another entry under the
// same number than its own knows that the ranks have called different things. A device would hang or compute nonsense, and
// Gloo would end the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "signature.h"

namespace musa_emulator::mccl {

class Ledger {
 public:
  Ledger() = default;
  ~Ledger();
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // By rank 0. Returns the text by which the others open it; empty if it could not be made.
  std::string create(int ranks);
  // Opens rank 0's page. Returns why it was not opened: the ranks share no processes, or the text, which comes from the network,
  // names anything but the page of such a ledger.
  std::optional<std::string> open(const std::string& where, int ranks);

  // Writes the entry, then looks at those of the others under this number. What differs, told of the first that does.
  std::optional<std::string> collective(int rank, uint64_t number, const Signature& signature);
  // The same with one other rank; the number counts what goes from `from` to `to`.
  std::optional<std::string> transfer(int from, int to, bool sends, uint64_t number, const Signature& signature);

 private:
  struct Entry;
  static size_t bytes(int ranks);
  Entry& slot(int rank, uint64_t number) const;
  Entry& slot(int from, int to, bool sends, uint64_t number) const;
  static void write(Entry& entry, uint64_t number, const Signature& signature);
  static std::optional<Signature> read(const Entry& entry, uint64_t number);
  bool map(int descriptor, int ranks);
  bool create_page(int ranks);

  Entry* entries_ = nullptr;
  int ranks_ = 0;
  int descriptor_ = -1;
};

} // namespace musa_emulator::mccl
