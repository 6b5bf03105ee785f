// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include <host_copy/fallback.h>

#include <ATen/MemoryOverlap.h>
#include <ATen/SparseCsrTensorUtils.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <c10/musa/MUSACapabilities.h>
#include <c10/musa/MUSAEnvironment.h>
#include <c10/musa/MUSASyncDebugMode.h>
#include <musa_runtime/float64.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/host_arguments.h>
#include <transfer/strided.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

namespace musa_runtime {
namespace {

using c10::DispatchKey;
using c10::IValue;
using c10::OperatorHandle;
using torch::jit::Stack;

enum class OnCopy { Allow, Warn, Error };

OnCopy parse_mode(const std::string& mode, const char* source) {
  if (mode == "allow") {
    return OnCopy::Allow;
  }
  if (mode == "warn" || mode.empty()) {
    return OnCopy::Warn;
  }
  TORCH_CHECK_VALUE(
      mode == "error", source, "='", c10::musa::printable(mode), "' is invalid; expected allow, warn or error.\n",
      "Fix: use one of these");
  return OnCopy::Error;
}

std::atomic<OnCopy>& on_copy() {
  static std::atomic<OnCopy> value = [] {
    return parse_mode(c10::musa::environment_variable("TORCH_MUSA_FALLBACK"), "TORCH_MUSA_FALLBACK");
  }();
  return value;
}

// Set when the pack's library is loaded, before a kernel can run.
std::atomic<HostFallback*> host_fallback{nullptr};
std::atomic<bool> default_is_host{false};

// Set once, when torch.musa is registered, before a kernel can run; then only read.
PackAdvice& pack_advice() {
  static PackAdvice& instance = *new PackAdvice();
  return instance;
}

// Whether a call is computed on the host because the device does not compute with float64.
bool lacks_float64(const OperatorHandle& op, const Stack& stack) {
  return !c10::musa::computes_float64() && detail::needs_float64(op.schema(), stack);
}

constexpr char kUseFloat32[] = "use float32, because this device does not compute with float64";

// The last part of an error of an operator that no installed pack serves.
std::string fix_by_pack(const std::string& op, const char* otherwise) {
  const std::string advice = pack_advice() ? pack_advice()(op) : "";
  return advice.empty() ? std::string("Fix: ") + otherwise : advice;
}

struct Statistics {
  std::mutex mutex; // guards rows; a leaf lock
  std::unordered_map<std::string, FallbackCounts> rows;
};

Statistics& statistics() {
  static Statistics& instance = *new Statistics();
  return instance;
}

// The running statistics, which batch norm updates although its schema does not annotate them.
bool writes_unannotated(const std::string& name, const std::string& argument) {
  return (name == "aten::native_batch_norm" || name == "aten::batch_norm_update_stats") &&
      (argument == "running_mean" || argument == "running_var");
}

bool is_written(const c10::FunctionSchema& schema, const c10::Argument& argument) {
  return (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) ||
      writes_unannotated(schema.name(), argument.name());
}

// Kernels that compute data for the backward pass only if an operand requires a gradient.
bool reads_requires_grad(const std::string& name) { return name == "aten::_sparse_mm_reduce_impl"; }

// Operators that read only the metadata of their operands, and return no tensor or one in host memory. torch calls some of
// them where an exception ends the process, as autograd does for the sizes of a nested tensor.
bool reads_only_metadata(const std::string& name) {
  static const std::unordered_set<std::string> names{"aten::_dimI",
                                                     "aten::_dimV",
                                                     "aten::_fused_sdp_choice",
                                                     "aten::_nnz",
                                                     "aten::dense_dim",
                                                     "aten::is_coalesced",
                                                     "aten::is_pinned",
                                                     "aten::is_same_size",
                                                     "aten::is_set_to",
                                                     "aten::q_per_channel_axis",
                                                     "aten::q_scale",
                                                     "aten::q_zero_point",
                                                     "aten::qscheme",
                                                     "aten::sparse_dim"};
  return names.count(name) != 0 || returns_host_tensors(name);
}

// Whether the result shares its operand's memory and the kernel reads none of it. For sparse tensors, only the accessors of
// their parts qualify; their other views compute new indices.
bool is_metadata_view(const c10::FunctionSchema& schema, const std::vector<IValue>& arguments) {
  // Their schemas do not say that the result shares memory, or they change only the metadata of their operand.
  static const std::unordered_set<std::string> sharing{
      "aten::_coalesced_", "aten::_sparse_coo_tensor_with_dims", "aten::_sparse_coo_tensor_with_dims_and_tensors",
      "aten::q_per_channel_scales", "aten::q_per_channel_zero_points"};
  if (sharing.count(schema.name()) != 0) {
    return true;
  }
  static const std::vector<std::string> accessors{"aten::_indices",     "aten::_values",      "aten::indices",
                                                  "aten::values",       "aten::crow_indices", "aten::col_indices",
                                                  "aten::ccol_indices", "aten::row_indices"};
  const bool sparse = std::any_of(arguments.begin(), arguments.end(), [](const IValue& value) {
    return value.isTensor() && value.toTensor().defined() &&
        (value.toTensor().is_sparse() || at::sparse_csr::is_sparse_compressed(value.toTensor()));
  });
  if (sparse && std::find(accessors.begin(), accessors.end(), schema.name()) == accessors.end()) {
    return false;
  }
  return std::any_of(schema.returns().begin(), schema.returns().end(), [](const c10::Argument& ret) {
    return ret.alias_info() != nullptr && !ret.alias_info()->isWrite();
  });
}

// Whether a list of tensors, or the value passed with it, has a tensor in host memory.
bool has_host_tensor(const Stack& arguments) {
  const auto is_on_host = [](const at::Tensor& tensor) { return tensor.defined() && tensor.is_cpu(); };
  return std::any_of(arguments.begin(), arguments.end(), [&](const IValue& value) {
    if (value.isTensorList()) {
      const std::vector<at::Tensor> tensors = value.toTensorVector();
      return std::any_of(tensors.begin(), tensors.end(), is_on_host);
    }
    return value.isTensor() && is_on_host(value.toTensor());
  });
}

// Copies of tensors that overlap a tensor which the operator writes. They are views of one host copy of their storage, so
// that torch's kernels detect the overlap, and refuse it or not.
class OverlappingCopies {
 public:
  OverlappingCopies(const c10::FunctionSchema& schema, const std::vector<IValue>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool written = is_written(schema, schema.arguments()[i]);
      if (arguments[i].isTensor()) {
        add(arguments[i].toTensor(), written);
      }
    }
    for (const Argument& target : arguments_) {
      for (const Argument& other : arguments_) {
        if (target.written && !target.tensor.is_same(other.tensor) && target.tensor.is_alias_of(other.tensor) &&
            may_overlap(target.tensor, other.tensor)) {
          copy(target.tensor);
          copy(other.tensor);
        }
      }
    }
  }

