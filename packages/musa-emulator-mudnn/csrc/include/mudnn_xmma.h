// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// muDNN: matrix products, convolution, attention.
#pragma once

#include "mudnn_base.h"

namespace musa {
namespace dnn {

// c = alpha * op(a) * op(b) + beta * c. Shapes are those in memory, before transposition. Terms with an absent c or
// bias are left out.
class MUDNN_EXPORT MatMul : public ImplBase {
 public:
  Status SetComputeMode(ComputeMode mode);
  Status SetTranspose(bool a, bool b);
  Status SetAlpha(double alpha);
  Status SetBeta(double beta);
  Status SetGamma(double gamma);
  Status Run(
      Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const MemoryMaintainer& workspace = nullptr) const;
  // c = alpha * op(a) * op(b) + beta * c + gamma * bias
  Status RunWithBiasAdd(
      Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias,
      const MemoryMaintainer& workspace = nullptr) const;
  // d = alpha * op(a) * op(b) + beta * c + gamma * bias
  Status RunWithBiasAdd(
      Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
      const MemoryMaintainer& workspace = nullptr) const;

 private:
  friend struct Parameters;
  ComputeMode mode_ = ComputeMode::SCALAR;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
  double alpha_ = 1;
  double beta_ = 0;
  double gamma_ = 1;
};

class MUDNN_EXPORT MatMulLtParam {
 public:
  enum class MatMulLtEpilogueMode : int {
    MATMULLT_EPILOGUE_DEFAULT,
    MATMULLT_EPILOGUE_RELU,
    MATMULLT_EPILOGUE_BIAS,
    MATMULLT_EPILOGUE_RELU_BIAS,
    MATMULLT_EPILOGUE_GELU,
    MATMULLT_EPILOGUE_GELU_BIAS,
  };
  // FLOAT scalars, or one value per row (a, d) or column (b).
  Status SetScale(const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d);
  Status SetScale(
      const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d, int quant_tile, bool scale_mn_major);
  Status SetAmaxD(Tensor& amax);
  Status SetEpilogue(MatMulLtEpilogueMode mode);

 private:
  friend struct Parameters;
  Tensor scale_a_, scale_b_, scale_c_, scale_d_, amax_d_;
  int quant_tile_ = 0;
  bool scale_mn_major_ = false;
  MatMulLtEpilogueMode epilogue_ = MatMulLtEpilogueMode::MATMULLT_EPILOGUE_DEFAULT;
};

// Like MatMul, for 3-d tensors; a batch with stride 0 is broadcast. 2-d tensors are a batch of one.
class MUDNN_EXPORT BatchMatMul : public ImplBase {
 public:
  Status SetComputeMode(ComputeMode mode);
  Status SetTranspose(bool a, bool b);
  Status SetAlpha(double alpha);
  Status SetBeta(double beta);
  Status SetGamma(double gamma);
  Status SetDeterministic(bool deterministic);
  Status GetWorkspaceSize(Handle& handle, size_t& bytes, const Tensor& c, const Tensor& a, const Tensor& b) const;
  Status Run(
      Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const MemoryMaintainer& workspace = nullptr) const;
  Status Run(
      Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, int64_t batch, int64_t m, int64_t n, int64_t k,
      int64_t lda, int64_t ldb, int64_t ldc, int64_t stride_a, int64_t stride_b, int64_t stride_c,
      const MemoryMaintainer& workspace = nullptr) const;
  Status RunWithBiasAdd(
      Handle& handle, Tensor& c, const Tensor& a, const Tensor& b, const Tensor& bias,
      const MemoryMaintainer& workspace = nullptr) const;
  Status RunWithBiasAdd(
      Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
      const MemoryMaintainer& workspace = nullptr) const;
  Status RunLt(
      Handle& handle, Tensor& d, const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& bias,
      const MatMulLtParam& param, const MemoryMaintainer& workspace = nullptr) const;

