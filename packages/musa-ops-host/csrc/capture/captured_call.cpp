// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
#include "captured_call.h"

#include "call_recorder.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/enum_tag.h>
#include <ATen/core/stack.h>
#include <ATen/musa/MUSAGeneratorImpl.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/COW.h>
#include <c10/musa/MUSACachingAllocator.h>
#include <c10/musa/MUSAGuard.h>
#include <musa_runtime/graph_capture.h>
#include <musa_runtime/host/aliases.h>
#include <musa_runtime/host/host_arguments.h>
#include <musa_runtime/host/host_seed.h>

#include <algorithm>
#include <mutex>
#include <set>

namespace musa_ops_host {
namespace {

using c10::DeviceType;
using c10::DispatchKey;
using c10::DispatchKeySet;
using c10::IValue;
using c10::OperatorHandle;
using musa_runtime::host_seed;
using musa_runtime::host_tensor_rule;
using musa_runtime::HostTensor;
using musa_runtime::HostTensorCheck;
using musa_runtime::kDrawnPerCall;
using musa_runtime::refuse_to_capture;
using torch::jit::Stack;

const DispatchKeySet kAboveBackends = c10::autograd_dispatch_keyset_with_ADInplaceOrView |
    DispatchKeySet({DispatchKey::AutocastCPU, DispatchKey::AutocastPrivateUse1});

// Returns a tensor over `storage` with the shape of `tensor`.
at::Tensor shaped_like(const at::Tensor& tensor, const c10::Storage& storage, DispatchKey key) {
  at::Tensor made = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(storage), DispatchKeySet(key), tensor.dtype());
  c10::TensorImpl* impl = made.unsafeGetTensorImpl();
  impl->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  made._set_conj(tensor.is_conj());
  made._set_neg(tensor.is_neg());
  return made;
}

// Returns a CPU storage over memory that it does not own.
c10::Storage storage_over(void* data, size_t nbytes) {
  return c10::Storage(
      c10::make_intrusive<c10::StorageImpl>(
          c10::StorageImpl::use_byte_size_t(), nbytes, c10::DataPtr(data, c10::Device(DeviceType::CPU)),
          c10::GetAllocator(DeviceType::CPU), /*resizable=*/true));
}

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && !tensor.is_quantized() && !tensor.is_nested();
}

// The meta and host forms of a call's tensors. Tensors that share a storage share it in each form, and a tensor that occurs
// twice stays one tensor: kernels check both.
class Forms {
 public:
  Forms(const std::string& op, c10::DeviceIndex device) : op_(op), device_(device) {}

  at::Tensor meta(const at::Tensor& tensor, HostTensor rule = HostTensor::Refused) {
    if (!tensor.defined()) {
      return tensor;
    }
    for (const Form& form : forms_) {
      if (form.tensor.is_same(tensor)) {
        return form.meta;
      }
    }
    check(tensor, rule);
    if (tensor.is_cpu() && tensor.dim() == 0) {
      // A CPU tensor may be passed together with meta tensors, as with device tensors; a wrapped Python number must be.
      return forms_.emplace_back(Form{tensor, tensor, {}}).meta;
    }
    return forms_.emplace_back(Form{tensor, shaped_like(tensor, meta_storage(tensor), DispatchKey::Meta), {}}).meta;
  }

