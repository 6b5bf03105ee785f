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

} // namespace musa_ops_serving
