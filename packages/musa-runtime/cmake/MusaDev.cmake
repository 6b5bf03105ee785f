# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Build helpers, shipped with the runtime so that third-party op packs are built like ours.
include_guard(GLOBAL)
include("${CMAKE_CURRENT_LIST_DIR}/MusaKernels.cmake")

# Run path of a library installed at <site-packages>/<package>/lib: its own, the runtime's and torch's libraries. There is no
# other entry: the path of a build machine would hide that a library is missing from the wheel.
set(MUSA_INSTALL_RPATH "$ORIGIN;$ORIGIN/../../musa_runtime/lib;$ORIGIN/../../torch/lib")

# musa_warnings(<target>): enables the warnings that the project's own sources avoid.
function(musa_warnings target)
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers>)
endfunction()

# musa_unity_build(<count>): compiles the following libraries of this folder in groups of <count> files, or with 0 each in one
# group: most of the time is spent on headers, which a group shares. A debug build compiles each file alone, so that a change recompiles one file and no
# file depends on the includes of another. The .mu files of an op pack become one group.
macro(musa_unity_build count)
  if(NOT CMAKE_BUILD_TYPE STREQUAL Debug)
    set(CMAKE_UNITY_BUILD ON)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE ${count})
  endif()
endmacro()

# musa_optimize_less(<target>): compiles the target's C++ with -O1 except in a debug build. GCC then spends half the time on the
# machine code, for functions that no launch, allocation or copy waits for.
function(musa_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:-O1>)
endfunction()

set_property(GLOBAL PROPERTY MUSA_LINK_CHECK "${CMAKE_CURRENT_LIST_DIR}/link_check.py")

# musa_check_link(<target>): refuses the library after linking if it cannot work beside torch: it has or needs another C++
# runtime, or the SDK lacks symbols.
function(musa_check_link target)
  if(NOT CMAKE_READELF)
    return()
  endif()
  if(NOT Python_EXECUTABLE)
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  endif()
  get_property(script GLOBAL PROPERTY MUSA_LINK_CHECK)
  set_property(TARGET ${target} PROPERTY CXX_LINKER_LAUNCHER
    "${Python_EXECUTABLE}" "${script}" "${CMAKE_READELF}" "${MUSA_HOME}" ${CMAKE_CXX_LINKER_LAUNCHER})
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()

# musa_library_defaults(<target>): sets language, visibility, run path and the check of the link, as for every library of the
# project.
function(musa_library_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20
    CXX_STANDARD_REQUIRED ON
    CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON
    POSITION_INDEPENDENT_CODE ON
    INSTALL_RPATH "${MUSA_INSTALL_RPATH}"
    INSTALL_RPATH_USE_LINK_PATH OFF)
  # torch's umbrella headers then include only the operators that they use, instead of all 3,000: seconds less for each file.
  target_compile_definitions(${target} PRIVATE AT_PER_OPERATOR_HEADERS)
  # An undefined symbol is then a link error instead of a crash at the first call. The sanitizers' runtimes are loaded with
  # the process, so their symbols are undefined here.
  if(NOT "${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize")
    target_link_options(${target} PRIVATE LINKER:--no-undefined)
  endif()
  musa_check_link(${target})
  # RUNPATH instead of RPATH, so that LD_LIBRARY_PATH can select another build.
  target_link_options(${target} PRIVATE LINKER:--enable-new-dtags)
endfunction()

# musa_add_op_pack(<name> [STABLE] SOURCES <file>... [LIBRARIES <library>...] [DESTINATION <dir>])
#
# Adds a shared library lib<name>.so that declares operators to the runtime's op registry, installed to DESTINATION (default:
# lib, below the package of the wheel). Load it with musa_runtime's library hook. Sources that end in .mu are compiled by mcc,
# for the architectures in $TORCH_MUSA_ARCH_LIST or all that it supports; they need the package musa-port. A file beside the
# library then names the SDK that they are compiled for (musa_declare_sdk).
#
# STABLE: the pack is over torch's stable ABI (musa_runtime/stable_pack.h), and the library works with every torch that the
# runtime supports. torch's headers then reject everything that is not stable. Sources that end in .mu include no header of
# torch, so musa-port is not needed.
function(musa_add_op_pack name)
  cmake_parse_arguments(PARSE_ARGV 1 pack "STABLE" "DESTINATION" "SOURCES;LIBRARIES")
  if(pack_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "musa_add_op_pack(${name}): unknown arguments: ${pack_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT pack_SOURCES)
    message(FATAL_ERROR "musa_add_op_pack(${name}): SOURCES is empty; name the .cpp and .mu files of the pack.")
  endif()
  if(NOT pack_DESTINATION)
    set(pack_DESTINATION lib)
  endif()

  set(kernels ${pack_SOURCES})
  list(FILTER kernels INCLUDE REGEX "\\.mu$")
  if(kernels)
    musa_enable_kernels()
    if(pack_STABLE)
      musa_kernel_flags(flags)
    else()
      musa_torch_kernel_flags(flags)
    endif()
    list(APPEND MUSA_MCC_FLAGS ${flags} -fvisibility=hidden -fvisibility-inlines-hidden)
    list(FILTER pack_SOURCES EXCLUDE REGEX "\\.mu$")
    musa_unity_kernels(kernels ${name} ${kernels})
    musa_add_library(${name} SHARED ${pack_SOURCES} ${kernels})
    if(NOT pack_STABLE)
      musa_torch_kernels(${name})
    endif()
  else()
    add_library(${name} SHARED ${pack_SOURCES})
  endif()
  musa_library_defaults(${name})
  musa_warnings(${name})
  target_link_libraries(${name} PRIVATE musa::musa_runtime ${pack_LIBRARIES})
  if(pack_STABLE)
    string(REPLACE "." ";" minor "${MUSA_OLDEST_TORCH}")
    list(GET minor 0 major)
    list(GET minor 1 minor)
    math(EXPR target "(${major} << 56) | (${minor} << 48)" OUTPUT_FORMAT HEXADECIMAL)
    target_compile_definitions(${name} PRIVATE TORCH_TARGET_VERSION=${target})
  endif()
  install(TARGETS ${name} LIBRARY DESTINATION ${pack_DESTINATION})
  if(MUSA_FOUND) # mcc compiles kernels of this build
    musa_declare_sdk(${name} DESTINATION ${pack_DESTINATION})
  endif()
endfunction()
