// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Records in the client's buffers, as mupti_activity.h defines them. Independent of where the records come from: musa-cuda's
// libmupti uses this file too.
#pragma once

#include <cstdint>
#include <cstring>

#include "mupti_activity.h"
#include "mupti_version.h"

namespace mupti_buffers {

// A record of any kind.
union Record {
  MUpti_Activity head;
  MUpti_ActivityAPI call;
  MUpti_ActivityKernel4 kernel;
  MUpti_ActivityMemcpy copy;
  MUpti_ActivityMemcpy2 peer_copy;
  MUpti_ActivityMemset fill;
  MUpti_ActivitySynchronization synchronization;
  MUpti_ActivityExternalCorrelation external;
  MUpti_ActivityOverhead overhead;
};

// Returns the bytes of a record, 0 for a kind without records.
inline size_t record_size(MUpti_ActivityKind kind) {
  switch (kind) {
    case MUPTI_ACTIVITY_KIND_RUNTIME:
    case MUPTI_ACTIVITY_KIND_DRIVER: return sizeof(MUpti_ActivityAPI);
    case MUPTI_ACTIVITY_KIND_KERNEL:
    case MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(MUpti_ActivityKernel4);
    case MUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(MUpti_ActivityMemcpy);
    case MUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(MUpti_ActivityMemcpy2);
    case MUPTI_ACTIVITY_KIND_MEMSET: return sizeof(MUpti_ActivityMemset);
    case MUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(MUpti_ActivitySynchronization);
    case MUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(MUpti_ActivityExternalCorrelation);
    case MUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(MUpti_ActivityOverhead);
    default: return 0;
  }
}

// Requests buffers from the client, fills them and hands them back. No lock that the client's callbacks need may be held.
class ClientBuffer {
 public:
  ClientBuffer(MUpti_BuffersCallbackRequestFunc request, MUpti_BuffersCallbackCompleteFunc complete)
      : request_(request), complete_(complete) {}

  // Returns false if the client gave no buffer that the record fits in.
  bool append(const void* record, size_t bytes) {
    if (data_ != nullptr && (used_ + bytes > size_ || (most_ != 0 && count_ == most_))) {
      hand_back();
    }
    if (data_ == nullptr) {
      request_(&data_, &size_, &most_);
      used_ = count_ = 0;
      if (data_ == nullptr) {
        return false;
      }
      if (size_ < bytes || reinterpret_cast<uintptr_t>(data_) % alignof(uint64_t) != 0) {
        hand_back(); // of no use, but the caller's to free
        return false;
      }
    }
    std::memcpy(data_ + used_, record, bytes);
    used_ += bytes;
    ++count_;
    return true;
  }

  void hand_back() {
    if (data_ != nullptr) {
      complete_(nullptr, 0, data_, size_, used_);
      data_ = nullptr;
    }
  }

 private:
  MUpti_BuffersCallbackRequestFunc request_;
  MUpti_BuffersCallbackCompleteFunc complete_;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t most_ = 0;
  size_t used_ = 0;
  size_t count_ = 0;
};

// muptiActivityGetNextRecord.
inline MUptiResult next_record(uint8_t* buffer, size_t valid_size, MUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  uint8_t* next = buffer;
  if (*record != nullptr) {
    uint8_t* current = reinterpret_cast<uint8_t*>(*record);
    if (current < buffer || current >= buffer + valid_size) {
      return MUPTI_ERROR_INVALID_PARAMETER;
    }
    const size_t size = record_size((*record)->kind);
    if (size == 0) {
      return MUPTI_ERROR_INVALID_KIND;
    }
    next = current + size;
  }
  if (next >= buffer + valid_size) {
    return MUPTI_ERROR_MAX_LIMIT_REACHED;
  }
  auto* found = reinterpret_cast<MUpti_Activity*>(next);
  if (record_size(found->kind) == 0) {
    return MUPTI_ERROR_INVALID_KIND; // not a buffer of ours, or overwritten
  }
  *record = found;
  return MUPTI_SUCCESS;
}

// Returns the name of an error code, nullptr if there is none.
inline const char* result_name(MUptiResult result) {
#define MUPTI_TEXT(code) \
  case code: return #code
  switch (result) {
    MUPTI_TEXT(MUPTI_SUCCESS);
    MUPTI_TEXT(MUPTI_ERROR_INVALID_PARAMETER);
    MUPTI_TEXT(MUPTI_ERROR_INVALID_DEVICE);
    MUPTI_TEXT(MUPTI_ERROR_INVALID_CONTEXT);
    MUPTI_TEXT(MUPTI_ERROR_INVALID_OPERATION);
    MUPTI_TEXT(MUPTI_ERROR_OUT_OF_MEMORY);
    MUPTI_TEXT(MUPTI_ERROR_MAX_LIMIT_REACHED);
    MUPTI_TEXT(MUPTI_ERROR_NOT_COMPATIBLE);
    MUPTI_TEXT(MUPTI_ERROR_NOT_INITIALIZED);
    MUPTI_TEXT(MUPTI_ERROR_INVALID_KIND);
    MUPTI_TEXT(MUPTI_ERROR_QUEUE_EMPTY);
    MUPTI_TEXT(MUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    MUPTI_TEXT(MUPTI_ERROR_UNKNOWN);
    default: return nullptr;
  }
#undef MUPTI_TEXT
}

// muptiGetResultString.
inline MUptiResult result_string(MUptiResult result, const char** text) {
  const char* const name = result_name(result);
  if (text == nullptr || name == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  *text = name;
  return MUPTI_SUCCESS;
}

inline MUptiResult api_version(uint32_t* version) {
  if (version == nullptr) {
    return MUPTI_ERROR_INVALID_PARAMETER;
  }
  *version = MUPTI_API_VERSION;
  return MUPTI_SUCCESS;
}

// Whether a kernel has its record under another kind already: it has one record, of either kind.
template <class Kinds>
bool conflicts_with_kernels(MUpti_ActivityKind kind, const Kinds& enabled) {
  return (kind == MUPTI_ACTIVITY_KIND_KERNEL && enabled.count(MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != 0) ||
      (kind == MUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && enabled.count(MUPTI_ACTIVITY_KIND_KERNEL) != 0);
}

} // namespace mupti_buffers