  // Undefined if the tensor overlaps no written one.
  at::Tensor find(const at::Tensor& tensor) const {
    const auto found = copies_.find(tensor.unsafeGetTensorImpl());
    return found == copies_.end() ? at::Tensor() : found->second;
  }

 private:
  struct Argument {
    at::Tensor tensor;
    bool written;
  };

  void add(const at::Tensor& tensor, bool written) {
    if (tensor.defined() && tensor.is_privateuseone() && tensor.layout() == at::kStrided && !tensor.is_nested() &&
        !tensor.is_quantized()) {
      arguments_.push_back({tensor, written});
    }
  }

  static bool may_overlap(const at::Tensor& a, const at::Tensor& b) {
    const at::MemOverlapStatus status = at::get_overlap_status(a, b);
    return status == at::MemOverlapStatus::Partial || status == at::MemOverlapStatus::TooHard;
  }

  void copy(const at::Tensor& tensor) {
    at::Tensor& made = copies_[tensor.unsafeGetTensorImpl()];
    if (made.defined()) {
      return;
    }
    const c10::Storage& storage = tensor.storage();
    at::Tensor& bytes = storages_[storage.unsafeGetStorageImpl()];
    if (!bytes.defined()) {
      const auto size = static_cast<int64_t>(storage.nbytes());
      c10::musa::check_sync("an operator that is computed on copies in host memory");
      bytes = at::musa::to_cpu(at::empty({0}, tensor.options().dtype(at::kByte)).set_(storage, 0, {size}, {1}));
    }
    made = at::empty({0}, tensor.options().device(at::kCPU))
               .set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
    made._set_conj(tensor.is_conj());
    made._set_neg(tensor.is_neg());
  }

