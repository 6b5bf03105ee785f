// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN: neural network layers: softmax, dropout, pooling, interpolation, normalization, gates, losses.
#pragma once

#include "mudnn_base.h"

namespace musa {
namespace dnn {

class MUDNN_EXPORT Softmax {
 public:
  enum class Mode : int { SOFTMAX, LOGSOFTMAX, LOGSUMEXP };
  enum class Algorithm : int { ACCURATE, DIRECT };
  Status SetMode(Mode mode);
  Status SetDim(int dim);
  Status SetAlgorithm(Algorithm algorithm);
  Status Run(Handle& handle, Tensor& out, const Tensor& in, const MemoryMaintainer& workspace = nullptr) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, const Tensor& out, const Tensor& grad_out,
      const MemoryMaintainer& workspace = nullptr) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::SOFTMAX;
  Algorithm algorithm_ = Algorithm::ACCURATE;
  int dim_ = -1;
};

// Kept elements are scaled by 1 / (1 - p); with p = 1 no element is kept. The mask is BOOL, true for kept elements.
class MUDNN_EXPORT Dropout {
 public:
  Status SetP(double p);
  Status SetScale(double scale); // for the backward pass
  Status SetSeed(uint64_t seed);
  Status SetSeed(const uint64_t* device_seed);
  Status SetOffset(uint64_t offset);
  Status SetOffset(const uint64_t* device_offset, uint64_t in_graph);
  Status RunDropout(Handle& handle, Tensor& out, const Tensor& in, Tensor& mask) const;
  Status RunDropoutBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& mask) const;

 private:
  friend struct Parameters;
  double p_ = 0;
  double scale_ = 1;
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;
  const uint64_t* device_seed_ = nullptr;
  const uint64_t* device_offset_ = nullptr;
  uint64_t in_graph_ = 0;
};

class MUDNN_EXPORT Pooling {
 public:
  enum class Mode : int {
    MAXPOOL,
    AVGPOOL_COUNT_PAD,
    AVGPOOL_COUNT_WITHOUT_PAD,
    ADAPTIVE_AVGPOOL,
    ADAPTIVE_MAXPOOL,
    GLOBAL_AVGPOOL,
  };
  Status SetMode(Mode mode);
  Status SetNdInfo(
      std::initializer_list<int> kernel, std::initializer_list<int> pad, std::initializer_list<int> stride,
      std::initializer_list<int> dilation);
  Status SetNdInfo(int count, const int* kernel, const int* pad, const int* stride, const int* dilation);
  Status SetDivisor(int divisor);
  Status Run(Handle& handle, Tensor& out, const Tensor& in, Tensor& indices) const;
  Status RunBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& indices) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::MAXPOOL;
  std::vector<int> kernel_, pad_, stride_, dilation_;
  int divisor_ = 0;
};

// Contiguous NCW, NCHW or NCDHW. Scales: input size / output size in the forward pass (or the reciprocal of a given
// scale), output size / input size in the backward pass.
class MUDNN_EXPORT Interpolate {
 public:
  enum class Mode : int { NEAREST, NEAREST_EXACT, LINEAR, BICUBIC };
  Status SetMode(Mode mode);
  Status SetAntialias(bool antialias);
  Status SetAlignCorners(bool align);
  Status SetScaleInfo(std::initializer_list<float> scales);
  Status SetScaleInfo(int count, const float* scales);
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;
  Status RunBackward(Handle& handle, Tensor& grad_in, const Tensor& grad_out) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::NEAREST;
  bool antialias_ = false;
  bool align_corners_ = false;
  std::vector<float> scales_;
};

// Statistics of HALF and BFLOAT16 inputs are FLOAT.
class MUDNN_EXPORT BatchNorm {
 public:
  enum class Mode : int { PER_CHANNEL, PER_ACTIVATION };
  Status SetMode(Mode mode);
  Status SetEpsilon(double epsilon);
  Status SetTraining(bool training);
  Status RunPure(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& mean, const Tensor& variance, const Tensor& weight,
      const Tensor& bias) const;
  // running = (1 - momentum) * running + momentum * batch. Absent running statistics are not updated.
  Status RunComposite(
      Handle& handle, Tensor& out, const Tensor& in, Tensor& running_mean, Tensor& running_variance, Tensor& mean,
      Tensor& inverse_deviation, const Tensor& weight, const Tensor& bias, double momentum,
      const MemoryMaintainer& workspace) const;
  // In training, takes the mean and inverse deviation that RunComposite saved; otherwise the running mean and variance.
  Status RunBwd(
      Handle& handle, Tensor& grad_in, Tensor& grad_mean, Tensor& grad_variance, Tensor& grad_weight, Tensor& grad_bias,
      const Tensor& in, const Tensor& grad_out, const Tensor& mean, const Tensor& deviation, const Tensor& weight,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::PER_CHANNEL;
  double epsilon_ = 1e-5;
  bool training_ = false;
};

class MUDNN_EXPORT LayerNorm {
 public:
  enum class VarMode : int { WELFORD, DIRECT };
  Status SetAxis(int count, const int* axes);
  Status SetEpsilon(double epsilon);
  Status SetVarMode(VarMode mode);
  Status Run(
      Handle& handle, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in, const Tensor& weight,
      const Tensor& bias, const MemoryMaintainer& workspace) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, Tensor& grad_weight, Tensor& grad_bias, const Tensor& grad_out, const Tensor& in,
      const Tensor& mean, const Tensor& rstd, const Tensor& weight, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  std::vector<int> axes_;
  double epsilon_ = 1e-5;
  VarMode mode_ = VarMode::WELFORD;
};

class MUDNN_EXPORT GroupNorm {
 public:
  Status SetEpsilon(double epsilon);
  Status SetAxis(int axis); // of the channels
  Status SetGroup(int groups);
  Status Run(
      Handle& handle, Tensor& out, Tensor& mean, Tensor& rstd, const Tensor& in, const Tensor& weight,
      const Tensor& bias) const;