  // Called after the meta kernel, when out= arguments have their size.
  at::Tensor host(const at::Tensor& tensor) {
    if (!tensor.defined()) {
      return tensor;
    }
    for (Form& form : forms_) {
      if (form.tensor.is_same(tensor)) {
        if (!form.host.defined()) {
          // A host value is a constant of the graph, like the arguments of a kernel.
          form.host = tensor.is_cpu() ? tensor.clone() : shaped_like(tensor, host_storage(tensor), DispatchKey::CPU);
          if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) {
            form.host.unsafeGetTensorImpl()->set_wrapped_number(true);
          }
        }
        return form.host;
      }
    }
    TORCH_INTERNAL_ASSERT(false, "a tensor without a meta form");
  }

  // Applies to an out= argument the size that the meta kernel gave it.
  void follow_meta(const at::Tensor& tensor) {
    const at::Tensor shape = meta(tensor);
    if (tensor.defined() && (shape.sizes() != tensor.sizes() || shape.strides() != tensor.strides())) {
      musa_runtime::restride(tensor, shape.sizes(), shape.strides());
    }
  }

  // The argument whose memory a result of the meta kernel shares; null if it is new memory.
  const at::Tensor* shown_by(const at::Tensor& result) const {
    for (const Form& form : forms_) {
      if (form.meta.unsafeGetTensorImpl()->unsafe_storage().is_alias_of(
              result.unsafeGetTensorImpl()->unsafe_storage())) {
        return &form.tensor;
      }
    }
    return nullptr;
  }

 private:
  struct Form {
    at::Tensor tensor;
    at::Tensor meta;
    at::Tensor host;
  };

  void check(const at::Tensor& tensor, HostTensor rule) {
    if (!is_plain(tensor)) {
      refuse_to_capture(op_, "one of its operands has a sparse, quantized or nested layout");
    }
    if (tensor.is_cpu()) {
      host_tensors_.admit(tensor, rule, c10::Device(DeviceType::PrivateUse1, device_));
      return;
    }
    if (tensor.device() != c10::Device(DeviceType::PrivateUse1, device_)) {
      refuse_to_capture(
          op_,
          c10::str(
              "it has an operand on ", tensor.device(),
              ", and the graph is captured on musa:", static_cast<int>(device_)));
    }
  }

  c10::Storage meta_storage(const at::Tensor& tensor) const {
    for (const Form& form : forms_) {
      if (form.tensor.is_alias_of(tensor)) {
        return form.meta.unsafeGetTensorImpl()->unsafe_storage();
      }
    }
    return c10::Storage(
        c10::make_intrusive<c10::StorageImpl>(
            c10::StorageImpl::use_byte_size_t(), tensor.storage().nbytes(),
            c10::DataPtr(nullptr, c10::Device(DeviceType::Meta)), c10::GetAllocator(DeviceType::Meta),
            /*resizable=*/true));
  }

  c10::Storage host_storage(const at::Tensor& tensor) const {
    for (const Form& form : forms_) {
      if (form.host.defined() && form.tensor.is_alias_of(tensor)) {
        return form.host.unsafeGetTensorImpl()->unsafe_storage();
      }
    }
    c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
    if (C10_UNLIKELY(c10::impl::cow::is_cow_data_ptr(storage->data_ptr()))) {
      (void)storage->mutable_data(); // a lazy clone gets its own memory before a kernel writes to it
    }
    return storage_over(storage->_mutable_data_ptr_no_checks().get(), storage->nbytes());
  }

  const std::string& op_;
  c10::DeviceIndex device_;
  HostTensorCheck host_tensors_;
  std::vector<Form> forms_;
};

template <typename Convert>
IValue converted(const IValue& value, const Convert& convert) {
  if (value.isTensor()) {
    return convert(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& each : value.toTensorVector()) {
      list.push_back(convert(each));
    }
    return IValue(list);
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
      list.push_back(each.has_value() ? std::make_optional(convert(*each)) : std::nullopt);
    }
    return IValue(list);
  }
  return value;
}

bool is_of_kind(const c10::Argument& argument, c10::TypeKind kind) {
  const auto& type = *argument.type();
  return type.kind() == kind ||
      (type.kind() == c10::TypeKind::OptionalType &&
       type.expectRef<c10::OptionalType>().getElementType()->kind() == kind);
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

// The shapes of the results. Empty if the operator only changes its arguments and has no meta kernel.
std::optional<Stack> shapes_of_results(
    const OperatorHandle& op, const std::string& name, const std::vector<IValue>& arguments, Forms& forms) {
  const c10::FunctionSchema& schema = op.schema();
  Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (is_of_kind(schema.arguments()[i], c10::TypeKind::GeneratorType)) {
      stack.emplace_back();
    } else if (is_of_kind(schema.arguments()[i], c10::TypeKind::DeviceObjType)) {
      stack.emplace_back(c10::Device(DeviceType::Meta));
    } else {
      const HostTensor rule = host_tensor_rule(schema.name(), schema.arguments()[i].name());
      stack.push_back(converted(arguments[i], [&](const at::Tensor& each) { return forms.meta(each, rule); }));
    }
  }
  try {
    const c10::impl::ExcludeDispatchKeyGuard below(kAboveBackends);
    op.callBoxed(&stack);
  } catch (const c10::NotImplementedError&) {
    const bool only_arguments = std::all_of(schema.returns().begin(), schema.returns().end(), is_written);
    if (!only_arguments) {
      refuse_to_capture(
          name, "torch has no meta kernel for it, so that the shape of its result is known only once it has run");
    }
    return std::nullopt;
  }
  return stack;
}