 private:
  friend struct Parameters;
  ComputeMode mode_ = ComputeMode::SCALAR;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
  bool deterministic_ = false;
  double alpha_ = 1;
  double beta_ = 0;
  double gamma_ = 1;
};

class MUDNN_EXPORT GroupedMatMul : public ImplBase {
 public:
  Status SetComputeMode(ComputeMode mode);
  Status SetTranspose(bool a, bool b);
  Status SetAlpha(double alpha);
  Status SetBeta(double beta);
  Status SetGamma(double gamma);
  Status RunLt(
      Handle& handle, Tensor* d, const Tensor* a, const Tensor* b, const Tensor* c, const Tensor* bias,
      const MatMulLtParam* params, int groups, const MemoryMaintainer& workspace = nullptr) const;

 private:
  friend struct Parameters;
  ComputeMode mode_ = ComputeMode::SCALAR;
  bool transpose_a_ = false;
  bool transpose_b_ = false;
  double alpha_ = 1;
  double beta_ = 0;
  double gamma_ = 1;
};

class MUDNN_EXPORT Dot : public ImplBase {
 public:
  Status SetComputeMode(ComputeMode mode);
  Status Run(
      Handle& handle, Tensor& out, const Tensor& left, const Tensor& right, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  ComputeMode mode_ = ComputeMode::SCALAR;
};

// Cross-correlation in two or three dimensions.
class MUDNN_EXPORT Convolution : public ImplBase {
 public:
  enum class Algorithm : int { IMPLICIT_GEMM, DIRECT, WINOGRAD_NONFUSED, GEMM };
  enum class AlgorithmBwdData : int { IMPLICIT_GEMM, WINOGRAD_NONFUSED, GEMM, DIRECT };
  enum class AlgorithmBwdFilter : int { IMPLICIT_GEMM, WINOGRAD_NONFUSED, GEMM, DIRECT };

  class MUDNN_EXPORT FusedActivationDesc {
   public:
    enum class Mode : int { IDENTITY, SIGMOID, RELU, TANH, CLIPPED_RELU, ELU, HARD_SWISH, SILU };
    Status SetMode(Mode mode);
    Status SetCoef(double alpha, double beta, double gamma);

   private:
    friend struct Parameters;
    Mode mode_ = Mode::IDENTITY;
    double alpha_ = 0;
    double beta_ = 0;
    double gamma_ = 0;
  };

  Status SetNdInfo(
      std::initializer_list<int> pad, std::initializer_list<int> stride, std::initializer_list<int> dilation);
  Status SetNdInfo(int count, const int* pad, const int* stride, const int* dilation);
  Status SetGroups(int groups);
  Status SetComputeMode(ComputeMode mode);

  Status GetRecommendForwardAlgorithm(
      Handle& handle, Algorithm& algorithm, const Tensor& out, const Tensor& in, const Tensor& weight) const;
  Status GetRecommendBackwardDataAlgorithm(
      Handle& handle, AlgorithmBwdData& algorithm, const Tensor& grad_in, const Tensor& grad_out,
      const Tensor& weight) const;
  Status GetRecommendBackwardFilterAlgorithm(
      Handle& handle, AlgorithmBwdFilter& algorithm, const Tensor& grad_weight, const Tensor& in,
      const Tensor& grad_out) const;
  Status GetForwardWorkspaceSize(
      Handle& handle, size_t& bytes, const Tensor& out, const Tensor& in, const Tensor& weight,
      Algorithm algorithm) const;
  Status GetBackwardDataWorkspaceSize(
      Handle& handle, size_t& bytes, const Tensor& grad_in, const Tensor& grad_out, const Tensor& weight,
      AlgorithmBwdData algorithm) const;
  Status GetBackwardFilterWorkspaceSize(
      Handle& handle, size_t& bytes, const Tensor& grad_weight, const Tensor& in, const Tensor& grad_out,
      AlgorithmBwdFilter algorithm) const;

  Status Run(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& weight, Algorithm algorithm,
      const MemoryMaintainer& workspace = nullptr) const;
  // out = activation(convolution + bias + add)
  Status RunFusion(
      Handle& handle, Tensor& out, const Tensor& in, const Tensor& weight, const Tensor& bias, const Tensor& add,
      const FusedActivationDesc& activation, Algorithm algorithm, const MemoryMaintainer& workspace = nullptr) const;
  Status RunBwdData(
      Handle& handle, Tensor& grad_in, const Tensor& grad_out, const Tensor& weight, AlgorithmBwdData algorithm,
      const MemoryMaintainer& workspace = nullptr) const;
  Status RunBwdFilter(
      Handle& handle, Tensor& grad_weight, const Tensor& in, const Tensor& grad_out, AlgorithmBwdFilter algorithm,
      const MemoryMaintainer& workspace = nullptr) const;