  std::vector<Argument> arguments_;
  std::unordered_map<const c10::StorageImpl*, at::Tensor> storages_;
  std::unordered_map<const c10::TensorImpl*, at::Tensor> copies_;
};

IValue host_form(HostForms& forms, const IValue& value, HostTensor rule, bool written) {
  if (value.isTensor()) {
    return written ? forms.host_written(value.toTensor(), rule) : forms.host(value.toTensor(), rule);
  }
  if (value.isTensorList()) {
    const std::vector<at::Tensor> tensors = value.toTensorVector();
    return IValue(
        written ? forms.host_written(at::TensorList(tensors), rule) : forms.host(at::TensorList(tensors), rule));
  }
  if (value.isOptionalTensorList()) {
    return IValue(forms.host(value.toOptionalTensorList(), rule));
  }
  if (value.isDevice()) {
    return IValue(forms.host(value.toDevice()));
  }
  return value;
}

bool is_generator(const c10::Argument& argument) {
  const auto& type = *argument.type();
  if (type.kind() == c10::TypeKind::GeneratorType) {
    return true;
  }
  return type.kind() == c10::TypeKind::OptionalType &&
      type.expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::GeneratorType;
}

bool is_device(const c10::Argument& argument) {
  const auto& type = *argument.type();
  return type.kind() == c10::TypeKind::OptionalType &&
      type.expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::DeviceObjType;
}

void refuse_forbidden_copy(const std::string& name, bool float64) {
  TORCH_CHECK(
      on_copy().load(std::memory_order_relaxed) != OnCopy::Error, name,
      " would be served by the provider 'host-copy', with copies to the host and back, and TORCH_MUSA_FALLBACK="
      "error forbids that.\n",
      float64 ? c10::str("Fix: ", kUseFloat32, ", or set TORCH_MUSA_FALLBACK=warn.")
              : fix_by_pack(name, "install a pack that serves it, or set TORCH_MUSA_FALLBACK=warn."));
}

void report_copy(const std::string& name, size_t bytes, bool float64) {
  bool first = false;
  {
    Statistics& stats = statistics();
    std::lock_guard<std::mutex> lock(stats.mutex);
    FallbackCounts& row = stats.rows[name];
    first = row.copied_bytes == 0 && bytes != 0; // a call that copies nothing is not reported
    ++row.copy_calls;
    row.copied_bytes += bytes;
  }
  if (first && on_copy().load(std::memory_order_relaxed) == OnCopy::Warn) {
    const std::string fix =
        float64 ? c10::str("Fix: ", kUseFloat32) : fix_by_pack(name, "install a pack that serves it");
    // A shell command ends with its line, so that it can be copied.
    const char* const separator = fix.find('\n') == std::string::npos ? "; " : "\n";
    TORCH_WARN(
        name, " is served by the provider 'host-copy': its operands are copied to the host and its results back (",
        bytes,
        " bytes this time; said once per operator). The results are right; it is slow. Totals: python -m torch_musa "
        "ops, or torch.musa.ops.fallback_report(). ",
        fix, separator, "TORCH_MUSA_FALLBACK=allow silences this, =error makes it an error.");
  }
}

// On CPU tensors over the memory of the operands, which is not accessed: nothing is copied, waited for or captured.
void call_on_metadata(const OperatorHandle& op, Stack* stack) {
  HostAliases forms;
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    (*stack)[i] = host_form(forms, (*stack)[i], HostTensor::Any, /*written=*/false);
  }
  const c10::impl::ExcludeDispatchKeyGuard excluded(excluded_from_host_kernels());
  op.callBoxed(stack);
}