// Returns new memory of the graph, and the CPU tensor through which replays fill it.
std::pair<at::Tensor, at::Tensor> new_result(const at::Tensor& shape, std::vector<OfferedMemory>& offers) {
  at::Tensor made = at::detail::empty_strided_generic(
      shape.sizes(), shape.strides(), c10::musa::MUSACachingAllocator::get(), DispatchKeySet(DispatchKey::PrivateUse1),
      shape.scalar_type());
  made._set_conj(shape.is_conj());
  made._set_neg(shape.is_neg());
  const c10::Storage& storage = made.storage();
  void* data = storage.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks().get();
  at::Tensor host = shaped_like(made, storage_over(data, storage.nbytes()), DispatchKey::CPU);
  if (data != nullptr) {
    offers.push_back({data, storage.nbytes()});
  }
  return {std::move(made), std::move(host)};
}

// Turns the meta kernel's results into the call's: arguments, views of arguments, or new tensors.
class Results {
 public:
  Results(const std::string& op, const Forms& forms, RecordedCall& call) : op_(op), forms_(forms), call_(call) {}

  IValue take(const IValue& shape) {
    if (shape.isTensor()) {
      return tensor(shape.toTensor());
    }
    if (shape.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& each : shape.toTensorVector()) {
        list.push_back(tensor(each));
      }
      return IValue(list);
    }
    if (!shape.isNone()) {
      refuse_to_capture(op_, "it returns a value to the host that the device has not computed yet");
    }
    call_.results.emplace_back();
    return shape;
  }

  // Skips an argument that the operator returns; a list counts once for each of its tensors.
  void skip(const IValue& argument) {
    call_.results.resize(call_.results.size() + (argument.isTensorList() ? argument.toTensorList().size() : 1));
  }

  // Whether no memory was allocated, so that there is nothing to compute.
  bool all_views() const { return taken_ != 0 && new_ == 0; }

 private:
  at::Tensor tensor(const at::Tensor& shape) {
    ++taken_;
    if (!shape.defined()) {
      call_.results.emplace_back();
      return shape;
    }
    if (const at::Tensor* base = forms_.shown_by(shape)) {
      call_.results.emplace_back();
      return shaped_like(shape, base->storage(), DispatchKey::PrivateUse1);
    }
    ++new_;
    auto [made, host] = new_result(shape, call_.offers);
    call_.results.push_back(std::move(host));
    return made;
  }

  const std::string& op_;
  const Forms& forms_;
  RecordedCall& call_;
  size_t taken_ = 0;
  size_t new_ = 0;
};

// Calls torch's CPU kernel once on zeros in host memory, so that an unsupported dtype raises while the graph is captured,
// when another provider can still serve the call; in a replay it would be too late. Every CPU kernel supports float32 and
// float64 where a device kernel does, so calls with only those are not tried.
void try_dtypes(const OperatorHandle& op, const std::string& name, const std::vector<IValue>& arguments) {
  std::string key = name;
  bool unusual = false;
  for (const IValue& argument : arguments) {
    (void)converted(argument, [&](const at::Tensor& each) {
      if (each.defined()) {
        key += c10::str(' ', each.scalar_type());
        unusual = unusual || (each.scalar_type() != at::kFloat && each.scalar_type() != at::kDouble);
      }
      return each;
    });
  }
  static std::mutex& mutex = *new std::mutex(); // guards taken; nothing is called under it
  static std::set<std::string>& taken = *new std::set<std::string>();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    if (!unusual || taken.count(key) != 0) {
      return;
    }
  }
  Stack stack;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::Argument& argument = op.schema().arguments()[i];
    if (is_of_kind(argument, c10::TypeKind::GeneratorType)) {
      stack.emplace_back(at::make_generator<at::CPUGeneratorImpl>());
    } else if (is_of_kind(argument, c10::TypeKind::DeviceObjType)) {
      stack.emplace_back(c10::Device(DeviceType::CPU));
    } else {
      stack.push_back(converted(arguments[i], [](const at::Tensor& each) {
        if (!each.defined() || !is_plain(each)) {
          return each;
        }
        return each.is_cpu() ? each.clone() : at::zeros(each.sizes(), each.options().device(at::kCPU));
      }));
    }
  }
  try {
    const c10::impl::ExcludeDispatchKeyGuard below(kAboveBackends);
    op.callBoxed(&stack);
  } catch (const c10::NotImplementedError&) {
    throw;
  } catch (const c10::Error&) {
    return; // zeros are invalid values for it (a singular matrix), which proves nothing about its dtypes
  }
  const std::lock_guard<std::mutex> lock(mutex);
  taken.insert(std::move(key));
}

