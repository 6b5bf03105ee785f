// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN: types that all operations share: status, handle, tensor, workspace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "mudnn_version.h"
#include "musa_runtime_api.h"

#define MUDNN_EXPORT __attribute__((visibility("default")))

namespace musa {
namespace dnn {

enum class Status : int {
  SUCCESS = 0,
  INVALID_PARAMETER,
  NOT_INITIALIZED,
  ALLOC_FAILED,
  NOT_SUPPORTED,
  INTERNAL_ERROR,
  ARCH_MISMATCH,
  EXECUTION_FAILED,
};

// Allocates the workspace of an operation; the argument is the size in bytes. The memory is held until the handler is
// destroyed, which happens once the work is enqueued. The deleter must free it in stream order.
using MemoryHandler = std::unique_ptr<void, std::function<void(void*)>>;
using MemoryMaintainer = std::function<MemoryHandler(size_t)>;

// Returns MUDNN_VERSION of the library.
MUDNN_EXPORT int64_t GetVersion();

// A device and the stream on which operations are enqueued. Used by one thread at a time.
class MUDNN_EXPORT Handle {
 public:
  Handle(); // the current device
  explicit Handle(int device);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  Status SetStream(musaStream_t stream);
  musaStream_t GetStream() const;
  Status SetAllowTF32(bool allow);

 private:
  friend struct HandleAccess;
  int device_;
  musaStream_t stream_ = nullptr;
  bool allow_tf32_ = false;
};

// Describes device memory without owning it. A tensor without an address or a shape represents an absent operand.
// Strides are in elements. Dimensions are in the order of the format's letters.
class MUDNN_EXPORT Tensor {
 public:
  enum class Type : int {
    HALF,
    BFLOAT16,
    FLOAT,
    DOUBLE,
    BOOL,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    QINT8,
    FP8_E5M2,
    FP8_E4M3,
    QINT4,
  };
  enum class Format : int { UNKNOWN, NCW, NWC, NCHW, NHWC, HWCN, NCDHW, NDHWC, DHWCN };

  Tensor();
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();

  Status SetAddr(const void* address);
  Status SetType(Type type);
  Status SetFormat(Format format);
  // Without strides, the tensor is contiguous in the order of the dimensions.
  Status SetNdInfo(int64_t ndim, const int64_t* dims);
  Status SetNdInfo(int64_t ndim, const int64_t* dims, const int64_t* strides);
  Status SetNdInfo(std::initializer_list<int64_t> dims);
  Status SetNdInfo(std::initializer_list<int64_t> dims, std::initializer_list<int64_t> strides);
  Status GetNdInfo(std::vector<int64_t>& dims) const;
  Status GetNdInfo(std::vector<int64_t>& dims, std::vector<int64_t>& strides) const;
  // Symmetric quantization with zero point 0.
  Status SetQuantizationInfo(float scale);

  static constexpr int kMaxDims = 8;

 private:
  friend struct TensorAccess;
  void* address_ = nullptr;
  Type type_ = Type::FLOAT;
  Format format_ = Format::UNKNOWN;
  int ndim_ = -1; // -1: no shape is set
  float scale_ = 1.0F;
  int64_t dims_[kMaxDims];
  int64_t strides_[kMaxDims];
};

// Base class of matrix operations.
class MUDNN_EXPORT ImplBase {
 public:
  // SCALAR: computes in the precision of the operands. TENSOR: may round FLOAT operands to TF32.
  enum class ComputeMode : int { SCALAR, TENSOR };
};

} // namespace dnn
} // namespace musa
