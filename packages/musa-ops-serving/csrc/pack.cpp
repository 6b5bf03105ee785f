// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The operators' schemas and kernels. The schemas are in the library, so a C++ program without Python has them too.
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <musa_runtime/op_pack.h>
#include <torch/library.h>

#include "operators.h"

namespace {

// Calls the kernel, unless an argument requires a gradient: the operator has no derivative, and a result that silently
// requires none would end the training of the layers before. Increments the versions of the tensors that it writes.
void without_gradient(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const auto arguments = torch::jit::last(*stack, schema.arguments().size());
  std::vector<at::Tensor> written;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) {
      continue;
    }
    const at::Tensor& tensor = arguments[i].toTensor();
    TORCH_CHECK(
        !at::GradMode::is_enabled() || !tensor.requires_grad(), schema.name(), " has no derivative, and its argument ",
        schema.arguments()[i].name(),
        " requires a gradient.\nFix: call it in torch.no_grad() or torch.inference_mode(), or detach the argument");
    const auto* const alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) {
      written.push_back(tensor);
    }
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.redispatchBoxed(keys & c10::after_ADInplaceOrView_keyset, stack);
  }
  for (const at::Tensor& tensor : written) {
    if (!tensor.is_inference()) {
      tensor.unsafeGetTensorImpl()->bump_version();
    }
  }
}

} // namespace

TORCH_LIBRARY(musa_serving, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "reshape_and_cache(Tensor key, Tensor value, Tensor(a!) key_cache, Tensor(b!) value_cache, Tensor slot_mapping, "
      "Tensor? key_scale=None, Tensor? value_scale=None) -> ()",
      tags);
  m.def(
      "paged_attention(Tensor query, Tensor key_cache, Tensor value_cache, Tensor block_table, Tensor query_starts, "
      "Tensor sequence_lengths, SymInt max_query_length, SymInt max_sequence_length, *, float scale, bool causal=True, "
      "int window=-1, float soft_cap=0.0, Tensor? alibi_slopes=None, Tensor? sinks=None, Tensor? key_scale=None, "
      "Tensor? value_scale=None) -> Tensor",
      tags);
  m.def(
      "paged_attention.out(Tensor query, Tensor key_cache, Tensor value_cache, Tensor block_table, "
      "Tensor query_starts, Tensor sequence_lengths, SymInt max_query_length, SymInt max_sequence_length, *, "
      "float scale, bool causal=True, int window=-1, float soft_cap=0.0, Tensor? alibi_slopes=None, "
      "Tensor? sinks=None, Tensor? key_scale=None, Tensor? value_scale=None, Tensor(a!) out) -> Tensor(a!)",
      tags);
  for (const char* const schema : {
           "rms_norm(Tensor input, Tensor weight, float epsilon) -> Tensor",
           "add_rms_norm(Tensor input, Tensor residual, Tensor weight, float epsilon) -> (Tensor, Tensor)",
           "add_rms_norm_(Tensor(a!) input, Tensor(b!) residual, Tensor weight, float epsilon) -> ()",
           "rotary_embedding(Tensor positions, Tensor(a!) query, Tensor(b!)? key, int head_size, Tensor cos_sin_cache, "
           "bool neox) -> ()",
           "silu_and_mul(Tensor input) -> Tensor",
           "gelu_and_mul(Tensor input, str approximate=\"none\") -> Tensor",
           "apply_penalties(Tensor(a!) logits, Tensor prompt_mask, Tensor output_counts, Tensor presence, "
           "Tensor frequency, Tensor repetition) -> ()",
           "top_k_top_p(Tensor logits, Tensor? k, Tensor? p) -> Tensor",
           "moe_route(Tensor scores, int k, *, str scoring=\"softmax\", bool renormalize=True, int groups=1, "
           "int top_groups=1, Tensor? bias=None, float scale=1.0) -> (Tensor weights, Tensor experts)",
           "moe_group(Tensor experts, int expert_count) -> (Tensor order, Tensor offsets)",
           "lora_shrink(Tensor input, Tensor weights, Tensor adapter_of_token, float scale) -> Tensor",
           "lora_expand(Tensor input, Tensor weights, Tensor adapter_of_token, Tensor(a!) output, int offset=0) -> ()",
       }) {
    m.def(schema, tags);
  }
}

// rms_norm, silu_and_mul and gelu_and_mul have derivatives: src/musa_ops_serving/gradients.py.
TORCH_LIBRARY_IMPL(musa_serving, Autograd, m) {
  for (const char* const name :
       {"reshape_and_cache", "paged_attention", "paged_attention.out", "add_rms_norm", "add_rms_norm_",
        "rotary_embedding", "apply_penalties", "top_k_top_p", "moe_route", "moe_group", "lora_shrink", "lora_expand"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&without_gradient>());
  }
}

// Behind the schemas, with which it compares the kernels.
MUSA_OP_PACK(serving, pack) {
  namespace serving = musa_ops_serving;
  pack.impl("musa_serving::reshape_and_cache", TORCH_FN(serving::reshape_and_cache));
  pack.impl("musa_serving::paged_attention", TORCH_FN(serving::paged_attention));
  pack.impl("musa_serving::paged_attention.out", TORCH_FN(serving::paged_attention_out));
  pack.impl("musa_serving::rms_norm", TORCH_FN(serving::rms_norm));
  pack.impl("musa_serving::add_rms_norm", TORCH_FN(serving::add_rms_norm));
  pack.impl("musa_serving::add_rms_norm_", TORCH_FN(serving::add_rms_norm_));
  pack.impl("musa_serving::rotary_embedding", TORCH_FN(serving::rotary_embedding));
  pack.impl("musa_serving::silu_and_mul", TORCH_FN(serving::silu_and_mul));
  pack.impl("musa_serving::gelu_and_mul", TORCH_FN(serving::gelu_and_mul));
  pack.impl("musa_serving::apply_penalties", TORCH_FN(serving::apply_penalties));
  pack.impl("musa_serving::top_k_top_p", TORCH_FN(serving::top_k_top_p));
  pack.impl("musa_serving::moe_route", TORCH_FN(serving::moe_route));
  pack.impl("musa_serving::moe_group", TORCH_FN(serving::moe_group));
  pack.impl("musa_serving::lora_shrink", TORCH_FN(serving::lora_shrink));
  pack.impl("musa_serving::lora_expand", TORCH_FN(serving::lora_expand));
}
