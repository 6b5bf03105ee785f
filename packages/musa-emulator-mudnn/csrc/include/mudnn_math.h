// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN: elementwise operations, reductions, sorting, indexing and shapes.
#pragma once

#include "mudnn_base.h"

namespace musa {
namespace dnn {

class MUDNN_EXPORT Unary {
 public:
  enum class Mode : int {
    IDENTITY,
    CAST,
    ABS,
    SQRT,
    RSQRT,
    RECIPROCAL,
    SQUARE,
    EXP,
    LOG,
    LOG2,
    LOG10,
    LOG1P,
    SIN,
    COS,
    TAN,
    ACOS,
    ATAN,
    TANH,
    ERF,
    CEIL,
    FLOOR,
    ROUND,
    SIGN,
    SIGMOID,
    HARDSIGMOID,
    RELU,
    RELU6,
    SILU,
    SWISH,
    HARDSWISH,
    MISH,
    GELU,
    GELU_TANH,
    LEAKY_RELU,
    ELU,
    SOFTPLUS,
    CLIP,
    POW,
    ADD,
    SUB,
    MUL,
    DIV,
    TRUEDIV,
    FLOORDIV,
    TRUNCATEDIV,
    FLOORMOD,
    TRUNCATEMOD,
    MAX,
    MIN,
    SUB_BY_ALPHA,
    DIV_BY_ALPHA,
    TRUEDIV_BY_ALPHA,
    FLOORDIV_BY_ALPHA,
    TRUNCATEDIV_BY_ALPHA,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    IS_NAN,
    IS_INF,
    IS_FINITE,
    IS_NONZERO,
  };
  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);
  Status SetBeta(double beta);
  Status SetBeta(int64_t beta);
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::IDENTITY;
  double alpha_ = 0;
  double beta_ = 0;
  int64_t alpha_integer_ = 0;
  int64_t beta_integer_ = 0;
  bool integer_ = false;
};

// Operands broadcast as in NumPy. The backward modes are called as Run(h, grad_in, grad_out, saved), where saved is the
// output for SIGMOID_BW and TANH_BW and the input for the others; RSQRT_BW takes (h, dx, y, dy).
class MUDNN_EXPORT Binary {
 public:
  enum class Mode : int {
    ADD,
    SUB,
    MUL,
    DIV,
    TRUEDIV,
    FLOORDIV,
    TRUNCATEDIV,
    FLOORMOD,
    TRUNCATEMOD,
    DIVNONAN,
    POW,
    MAX,
    MIN,
    SQUARED_DIFF,
    ADD_ALPHA,
    SUB_ALPHA, // l +- alpha * r
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    LOGICAL_AND,
    LOGICAL_OR,
    LOGICAL_XOR,
    PRELU, // l if positive, otherwise r * l
    THRESHOLD_BW,
    LEAKY_RELU_BW,
    RELU6_BW,
    SIGMOID_BW,
    TANH_BW,
    SILU_BW,
    GELU_NONE_BW,
    GELU_TANH_BW,
    RSQRT_BW,
  };
  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);
  Status SetBeta(double beta);
  Status SetBeta(int64_t beta);
  Status Run(Handle& handle, Tensor& out, const Tensor& left, const Tensor& right) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::ADD;
  double alpha_ = 0;
  int64_t alpha_integer_ = 0;
  double beta_ = 0;
  int64_t beta_integer_ = 0;
  bool integer_ = false;
};

class MUDNN_EXPORT Ternary {
 public:
  enum class Mode : int {
    SELECT,
    SELECTV2, // (condition, where true, where false)
    CLAMP, // (x, low, high)
    ADDCMUL,
    ADDCDIV, // a + b * c, a + b / c
    ADDCMUL_ALPHA,
    ADDCDIV_ALPHA, // a + alpha * b * c, a + alpha * b / c
  };
  Status SetMode(Mode mode);
  Status SetAlpha(double alpha);
  Status SetAlpha(int64_t alpha);
  Status Run(Handle& handle, Tensor& out, const Tensor& a, const Tensor& b, const Tensor& c) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::SELECT;
  double alpha_ = 1;
  int64_t alpha_integer_ = 1;
  bool integer_ = false;
};

class MUDNN_EXPORT Fill {
 public:
  Status SetValue(double value);
  Status SetValue(int64_t value);
  Status Run(Handle& handle, Tensor& out) const;
  Status Run(Handle& handle, Tensor& out, const Tensor& mask) const; // fills where mask, which is BOOL, is true

 private:
  friend struct Parameters;
  double value_ = 0;
  int64_t integer_value_ = 0;
  bool integer_ = false;
};

