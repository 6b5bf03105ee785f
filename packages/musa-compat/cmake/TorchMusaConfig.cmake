# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# find_package(TorchMusa) defines
#   torch_musa                 a target with the runtime, torch and the headers torch_musa/csrc/...
#   TorchMusa_LIBRARIES        that target
#   TorchMusa_INCLUDE_DIRS     its include folders
# torch_musa.core.cmake_prefix_path is the folder above this one. New projects should use find_package(musa_runtime) and
# musa::musa_runtime.
include(CMakeFindDependencyMacro)
get_filename_component(_torch_musa "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
get_filename_component(_torch_musa_site "${_torch_musa}/.." ABSOLUTE)
if(NOT musa_runtime_DIR AND EXISTS "${_torch_musa_site}/musa_runtime/share/cmake/musa_runtime")
  set(musa_runtime_DIR "${_torch_musa_site}/musa_runtime/share/cmake/musa_runtime")
endif()
if(NOT musa_runtime_DIR)
  message(FATAL_ERROR
    "TorchMusa: there is no musa_runtime beside ${_torch_musa}.\n"
    "Likely cause: musa-compat and musa-runtime are installed in different environments.\n"
    "Fix: install both in one environment; python -m torch_musa doctor prints the command")
endif()
find_dependency(musa_runtime)
if(NOT TARGET torch_musa)
  add_library(torch_musa INTERFACE IMPORTED)
  set_target_properties(torch_musa PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_torch_musa_site};${_torch_musa}/share/generated_cuda_compatible/include"
    INTERFACE_LINK_LIBRARIES musa::musa_runtime)
endif()
set(TorchMusa_LIBRARIES torch_musa)
get_target_property(TorchMusa_INCLUDE_DIRS torch_musa INTERFACE_INCLUDE_DIRECTORIES)
unset(_torch_musa)
unset(_torch_musa_site)
