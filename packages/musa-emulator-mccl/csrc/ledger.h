// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// A page shared by the ranks of one machine. Each rank records its next call under a number; a different entry under
// the same number means that the ranks made different calls. A device would hang or return wrong results, and Gloo
// would terminate the process.
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

  // Called by rank 0. Returns a string with which the other ranks open the page, or an empty string on failure.
  std::string create(int ranks);
  // Opens rank 0's page. Returns the reason if it was not opened: the ranks do not share a pid namespace, or the
  // string, which comes from the network, does not name such a page.
  std::optional<std::string> open(const std::string& where, int ranks);

  // Writes the entry, then compares it with those of the other ranks under this number. Returns a description of the
  // first difference.
  std::optional<std::string> collective(int rank, uint64_t number, const Signature& signature);
  // As collective(), with one other rank; `number` counts the transfers from `from` to `to`.
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