void require_cpu_kernel(const OperatorHandle& op) {
  static const DispatchKey computable[] = {
      DispatchKey::CPU,
      DispatchKey::SparseCPU,
      DispatchKey::SparseCsrCPU,
      DispatchKey::QuantizedCPU,
      DispatchKey::NestedTensorCPU,
      DispatchKey::CompositeExplicitAutograd,
      DispatchKey::CompositeExplicitAutogradNonFunctional,
      DispatchKey::CompositeImplicitAutograd,
      DispatchKey::CompositeImplicitAutogradNestedTensor};
  TORCH_CHECK_NOT_IMPLEMENTED(
      std::any_of(
          std::begin(computable), std::end(computable),
          [&op](DispatchKey key) { return op.hasKernelForDispatchKey(key); }),
      "The operator '", op.operator_name(),
      "' is not available for the musa device: no installed pack serves it, and "
      "torch has no CPU kernel that could.\nFix: install a pack that serves it (python -m torch_musa ops '",
      op.operator_name(),
      "' lists the packs that could), or move the operands to the CPU if the operator exists there.");
}

// Lists over several devices: one tensor at a time, each with the rule of its own operator. Returns whether it was called.
bool decompose_over_devices(const OperatorHandle& op, Stack* stack) {
  if (C10_LIKELY(op.operator_name().name.rfind("aten::_foreach_", 0) != 0) ||
      !op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
      !has_host_tensor({stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size()), stack->end()})) {
    return false;
  }
  op.callBoxedForDispatchKey(DispatchKey::CompositeExplicitAutograd, *stack);
  return true;
}

// Whether the call was served: operators that read only metadata neither compute nor copy.
bool serve_metadata(const OperatorHandle& op, Stack* stack) {
  require_cpu_kernel(op);
  if (!reads_only_metadata(op.schema().name())) {
    return false;
  }
  call_on_metadata(op, stack);
  return true;
}

void host_boxed(const OperatorHandle& op, Stack* stack) {
  if (!serve_metadata(op, stack)) {
    host_fallback.load(std::memory_order_relaxed)(op, stack);
  }
}

void copy_boxed(const OperatorHandle& op, Stack* stack) {
  if (serve_metadata(op, stack)) {
    return;
  }
  const std::string name = c10::toString(op.operator_name());
  if (C10_UNLIKELY(capturing())) {
    refuse_to_capture(
        name,
        "it is served by the provider 'host-copy', which computes on the host with copies to and from the device");
  }
  const size_t count = op.schema().arguments().size();
  if (is_metadata_view(op.schema(), {stack->end() - static_cast<std::ptrdiff_t>(count), stack->end()})) {
    HostAliases forms; // a view copies no data, and a copy would not be a view
    serve_on_host(op, stack, forms, "host-copy");
    return;
  }
  if (decompose_over_devices(op, stack)) {
    return;
  }
  const bool float64 = lacks_float64(op, *stack);
  refuse_forbidden_copy(name, float64);
  HostCopies forms;
  serve_on_host(op, stack, forms, "host-copy");
  report_copy(name, forms.copied_bytes(), float64);
}

void default_boxed(const OperatorHandle& op, Stack* stack) {
  if (default_is_host.load(std::memory_order_relaxed)) {
    host_boxed(op, stack);
  } else {
    copy_boxed(op, stack);
  }
}

} // namespace

void serve_without_pack(const OperatorHandle& op, Stack* stack) { default_boxed(op, stack); }

