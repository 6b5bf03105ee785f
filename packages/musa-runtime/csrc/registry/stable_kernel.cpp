// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <registry/stable_kernel.h>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/jit_type.h>
#include <ATen/core/op_registration/infer_schema.h>
#include <ATen/core/stack.h>
#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/jit/frontend/function_schema_parser.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>

namespace musa_runtime {
namespace {

using detail::ChainEntry;
using detail::ChainLink;

constexpr char kNamespace[] = "musa_stable";

// The library through which torch receives the boxed functions. Kept until the process ends, like chains.
TorchLibraryHandle library() {
  static const TorchLibraryHandle handle = [] {
    TorchLibraryHandle made = nullptr;
    TORCH_CHECK(
        aoti_torch_library_init_impl(kNamespace, "PrivateUse1", __FILE__, __LINE__, &made) == AOTI_TORCH_SUCCESS,
        "torch's stable ABI cannot register a library for the namespace ", kNamespace);
    return made;
  }();
  return handle;
}

// Whether the stable ABI of every supported torch minor converts values of a type. For other types it raises an error at
// the call. torch 2.13 added generators, but a kernel over the stable ABI cannot draw numbers from one.
bool is_convertible(const c10::TypePtr& type) {
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType: return true;
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType: return is_convertible(type->containedType(0));
    default: return false;
  }
}

// The first type of a schema that the stable ABI does not convert; nullptr if there is none.
c10::TypePtr unconvertible(const c10::FunctionSchema& schema) {
  for (const auto* list : {&schema.arguments(), &schema.returns()}) {
    for (const c10::Argument& argument : *list) {
      if (!is_convertible(argument.real_type())) {
        return argument.real_type();
      }
    }
  }
  return nullptr;
}

// "aten::add.Tensor" of the pack "demo" gives "musa_stable::demo_aten__add_Tensor_7"; the number makes it unique.
std::string unique_name(const std::string& provider, const c10::OperatorName& op) {
  static std::atomic<unsigned> next{0};
  std::string name = provider + "_" + c10::toString(op);
  const auto is_other = [](unsigned char c) { return std::isalnum(c) == 0; };
  std::replace_if(name.begin(), name.end(), is_other, '_');
  return c10::str(kNamespace, "::", name, "_", next++);
}

class StableChainKernel final : public c10::OperatorKernel {
 public:
  explicit StableChainKernel(const ChainLink& link) : link_(&link) {}

  static ChainEntry make(const ChainLink& link) {
    auto functor = std::make_unique<StableChainKernel>(link);
    std::atomic<const ChainLink*>* const at = &functor->link_;
    return {c10::KernelFunction::makeFromBoxedFunctor(std::move(functor)), at};
  }

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
    // OpRoute creates a StableLink for every link of this type.
    const auto& link = static_cast<const StableLink&>(*link_.load(std::memory_order_acquire));
    if (link.stable == nullptr || (link.without_float64 && detail::needs_float64(op.schema(), *stack)) ||
        !link.stable->serves(keys, *stack)) {
      link.next.callBoxed(op, keys, stack);
      return;
    }
    link.calls->fetch_add(1, std::memory_order_relaxed);
    try {
      try {
        link.stable->call(op, keys, stack);
      } catch (const std::runtime_error& raised) { // the pack's: torch's macros for the stable ABI raise only this type
        if (const std::exception_ptr original = take_original_error(raised.what())) {
          std::rethrow_exception(original);
        }
        throw c10::Error({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, raised.what());
      }
    } catch (c10::Error& error) {
      detail::add_context(error, link);
      throw;
    }
  }

 private:
  std::atomic<const ChainLink*> link_;
};

} // namespace

StableKernel::StableKernel(const MusaStableKernel& declared, uint64_t torch_built)
    : signature_(declared.signature), function_(declared.kernel), served_(declared.served), torch_built_(torch_built) {}

