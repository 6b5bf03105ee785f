// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// The error for AOTInductor packages that are loaded without libmusa_aoti.so, the library of musa-compile that runs their
// models. torch's package loader calls the function that is registered last. libmusa_aoti.so depends on this library, so it
// is initialised later and its function replaces this one.

#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

namespace torch::inductor {
namespace {

std::unique_ptr<AOTIModelContainerRunner> refuse(
    const std::string& library, size_t, const std::string&, const std::string&, const bool) {
  TORCH_CHECK(
      false, "The package holds a model that is compiled for musa (", library,
      "), and libmusa_aoti.so, which runs such models, is not loaded.\n"
      "Likely causes: musa-compile is not installed, or its pack is switched off or failed to load; a C++ program is not linked "
      "with the library.\n"
      "Fix: install musa-compile, the extra torch-musa[compile]; if it is installed, python -m torch_musa doctor names the cause; in "
      "the CMake project of a program find_package(musa_compile) and target_link_libraries(<program> PRIVATE musa::musa_aoti)");
}

RegisterAOTIModelRunner registration("musa", &refuse);

} // namespace
} // namespace torch::inductor