void serve_on_host(const OperatorHandle& op, Stack* stack, HostForms& forms, const char* provider) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string name = c10::toString(op.operator_name());
  const size_t count = schema.arguments().size();
  const size_t begin = stack->size() - count;

  if (decompose_over_devices(op, stack)) {
    return;
  }
  const std::vector<IValue> originals(stack->begin() + static_cast<std::ptrdiff_t>(begin), stack->end());
  if (op.hasTag(at::Tag::dynamic_output_shape) || op.hasTag(at::Tag::data_dependent_output)) {
    c10::musa::check_sync("an operator whose result depends on data");
  }
  std::optional<OverlappingCopies> overlapping;
  if (forms.copies() && schema.is_mutable()) {
    overlapping.emplace(schema, originals);
  }
  bool to_host = false;
  for (const bool written : {true, false}) {
    for (size_t i = 0; i < count; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      IValue& value = (*stack)[begin + i];
      if (is_generator(argument) || is_written(schema, argument) != written) {
        continue;
      }
      if (is_device(argument)) {
        // An explicit host device (copying a nested tensor to the CPU): the results are in host memory.
        to_host = to_host || (value.isDevice() && value.toDevice().is_cpu());
        value = IValue(forms.host(value.toOptional<at::Device>()));
        continue;
      }
      if (overlapping.has_value() && value.isTensor()) {
        if (at::Tensor copy = overlapping->find(value.toTensor()); copy.defined()) {
          (void)forms.host(value.toTensor().device());
          value = IValue(std::move(copy));
          continue;
        }
      }
      const HostTensor rule = host_tensor_rule(schema.name(), argument.name());
      // Among operators with musa tensors, only copies write to a host tensor.
      const bool refused = written && (rule == HostTensor::Number || rule == HostTensor::Value);
      value = host_form(forms, value, refused ? HostTensor::Refused : rule, written);
    }
  }
  if (reads_requires_grad(schema.name())) {
    for (size_t i = 0; i < count; ++i) {
      if (originals[i].isTensor() && originals[i].toTensor().requires_grad()) {
        (*stack)[begin + i].toTensor().set_requires_grad(true);
      }
    }
  }
  // Generators come last: the device, and so the default generator, is known only after the tensors.
  for (size_t i = 0; i < count; ++i) {
    if (is_generator(schema.arguments()[i])) {
      IValue& value = (*stack)[begin + i];
      value = IValue(*forms.host(value.toOptional<at::Generator>()));
    }
  }
  const std::vector<IValue> hosts(stack->begin() + static_cast<std::ptrdiff_t>(begin), stack->end());

  for (size_t i = 0; i < count; ++i) {
    const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && originals[i].isTensor() && originals[i].toTensor().defined() &&
        originals[i].toTensor().is_cpu()) {
      forms.keep_host_allocations();
    }
  }
  if (to_host) {
    forms.keep_host_allocations();
  }
  forms.enter();
  try {
    op.callBoxed(stack);
  } catch (const c10::NotImplementedError& error) {
    throw_unserved(error, name, provider);
  }

  for (size_t i = 0; i < count; ++i) {
    if (!is_written(schema, schema.arguments()[i])) {
      continue;
    }
    if (originals[i].isTensor()) {
      forms.write_back(originals[i].toTensor(), hosts[i].toTensor());
    } else if (originals[i].isTensorList()) {
      const auto before = originals[i].toTensorVector();
      const auto after = hosts[i].toTensorVector();
      forms.write_back(at::TensorList(before), after);
    } else if (originals[i].isOptionalTensorList()) {
      const auto before = originals[i].toOptionalTensorList().vec();
      const auto after = hosts[i].toOptionalTensorList().vec();
      for (size_t k = 0; k < before.size(); ++k) {
        forms.write_back(before[k], after[k]);
      }
    }
  }

  const size_t returned = schema.returns().size();
  for (size_t r = 0; r < returned; ++r) {
    IValue& value = (*stack)[stack->size() - returned + r];
    const c10::AliasInfo* alias = schema.returns()[r].alias_info();
    if (alias != nullptr && alias->isWrite()) {
      // The result is one of the arguments: return that very tensor.
      for (size_t i = 0; i < count; ++i) {
        const c10::AliasInfo* argument_alias = schema.arguments()[i].alias_info();
        if (argument_alias != nullptr && *argument_alias == *alias) {
          value = originals[i];
        }
      }
    } else if (to_host) {
      continue;
    } else if (value.isTensor()) {
      value = IValue(forms.device(std::move(value).toTensor()));
    } else if (value.isTensorList()) {
      value = IValue(forms.device(std::move(value).toTensorVector()));
    }
  }

  if (!forms.copies()) {
    Statistics& stats = statistics();
    std::lock_guard<std::mutex> lock(stats.mutex);
    ++stats.rows[name].host_calls;
  }
}

c10::KernelFunction fallback_kernel(const std::string& which) {
  return which == "host" ? c10::KernelFunction::makeFromBoxedFunction<&host_boxed>()
                         : c10::KernelFunction::makeFromBoxedFunction<&copy_boxed>();
}

