// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Records of CUPTI, of the versions that CUDA 13 writes, as records of the SDK.
#pragma once

#include <activity_buffers.h>

#include <set>
#include <string>
#include <unordered_map>

#include "mupti/support.h"

namespace musa_cuda {

enum class Conversion {
  Done,
  NoEqual,    // the SDK has no such record
  Incomplete, // CUPTI has no times of it
};

class RecordConverter {
 public:
  Conversion convert(const CUpti_Activity& from, mupti_buffers::Record& to);

 private:
  void convert_synchronization(const CUpti_ActivitySynchronization2& from, MUpti_ActivitySynchronization& to) const;
  // Returns a copy that is never freed: clients may keep the names of records.
  const char* lasting(const char* name);

  std::unordered_map<uint32_t, uint32_t> devices_; // of CUPTI's contexts
  std::set<std::string> names_;
};

} // namespace musa_cuda