 private:
  friend struct Parameters;
  double epsilon_ = 1e-5;
  int axis_ = 1;
  int groups_ = 1;
};

class MUDNN_EXPORT RMSNorm {
 public:
  Status SetEpsilon(double epsilon);
  Status SetAxis(int count, const int* axes);
  Status Run(Handle& handle, Tensor& out, Tensor& rstd, const Tensor& in, const Tensor& weight) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, Tensor& grad_weight, const Tensor& grad_out, const Tensor& in,
      const Tensor& rstd, const Tensor& weight, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  double epsilon_ = 1e-5;
  std::vector<int> axes_;
};

class MUDNN_EXPORT Glu {
 public:
  Status SetAxis(int axis);
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;

 private:
  friend struct Parameters;
  int axis_ = -1;
};

// out = silu(first half) * second half, along the last dimension.
class MUDNN_EXPORT SwiGlu {
 public:
  Status Run(Handle& handle, Tensor& out, const Tensor& in) const;
  Status RunBwd(Handle& handle, Tensor& grad_in, const Tensor& in, const Tensor& grad_out) const;
};

class MUDNN_EXPORT Rope {
 public:
  Status SetRotaryInterleaved(bool interleaved);
  Status SetBatchFirst(bool batch_first);
  Status SetMultiLatentAttention(bool latent);
  Status Run(Handle& handle, Tensor& out, const Tensor& in, const Tensor& freqs) const;
  Status RunBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& freqs) const;

 private:
  friend struct Parameters;
  bool interleaved_ = false;
  bool batch_first_ = true;
  bool latent_ = false;
};

class MUDNN_EXPORT NLLLoss {
 public:
  enum class Mode : int { NONE = 0, MEAN = 1, SUM = 2, BATCHMEAN };
  Status SetReductionMode(Mode mode);
  Status SetIgnoreIndex(int index);
  Status Run(
      Handle& handle, Tensor& out, Tensor& total_weight, const Tensor& in, const Tensor& target, const Tensor& weight,
      const MemoryMaintainer& workspace) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& target, const Tensor& weight,
      const Tensor& total_weight, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::MEAN;
  int ignore_ = -100;
};

class MUDNN_EXPORT KLDivLoss {
 public:
  enum class Mode : int { NONE = 0, MEAN = 1, SUM = 2, BATCHMEAN };
  Status SetReductionMode(Mode mode);
  Status SetLogTarget(bool log_target);
  Status Run(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& target, const MemoryMaintainer& workspace) const;
  Status RunBwd(Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& in, const Tensor& target) const;

 private:
  friend struct Parameters;
  Mode mode_ = Mode::MEAN;
  bool log_target_ = false;
};

class MUDNN_EXPORT CrossEntropyLoss {
 public:
  enum class ReductionMode : int { NONE = 0, MEAN = 1, SUM = 2 };
  Status SetReductionMode(ReductionMode mode);
  Status SetLabelSmoothing(float smoothing);
  Status SetIgnoreIndex(int64_t index);
  Status Run(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& label, const Tensor& weight,
      const MemoryMaintainer& workspace) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, const Tensor& in, const Tensor& grad_out, const Tensor& label,
      const Tensor& weight, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  ReductionMode mode_ = ReductionMode::MEAN;
  float smoothing_ = 0;
  int64_t ignore_ = -100;
};

class MUDNN_EXPORT CTCLoss {
 public:
  Status SetBlank(int64_t blank);
  Status SetZeroInfinity(bool zero_infinity);
  Status SetMaxTargetLength(int64_t length);
  Status Run(
      Handle& handle, Tensor& loss, Tensor& log_alpha, const Tensor& log_probabilities, const Tensor& targets,
      const Tensor& input_lengths, const Tensor& target_lengths) const;
  Status RunBwd(
      Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& log_probabilities, const Tensor& targets,
      const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& loss, const Tensor& log_alpha,
      const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  int64_t blank_ = 0;
  bool zero_infinity_ = false;
  int64_t max_target_ = 0;
};

} // namespace dnn
} // namespace musa