bool has_host() { return host_fallback.load(std::memory_order_relaxed) != nullptr && c10::musa::host_addressable(); }

void set_default_fallback(const std::string& which) { default_is_host = which == "host"; }

static std::vector<c10::RegistrationHandleRAII>& registrations_of_layouts() {
  static auto& registrations = *new std::vector<c10::RegistrationHandleRAII>();
  return registrations;
}

void withdraw_fallbacks_of_layouts() { registrations_of_layouts().clear(); }

void install_fallbacks() {
  (void)on_copy(); // a malformed TORCH_MUSA_FALLBACK is reported now instead of at a later operator
  static auto& of_keys = *new std::vector<c10::RegistrationHandleRAII>();
  std::vector<c10::RegistrationHandleRAII>& of_layouts = registrations_of_layouts();
  if (!of_layouts.empty()) {
    return;
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  // (torch's key, ours): layouts other than strided are served only by the boxed kernels.
  const std::pair<DispatchKey, DispatchKey> layouts[] = {
      {DispatchKey::SparseCPU, DispatchKey::SparsePrivateUse1},
      {DispatchKey::SparseCsrCPU, DispatchKey::SparseCsrPrivateUse1},
      {DispatchKey::QuantizedCPU, DispatchKey::QuantizedPrivateUse1},
      {DispatchKey::NestedTensorCPU, DispatchKey::NestedTensorPrivateUse1}};
  if (of_keys.empty()) {
    of_keys.push_back(dispatcher.registerFallback(
        DispatchKey::PrivateUse1, c10::KernelFunction::makeFromBoxedFunction<&default_boxed>(), "torch_musa fallback"));
    for (const auto& [cpu_key, musa_key] : layouts) {
      of_keys.push_back(dispatcher.registerFallback(
          musa_key, c10::KernelFunction::makeFromBoxedFunction<&default_boxed>(), "torch_musa fallback"));
    }
  }
  // A composite kernel of torch has precedence over a backend fallback. If torch's CPU has its own kernel for a layout, the
  // composite one is for other layouts or only raises, so ours must be registered for the same key.
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto handle = dispatcher.findSchema(name);
    if (!handle.has_value()) {
      continue;
    }
    for (const auto& [cpu_key, musa_key] : layouts) {
      if (handle->hasKernelForDispatchKey(cpu_key) && !handle->hasKernelForDispatchKey(musa_key)) {
        of_layouts.push_back(dispatcher.registerImpl(
            name, musa_key, c10::KernelFunction::makeFromBoxedFunction<&default_boxed>(), std::nullopt, nullptr,
            "torch_musa fallback"));
      }
    }
  }
}

FallbackCounts fallback_counts(const std::string& op) {
  Statistics& stats = statistics();
  std::lock_guard<std::mutex> lock(stats.mutex);
  const auto row = stats.rows.find(op);
  return row == stats.rows.end() ? FallbackCounts{} : row->second;
}

std::vector<FallbackReportRow> fallback_report() {
  std::vector<FallbackReportRow> report;
  Statistics& stats = statistics();
  {
    std::lock_guard<std::mutex> lock(stats.mutex);
    for (const auto& [op, row] : stats.rows) {
      if (row.copy_calls != 0) {
        report.push_back({op, row.copy_calls, row.copied_bytes});
      }
    }
  }
  std::sort(report.begin(), report.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return report;
}

void set_host_fallback(HostFallback* kernel) { host_fallback.store(kernel, std::memory_order_relaxed); }

void set_pack_advice(PackAdvice advice) { pack_advice() = std::move(advice); }

void throw_unserved(const c10::NotImplementedError& error, const std::string& op, const char* provider) {
  throw c10::NotImplementedError(
      c10::str(
          error.what_without_backtrace(), "\n", op, " was computed by torch's CPU kernel (provider '", provider,
          "'), because no installed op pack serves this call.\n",
          fix_by_pack(op, "convert the operands to a dtype that this kernel supports")),
      error.backtrace());
}

void set_fallback_mode(const std::string& mode) { on_copy() = parse_mode(mode, "The fallback mode"); }

} // namespace musa_runtime
