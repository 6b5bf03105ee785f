# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# The installed torch as imported targets:
#   musa::torch          headers, libtorch_cpu.so and libc10.so
#   musa::torch_python   musa::torch and libtorch_python.so, for extension modules
# and MUSA_TORCH_HOME, the folder of the torch package; set it beforehand to choose a torch, otherwise Python finds it;
# MUSA_TORCH_MINOR, as "2.13".
#
# Not find_package(Torch): with a CUDA build of torch, the default of the package index, it requires the CUDA toolkit
# and fails without one. Nothing here is compiled for CUDA.
include_guard(DIRECTORY)

# The minors that the packages can be built for.
set(MUSA_OLDEST_TORCH 2.11)
set(MUSA_NEWEST_TORCH 2.15)

# Sets the minor of the torch in a folder, and ends the configuration if the packages cannot be built for it, or if
# the version of the wheel being built names another one.
function(_musa_check_torch home result)
  file(READ "${home}/include/torch/headeronly/version.h" text)
  set(minor "")
  foreach(part MAJOR MINOR)
    if(NOT text MATCHES "#define TORCH_VERSION_${part} ([0-9]+)")
      message(FATAL_ERROR
        "${home}/include/torch/headeronly/version.h defines no TORCH_VERSION_${part}.\n"
        "Likely cause: the torch there is older than ${MUSA_OLDEST_TORCH}, or its installation is incomplete.\n"
        "Fix: pip install --force-reinstall 'torch>=${MUSA_OLDEST_TORCH}'")
    endif()
    list(APPEND minor "${CMAKE_MATCH_1}")
  endforeach()
  list(JOIN minor "." minor)
  if(minor VERSION_LESS MUSA_OLDEST_TORCH OR minor VERSION_GREATER MUSA_NEWEST_TORCH)
    message(FATAL_ERROR
      "The torch at ${home} is ${minor}; this version can be built for torch ${MUSA_OLDEST_TORCH} to ${MUSA_NEWEST_TORCH}.\n"
      "Likely causes: MUSA_TORCH_HOME or the environment of the build has another torch than intended.\n"
      "Fix: pip install 'torch==${MUSA_NEWEST_TORCH}.*' (or another minor in that range), then build again")
  endif()
  if(SKBUILD_PROJECT_VERSION_FULL MATCHES "\\+torch([0-9]+\\.[0-9]+)" AND NOT CMAKE_MATCH_1 STREQUAL minor)
    message(FATAL_ERROR
      "The wheel's version ${SKBUILD_PROJECT_VERSION_FULL} names torch ${CMAKE_MATCH_1}, and the torch at ${home} is ${minor}.\n"
      "Likely cause: MUSA_TORCH_HOME names another torch than the one of the environment that builds.\n"
      "Fix: leave MUSA_TORCH_HOME unset, or pip install 'torch==${minor}.*' into that environment")
  endif()
  set(${result} "${minor}" PARENT_SCOPE)
endfunction()

if(NOT TARGET musa::torch)
  if(NOT MUSA_TORCH_HOME)
    if(NOT Python_EXECUTABLE)
      find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
    endif()
    # Without importing torch, which would autoload the packages that are being rebuilt.
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c
        "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent)"
      OUTPUT_VARIABLE MUSA_TORCH_HOME OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE _musa_torch_missing ERROR_QUIET)
    if(_musa_torch_missing)
      message(FATAL_ERROR
        "torch is not installed for ${Python_EXECUTABLE}, and these libraries are compiled against the torch they run with.\n"
        "Fix: pip install 'torch==${MUSA_NEWEST_TORCH}.*' (or a minor from ${MUSA_OLDEST_TORCH} on), then build with pip install --no-build-isolation --no-deps (or: python3 tools/dev.py setup)")
    endif()
    unset(_musa_torch_missing)
  endif()
  foreach(_musa_needed include/torch/library.h include/torch/headeronly/version.h lib/libtorch_cpu.so lib/libc10.so lib/libtorch_python.so)
    if(NOT EXISTS "${MUSA_TORCH_HOME}/${_musa_needed}")
      message(FATAL_ERROR
        "The torch at ${MUSA_TORCH_HOME} has no ${_musa_needed}.\n"
        "Likely causes: MUSA_TORCH_HOME names another folder than that of the torch package; the installation is incomplete.\n"
        "Fix: pip install --force-reinstall 'torch==${MUSA_NEWEST_TORCH}.*' (or a minor from ${MUSA_OLDEST_TORCH} on)")
    endif()
  endforeach()
  unset(_musa_needed)
  _musa_check_torch("${MUSA_TORCH_HOME}" MUSA_TORCH_MINOR)
  message(STATUS "torch: ${MUSA_TORCH_MINOR}, ${MUSA_TORCH_HOME}")

  add_library(musa::c10 SHARED IMPORTED)
  set_target_properties(musa::c10 PROPERTIES IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libc10.so")

  add_library(musa::torch SHARED IMPORTED)
  set_target_properties(musa::torch PROPERTIES
    IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libtorch_cpu.so"
    INTERFACE_INCLUDE_DIRECTORIES "${MUSA_TORCH_HOME}/include;${MUSA_TORCH_HOME}/include/torch/csrc/api/include"
    # torch's wheels are built with these; without them its headers hide the classes of torch.distributed.
    INTERFACE_COMPILE_DEFINITIONS "USE_DISTRIBUTED;USE_C10D_GLOO;USE_RPC;USE_TENSORPIPE"
    INTERFACE_LINK_LIBRARIES musa::c10
    # GCC collects garbage once a file uses 128 MB, which torch's headers alone exceed; the memory is freed at the end of the
    # file anyway. Collecting at 1 GB saves an eighth of the time.
    INTERFACE_COMPILE_OPTIONS "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>"
    # The CUDA libraries that a CUDA build of libtorch_cpu.so needs are in separate wheels, not on the linker's path.
    INTERFACE_LINK_OPTIONS "LINKER:--allow-shlib-undefined")

  add_library(musa::torch_python SHARED IMPORTED)
  set_target_properties(musa::torch_python PROPERTIES
    IMPORTED_LOCATION "${MUSA_TORCH_HOME}/lib/libtorch_python.so"
    INTERFACE_LINK_LIBRARIES musa::torch)
endif()