// The output has the reduced dimensions with size 1, or does not have them. Indices are INT64.
class MUDNN_EXPORT Reduce {
 public:
  enum class Mode : int {
    ADD,
    MEAN,
    MAX,
    MIN,
    PROD,
    MUL,
    AND,
    OR,
    NORM,
    VARIANCE,
    STD,
    MUL_NO_ZEROS,
    L2LOSS,
    MAX_UNSTABLE,
    MIN_UNSTABLE,
  };
  Status SetMode(Mode mode);
  Status SetDim(std::initializer_list<int> dims);
  Status SetDim(int count, const int* dims);
  Status SetNormOrd(float order);
  Status SetCorrection(double correction);
  Status Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const;
  Status RunWithIndices(
      Handle& handle, Tensor& out, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const;
  Status RunIndices(Handle& handle, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::ADD;
  int count_ = 0; // number of elements in dims_
  int dims_[Tensor::kMaxDims];
  float order_ = 2;
  double correction_ = 1;
};

class MUDNN_EXPORT Cum {
 public:
  enum class Mode : int { ADD, MUL };
  Status SetDim(int dim);
  Status SetMode(Mode mode);
  Status Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::ADD;
  int dim_ = 0;
};

class MUDNN_EXPORT Sort {
 public:
  Status SetDim(int dim);
  Status SetDescending(bool descending);
  Status SetStable(bool stable);
  Status Run(
      Handle& handle, Tensor& values, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  int dim_ = -1;
  bool descending_ = false;
  bool stable_ = false;
};

class MUDNN_EXPORT SortByKey {
 public:
  Status SetDim(int dim);
  Status SetDescending(bool descending);
  Status SetStable(bool stable);
  Status Run(
      Handle& handle, Tensor& keys_out, Tensor& values_out, const Tensor& keys, const Tensor& values,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  int dim_ = -1;
  bool descending_ = false;
  bool stable_ = false;
};

class MUDNN_EXPORT TopK {
 public:
  Status SetK(int k);
  Status SetDim(int dim);
  Status SetLargest(bool largest);
  Status SetSorted(bool sorted);
  Status Run(
      Handle& handle, Tensor& values, Tensor& indices, const Tensor& in, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  int k_ = 1;
  int dim_ = -1;
  bool largest_ = true;
  bool sorted_ = true;
};

// Waits for the device, and sets the shapes of values and counts to the number of elements found.
class MUDNN_EXPORT Unique {
 public:
  enum class Mode : int { UNSORTED, SORTED };
  Status SetMode(Mode mode);
  Status Run(
      Handle& handle, Tensor& values, Tensor& inverse, Tensor& counts, const Tensor& in,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::UNSORTED;
};

// Waits for the device, and sets the shape of out to [found, ndim]. out is INT64.
class MUDNN_EXPORT Nonzero {
 public:
  Status Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace) const;
};

class MUDNN_EXPORT Concat {
 public:
  Status SetAxis(int axis);
  Status Run(Handle& handle, Tensor& out, int count, const Tensor* inputs) const;

 private:
  friend struct Parameters;
  int axis_ = 0;
};

// A strided copy. The Config functions set the shape and strides of `in` or `out` for it.
class MUDNN_EXPORT Permute {
 public:
  Status ConfigDimStride(Tensor& out, Tensor& in, int count, const int64_t* permutation) const;
  Status ConfigDimStrideForSlice(Tensor& out, Tensor& in, const int64_t* starts, const int64_t* steps = nullptr) const;
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;
};

class MUDNN_EXPORT Pad {
 public:
  enum class Mode : int { CONSTANT, REFLECT, REPLICATE, CIRCULAR };
  Status SetMode(Mode mode);
  Status SetValue(double value);
  // Left and right for each dimension, starting with the last dimension.
  Status SetPaddingInfo(int count, const int* pads);
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::CONSTANT;
  double value_ = 0;
  std::vector<int> pads_;
};

// Operands are contiguous; indices are INT64.
class MUDNN_EXPORT Scatter {
 public:
  enum class Mode : int { UPDATE_ONLY, ADD, SUB, MUL };
  Status SetMode(Mode mode);
  Status Run(
      Handle& handle, Tensor& inout, const Tensor& indices, const Tensor& source, int dim,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::UPDATE_ONLY;
};

class MUDNN_EXPORT ScatterND {
 public:
  enum class Mode : int { UPDATE_ONLY, ADD, SUB };
  Status SetMode(Mode mode);
  Status Run(
      Handle& handle, Tensor& inout, const Tensor& indices, const Tensor& updates,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::UPDATE_ONLY;
};

class MUDNN_EXPORT GatherX {
 public:
  enum class Mode : int { GATHER, GATHER_ELEMENTS, GATHER_ND };
  Status SetMode(Mode mode);
  Status SetAxis(int axis);
  Status SetBatchDims(int batch_dims);
  Status Run(Handle& handle, Tensor& out, const Tensor& indices, const Tensor& params) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::GATHER;
  int axis_ = 0;
  int batch_dims_ = 0;
};

// Waits for the device, and sets the length of out to the number of elements found.
class MUDNN_EXPORT MaskedSelect {
 public:
  Status Run(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& mask, const MemoryMaintainer& workspace) const;
};

class MUDNN_EXPORT MaskedScatter {
 public:
  Status Run(
      Handle& handle, Tensor& inout, const Tensor& mask, const Tensor& source, const MemoryMaintainer& workspace) const;
};

} // namespace dnn
} // namespace musa