RecordedCall::Draw draw_from(const std::optional<at::Generator>& given, c10::DeviceIndex device) {
  at::Generator source =
      given.has_value() && given->defined() ? *given : at::musa::detail::getDefaultMUSAGenerator(device);
  TORCH_CHECK(
      source.device().type() == DeviceType::PrivateUse1, "Expected a 'musa' device type for generator but found '",
      source.device().type(), "'");
  at::PhiloxMusaState state;
  {
    std::lock_guard<std::mutex> lock(source.mutex());
    state = at::check_generator<at::MUSAGeneratorImpl>(source)->philox_musa_state(kDrawnPerCall);
  }
  return {at::make_generator<at::CPUGeneratorImpl>(), state.seed_.ptr, state.offset_.ptr, state.offset_intragraph_};
}

void record_boxed(const OperatorHandle& op, Stack* stack) { record_call(op, stack); }

} // namespace

const c10::KernelFunction& recording_kernel() {
  static const c10::KernelFunction kernel = c10::KernelFunction::makeFromBoxedFunction<&record_boxed>();
  return kernel;
}

void record_call(const OperatorHandle& op, Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const std::string name = c10::toString(op.operator_name());
  if (op.hasTag(at::Tag::dynamic_output_shape)) {
    refuse_to_capture(name, "the shape of its result depends on the values of its operands");
  }
  if (op.hasTag(at::Tag::data_dependent_output)) {
    refuse_to_capture(name, "it reads values on the host that the device has not computed yet");
  }
  CallRecorder& recorder = CallRecorder::of_current_capture();
  const size_t count = schema.arguments().size();
  const std::vector<IValue> arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());

  try_dtypes(op, name, arguments);

  const c10::musa::MUSAGuard guard(recorder.device());
  Forms forms(name, recorder.device());
  const std::optional<Stack> shapes = shapes_of_results(op, name, arguments, forms);

  bool writes = false;
  for (size_t i = 0; i < count; ++i) {
    if (is_written(schema.arguments()[i])) {
      writes = true;
      (void)converted(arguments[i], [&](const at::Tensor& each) {
        if (each.defined() && each.is_cpu()) {
          refuse_to_capture(name, "it writes to a host tensor");
        }
        forms.follow_meta(each);
        return each;
      });
    }
  }

  RecordedCall call(op);
  Results results(name, forms, call);
  Stack returned;
  for (size_t r = 0; r < schema.returns().size(); ++r) {
    if (!is_written(schema.returns()[r])) {
      returned.push_back(results.take((*shapes)[r]));
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      const c10::AliasInfo* alias = schema.arguments()[i].alias_info();
      if (alias != nullptr && *alias == *schema.returns()[r].alias_info()) {
        returned.push_back(arguments[i]);
        results.skip(arguments[i]);
        break;
      }
    }
  }

  if (writes || !results.all_views()) {
    for (size_t i = 0; i < count; ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      if (is_of_kind(argument, c10::TypeKind::GeneratorType)) {
        call.draw = draw_from(arguments[i].toOptional<at::Generator>(), recorder.device());
        call.arguments.emplace_back(call.draw->generator);
      } else if (is_of_kind(argument, c10::TypeKind::DeviceObjType)) {
        call.arguments.emplace_back(c10::Device(DeviceType::CPU));
      } else {
        call.arguments.push_back(converted(arguments[i], [&](const at::Tensor& each) { return forms.host(each); }));
      }
    }
    recorder.append(std::move(call), c10::musa::getCurrentMUSAStream());
  }
  torch::jit::drop(*stack, count);
  for (IValue& value : returned) {
    stack->push_back(std::move(value));
  }
}

} // namespace musa_ops_host