 private:
  friend struct Parameters;
  std::vector<int> pad_;
  std::vector<int> stride_;
  std::vector<int> dilation_;
  int groups_ = 1;
  ComputeMode mode_ = ComputeMode::SCALAR;
};

// q is [N, Hq, L, E]; k and v are [N, Hkv, S, E], where Hkv divides Hq. The mask is BOOL (true: keep) or floating
// (added to the scores), of shape [L, S], [N, S] (a padding mask), [H, L, S] or [N, H, L, S].
class MUDNN_EXPORT ScaledDotProductAttention : public ImplBase {
 public:
  Status SetComputeMode(ComputeMode mode);
  Status SetEmbedDim(int dim); // heads * dimension of v
  Status SetHeadsNum(int heads); // of q
  Status SetBatchSize(int batch);
  Status SetMaxSeqlenQ(int length);
  Status SetMaxSeqlenK(int length);
  Status SetMaskMode(bool is_padding_mask);
  Status SetCausal(bool causal);
  Status SetDropoutP(double p);
  Status SetScale(double scale); // 0: 1 / sqrt(E)
  Status SetTraining(bool training);
  Status SetSeed(
      uint64_t seed, uint64_t offset, int dropout_mode, const uint64_t* device_seed, const uint64_t* device_offset,
      uint64_t graph_offset);
  Status SetKeyFormat(bool key_format);
  Status SetIsDeterministic(bool deterministic);

  Status RunMath(
      Handle& handle, Tensor& out, Tensor& weights, const Tensor& q, const Tensor& k, const Tensor& v,
      const Tensor& mask, Tensor& dropout_mask, const MemoryMaintainer& workspace) const;
  Status RunMathBwd(
      Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, Tensor& grad_weights, const Tensor& grad_out, const Tensor& q,
      const Tensor& k, const Tensor& v, const Tensor& weights, const Tensor& dropout_mask,
      const MemoryMaintainer& workspace) const;
  Status RunFlash(
      Handle& handle, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
      Tensor& dropout_mask, const MemoryMaintainer& workspace = nullptr) const;
  Status RunFlashBwd(
      Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, const Tensor& grad_out, const Tensor& q, const Tensor& k,
      const Tensor& v, const Tensor& mask, const Tensor& out, const Tensor& lse, const Tensor& dropout_mask,
      const MemoryMaintainer& workspace) const;
  // q [T, H, D]; offsets INT32 [B + 1]; lse FLOAT [B, H, longest q].
  Status RunFlashVarlen(
      Handle& handle, Tensor& out, Tensor& lse, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
      Tensor& dropout_mask, const Tensor& offsets_q, const Tensor& offsets_k, const MemoryMaintainer& workspace) const;
  Status RunFlashVarlenBwd(
      Handle& handle, Tensor& dq, Tensor& dk, Tensor& dv, const Tensor& grad_out, const Tensor& q, const Tensor& k,
      const Tensor& v, const Tensor& mask, const Tensor& out, const Tensor& lse, const Tensor& dropout_mask,
      const Tensor& offsets_q, const Tensor& offsets_k, const MemoryMaintainer& workspace) const;

 private:
  friend struct Parameters;
  ComputeMode mode_ = ComputeMode::SCALAR;
  int embed_dim_ = 0;
  int heads_ = 0;
  int batch_ = 0;
  int max_q_ = 0;
  int max_k_ = 0;
  bool padding_mask_ = false;
  bool causal_ = false;
  bool training_ = false;
  bool key_format_ = false;
  bool deterministic_ = false;
  double dropout_ = 0;
  double scale_ = 0;
  uint64_t seed_ = 0;
  uint64_t offset_ = 0;
  int dropout_mode_ = 0;
  const uint64_t* device_seed_ = nullptr;
  const uint64_t* device_offset_ = nullptr;
  uint64_t graph_offset_ = 0;
};

} // namespace dnn
} // namespace musa
