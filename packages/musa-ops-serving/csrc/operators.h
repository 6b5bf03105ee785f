// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The kernels of the operators, with the signatures of their schemas in pack.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

namespace musa_ops_serving {

void reshape_and_cache(
    const at::Tensor& key, const at::Tensor& value, at::Tensor& key_cache, at::Tensor& value_cache,
    const at::Tensor& slot_mapping, const std::optional<at::Tensor>& key_scale,
    const std::optional<at::Tensor>& value_scale);

at::Tensor paged_attention(
    const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache, const at::Tensor& block_table,
    const at::Tensor& query_starts, const at::Tensor& sequence_lengths, int64_t max_query_length,
    int64_t max_sequence_length, double scale, bool causal, int64_t window, double soft_cap,
    const std::optional<at::Tensor>& alibi_slopes, const std::optional<at::Tensor>& sinks,
    const std::optional<at::Tensor>& key_scale, const std::optional<at::Tensor>& value_scale);
at::Tensor& paged_attention_out(
    const at::Tensor& query, const at::Tensor& key_cache, const at::Tensor& value_cache, const at::Tensor& block_table,
    const at::Tensor& query_starts, const at::Tensor& sequence_lengths, int64_t max_query_length,
    int64_t max_sequence_length, double scale, bool causal, int64_t window, double soft_cap,
    const std::optional<at::Tensor>& alibi_slopes, const std::optional<at::Tensor>& sinks,
    const std::optional<at::Tensor>& key_scale, const std::optional<at::Tensor>& value_scale, at::Tensor& out);

at::Tensor rms_norm(const at::Tensor& input, const at::Tensor& weight, double epsilon);
std::tuple<at::Tensor, at::Tensor> add_rms_norm(
    const at::Tensor& input, const at::Tensor& residual, const at::Tensor& weight, double epsilon);
void add_rms_norm_(at::Tensor& input, at::Tensor& residual, const at::Tensor& weight, double epsilon);
void rotary_embedding(
    const at::Tensor& positions, at::Tensor& query, const std::optional<at::Tensor>& key, int64_t head_size,
    const at::Tensor& cos_sin_cache, bool neox);
at::Tensor silu_and_mul(const at::Tensor& input);
at::Tensor gelu_and_mul(const at::Tensor& input, std::string_view approximate);

void apply_penalties(
    at::Tensor& logits, const at::Tensor& prompt_mask, const at::Tensor& output_counts, const at::Tensor& presence,
    const at::Tensor& frequency, const at::Tensor& repetition);
at::Tensor top_k_top_p(
    const at::Tensor& logits, const std::optional<at::Tensor>& k, const std::optional<at::Tensor>& p);

std::tuple<at::Tensor, at::Tensor> moe_route(
    const at::Tensor& scores, int64_t k, std::string_view scoring, bool renormalize, int64_t groups, int64_t top_groups,
    const std::optional<at::Tensor>& bias, double scale);
std::tuple<at::Tensor, at::Tensor> moe_group(const at::Tensor& experts, int64_t expert_count);

at::Tensor lora_shrink(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& adapter_of_token, double scale);
void lora_expand(
    const at::Tensor& input, const at::Tensor& weights, const at::Tensor& adapter_of_token, at::Tensor& output,
    int64_t offset);

} // namespace musa_ops_serving
