// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Checked access to the indices of a sparse matrix. Like an invalid memory access, an index out of range puts the
// device into a sticky error state.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <type_traits>

#include "musparse/support.h"

namespace musa_emulator::sparse {

[[noreturn]] inline void throw_out_of_range() {
  throw std::out_of_range("an index of the sparse matrix is out of range");
}

// Returns the 0-based position of an index.
template <class Index>
int64_t checked(Index index, int64_t base, int64_t size) {
  const int64_t position = static_cast<int64_t>(index) - base;
  if (static_cast<uint64_t>(position) >= static_cast<uint64_t>(size)) {
    throw_out_of_range();
  }
  return position;
}

struct Range {
  int64_t begin, end;
};

// Returns the entry range of a CSR row.
template <class Row>
Range row_range(const musparseSpMatDescr& a, int64_t row) {
  const Row* starts = static_cast<const Row*>(a.row_data);
  const Range range{static_cast<int64_t>(starts[row]) - a.base, static_cast<int64_t>(starts[row + 1]) - a.base};
  if (range.begin < 0 || range.end < range.begin || range.end > a.entries) {
    throw std::out_of_range("a row pointer of the sparse matrix is out of range");
  }
  return range;
}

// As checked(), for the columns of one matrix and at the width of the indices: one subtraction and one comparison per
// index.
template <class Column>
class ColumnPositions {
 public:
  using Unsigned = std::make_unsigned_t<Column>;
  explicit ColumnPositions(const musparseSpMatDescr& a)
      : base_(static_cast<Unsigned>(a.base)),
        limit_(static_cast<Unsigned>(std::min(static_cast<uint64_t>(a.columns), kNonNegative))) {}
  Unsigned operator()(Column column) const {
    const Unsigned position = static_cast<Unsigned>(column) - base_;
    if (position >= limit_) [[unlikely]] {
      throw_out_of_range();
    }
    return position;
  }

 private:
  static constexpr uint64_t kNonNegative = uint64_t(std::numeric_limits<Column>::max()) + 1;
  Unsigned base_, limit_;
};

} // namespace musa_emulator::sparse
