// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// musa_compile._C: what modules that Inductor generates call for each buffer and each kernel.
#include <Python.h>

#include <ATen/ATen.h>
#include <c10/musa/MUSAException.h>
#include <c10/musa/MUSAGraphsC10Utils.h>
#include <c10/musa/MUSAStream.h>
#include <host_kernels/kernel_trace.h>
#include <structmember.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/library.h>

#include <string>

namespace {

// Waits until the work that is queued on the current stream of a device has ended. Without the GIL, for that work may be a
// function in Python.
void wait_for_stream(c10::DeviceIndex device) {
  const c10::musa::MUSAStream stream = c10::musa::getCurrentMUSAStream(device);
  if (!stream.query()) [[unlikely]] {
    const pybind11::gil_scoped_release released;
    stream.synchronize();
  }
}

// Returns false with a Python exception.
bool read(PyObject* tuple, c10::SmallVectorImpl<int64_t>& out) {
  if (!PyTuple_Check(tuple)) {
    PyErr_SetString(PyExc_TypeError, "empty_strided: expected a tuple of ints");
    return false;
  }
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  for (Py_ssize_t i = 0; i < size; ++i) {
    const long long value = PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i));
    if (value == -1 && PyErr_Occurred() != nullptr) {
      return false;
    }
    out.push_back(value);
  }
  return true;
}

PyObject* empty_strided(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  HANDLE_TH_ERRORS
  if (count != 4 || !THPDtype_Check(arguments[2])) {
    PyErr_SetString(PyExc_TypeError, "empty_strided: expected (size, stride, dtype, device index)");
    return nullptr;
  }
  c10::SmallVector<int64_t, 8> size, stride;
  if (!read(arguments[0], size) || !read(arguments[1], stride)) {
    return nullptr;
  }
  const long index = PyLong_AsLong(arguments[3]);
  if (index == -1 && PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  const auto dtype = reinterpret_cast<THPDtype*>(arguments[2])->scalar_type;
  const c10::Device device(c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(index));
  return THPVariable_Wrap(at::empty_strided(size, stride, at::TensorOptions().dtype(dtype).device(device)));
  END_HANDLE_TH_ERRORS
}

// A compiled kernel. A call of it makes no frame of Python.
struct Kernel {
  PyObject_HEAD
  PyObject* function; // runs it
  PyObject* record;   // records it into the graph that is being captured
  PyObject* name;     // str
  int device;
};

PyObject* kernel_new(PyTypeObject* type, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"function", "record", "name", "device", nullptr};
  PyObject *function = nullptr, *record = nullptr, *name = nullptr;
  int device = 0;
  if (PyArg_ParseTupleAndKeywords(
          arguments, keywords, "OOUi", const_cast<char**>(names), &function, &record, &name, &device) == 0) {
    return nullptr;
  }
  auto* kernel = reinterpret_cast<Kernel*>(type->tp_alloc(type, 0));
  if (kernel != nullptr) {
    Py_INCREF(function);
    Py_INCREF(record);
    Py_INCREF(name);
    kernel->function = function;
    kernel->record = record;
    kernel->name = name;
    kernel->device = device;
  }
  return reinterpret_cast<PyObject*>(kernel);
}

void kernel_free(PyObject* self) {
  auto* kernel = reinterpret_cast<Kernel*>(self);
  Py_XDECREF(kernel->function);
  Py_XDECREF(kernel->record);
  Py_XDECREF(kernel->name);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* kernel_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  HANDLE_TH_ERRORS
  auto* kernel = reinterpret_cast<Kernel*>(self);
  if (c10::musa::capturing()) [[unlikely]] {
    return PyObject_Call(kernel->record, arguments, keywords);
  }
  const auto device = static_cast<c10::DeviceIndex>(kernel->device);
  wait_for_stream(device);
  if (!musa_runtime::kernel_tracing()) [[likely]] {
    return PyObject_Call(kernel->function, arguments, keywords);
  }
  const int64_t begin = musa_runtime::begin_traced_kernel();
  PyObject* result = PyObject_Call(kernel->function, arguments, keywords);
  musa_runtime::end_traced_kernel(begin, nullptr, PyUnicode_AsUTF8(kernel->name), device);
  return result;
  END_HANDLE_TH_ERRORS
}

PyMemberDef kernel_members[] = {
    {"name", T_OBJECT, offsetof(Kernel, name), READONLY, "The name of the kernel, as in profiles."},
    {"device", T_INT, offsetof(Kernel, device), READONLY, "The index of the musa device that it works on."},
    {nullptr, 0, 0, 0, nullptr}};

PyType_Slot kernel_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(&kernel_new)},
    {Py_tp_dealloc, reinterpret_cast<void*>(&kernel_free)},
    {Py_tp_call, reinterpret_cast<void*>(&kernel_call)},
    {Py_tp_members, kernel_members},
    {0, nullptr}};

PyType_Spec kernel_spec = {"musa_compile._C.Kernel", sizeof(Kernel), 0, Py_TPFLAGS_DEFAULT, kernel_slots};

// What a graph replays in place of a call: the operator has kernels for the CPU and for meta tensors alone, so the runtime's fallback
// records it with the memory of its operands.
void run_kernel(int64_t address, at::TensorList tensors, at::IntArrayRef numbers) {
  c10::SmallVector<void*, 16> pointers;
  for (const at::Tensor& tensor : tensors) {
    pointers.push_back(tensor.data_ptr());
  }
  reinterpret_cast<void (*)(void* const*, const int64_t*)>(address)(pointers.data(), numbers.data());
}

void run_kernel_meta(int64_t, at::TensorList, at::IntArrayRef) {}

// The same values in memory of their own: a mark in graphs that a result is kept instead of computed for each user.
at::Tensor realized(const at::Tensor& x) {
  return x.clone();
}

TORCH_LIBRARY(musa_compile, m) {
  m.def("run_kernel(int address, Tensor(a!)[] tensors, int[] numbers) -> ()");
  m.def("realized(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(musa_compile, CompositeExplicitAutograd, m) {
  m.impl("realized", &realized);
}
TORCH_LIBRARY_IMPL(musa_compile, CPU, m) {
  m.impl("run_kernel", &run_kernel);
}
TORCH_LIBRARY_IMPL(musa_compile, Meta, m) {
  m.impl("run_kernel", &run_kernel_meta);
}

PyMethodDef methods[] = {
    {"empty_strided", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(&empty_strided)), METH_FASTCALL,
     "empty_strided(size, stride, dtype, device index): a tensor on musa."},
    {nullptr, nullptr, 0, nullptr}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

} // namespace

PyMODINIT_FUNC PyInit__C() {
  PyObject* module = PyModule_Create(&definition);
  PyObject* type = module != nullptr ? PyType_FromSpec(&kernel_spec) : nullptr;
  if (type == nullptr || PyModule_AddObject(module, "Kernel", type) != 0) {
    Py_XDECREF(type);
    Py_XDECREF(module);
    return nullptr;
  }
  return module;
}