std::string StableKernel::misfit(
    const std::string& provider, const std::string& op, const c10::FunctionSchema& schema) const {
  const std::string what = "the pack '" + provider + "' declares a stable kernel for " + op;
  std::optional<c10::FunctionSchema> declared;
  try {
    declared = torch::jit::parseSchema("musa_stable::kernel" + signature_, /*allow_typevars=*/false);
  } catch (const std::exception& error) {
    return c10::str(
        what, " with a signature that is no schema.\n  have: ", signature_,
        "\n  need: a text such as (Tensor a, float b) -> "
        "Tensor\nLikely cause: it was written by hand.\nFix: use MUSA_STABLE_OP_PACK, which derives it from the kernel's "
        "type.\n",
        error.what());
  }
  if (const c10::TypePtr type = unconvertible(*declared)) {
    return c10::str(
        what, " with the type ", type->str(), ", which torch's stable ABI does not convert.\n  have: ", signature_,
        "\n  need: ", schema, "\nFix: declare this kernel in C++, with MUSA_OP_PACK.");
  }
  const std::optional<std::string> difference =
      c10::findSchemaDifferences(declared->cloneWithRealTypes(false), schema.cloneWithRealTypes(false));
  if (!difference.has_value()) {
    return "";
  }
  const c10::TypePtr barrier = unconvertible(schema);
  return c10::str(
      what, " whose signature is not the operator's. ", *difference, "\n  have: ", signature_, "\n  need: ", schema,
      barrier != nullptr
          ? "\nLikely cause: torch's stable ABI does not convert " + barrier->str() +
              ", so the operator can have no stable kernel.\nFix: declare this kernel in C++, with MUSA_OP_PACK."
          : std::string(
                "\nLikely causes: a parameter is missing or has another type; this torch has another schema for the "
                "operator.\nFix: give the kernel the operator's parameters, and build the pack again."));
}

StableKernel::Bound StableKernel::register_function(
    const c10::FunctionSchema& schema, MusaStableFunction function) const {
  Bound bound{
      c10::Dispatcher::singleton().registerDef(schema, "torch_musa op registry"),
      c10::SafeKernelFunction(nullptr, "", nullptr)};
  const std::string name = schema.name().substr(schema.name().find("::") + 2);
  TORCH_CHECK(
      torch_library_impl(library(), name.c_str(), function, torch_built_) == AOTI_TORCH_SUCCESS,
      "torch's stable ABI cannot register the function ", schema.name());
  bound.kernel = c10::Dispatcher::singleton()
                     .findSchemaOrThrow(schema.name().c_str(), "")
                     .getComputedKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
  return bound;
}

void StableKernel::bind(const std::string& provider, const c10::OperatorHandle& op) {
  if (kernel_.has_value()) {
    return;
  }
  arguments_ = op.schema().arguments().size();
  const std::string name = unique_name(provider, op.operator_name());
  kernel_ = register_function(op.schema().cloneWithName(name, ""), function_);
  if (served_ != nullptr) {
    const std::vector<c10::Argument> result{c10::Argument("", c10::BoolType::get())};
    predicate_ = register_function(op.schema().cloneWithName(name + "_served", "").cloneWithReturns(result), served_);
  }
}

bool StableKernel::serves(c10::DispatchKeySet keys, const torch::jit::Stack& stack) const {
  if (!predicate_.has_value()) {
    return true;
  }
  torch::jit::Stack arguments(stack.end() - static_cast<std::ptrdiff_t>(arguments_), stack.end());
  predicate_->kernel.callBoxed(predicate_->kernel.opHandle(), keys, &arguments);
  return arguments.back().toBool();
}

void StableKernel::call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) const {
  kernel_->kernel.callBoxed(op, keys, stack);
}

const detail::KernelType& StableKernel::type() {
  static const detail::KernelType type{&StableChainKernel::make, /*declines=*/nullptr, /*symbolic=*/false,
                                       /*signature=*/nullptr,    /*schema=*/nullptr,   /*check_signature=*/nullptr};
  return type;
}

bool is_stable_kernel(const c10::OperatorName& name) { return name.getNamespace() == kNamespace; }

} // namespace musa_runtime
