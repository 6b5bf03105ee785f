# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# Compiles .mu sources, for our packs and third-party ones, based on the SDK's FindMUSA.cmake.
include_guard(GLOBAL)

# The script is installed next to this file; in the source tree it is among the Python sources.
set(_musa_mcc_script "${CMAKE_CURRENT_LIST_DIR}/mcc.py")
if(NOT EXISTS "${_musa_mcc_script}")
  set(_musa_mcc_script "${CMAKE_CURRENT_LIST_DIR}/../src/musa_runtime/mcc.py")
endif()
set_property(GLOBAL PROPERTY MUSA_MCC_SCRIPT "${_musa_mcc_script}")
unset(_musa_mcc_script)

# musa_enable_kernels(): finds mcc with the SDK's FindMUSA.cmake, which defines musa_add_library and musa_compile. The
# component `kernels` of the package calls it. A macro, because FindMUSA.cmake sets variables that these read.
macro(musa_enable_kernels)
  if(NOT Python_EXECUTABLE)
    find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  endif()
  list(APPEND CMAKE_MODULE_PATH "${MUSA_HOME}/cmake")
  find_package(MUSA MODULE REQUIRED)
  set(MUSA_LINK_LIBRARIES_KEYWORD PRIVATE)
endmacro()

# musa_declare_sdk(<target> [DESTINATION <dir>]): writes <library>.sdk beside the library of a target with kernels, and installs
# it to DESTINATION (default: lib). It has the kind of SDK that the kernels are compiled for. The loader of packs reads it first: with another
# SDK, the library has undefined symbols or device code that its driver cannot run. A wheel's version may name the kind after
# the minor of torch (1.0+torch2.13.musa4), and then has to name this one.
function(musa_declare_sdk target)
  cmake_parse_arguments(PARSE_ARGV 1 declared "" "DESTINATION" "")
  if(NOT declared_DESTINATION)
    set(declared_DESTINATION lib)
  endif()
  if(SKBUILD_PROJECT_VERSION_FULL MATCHES "\\+torch[0-9]+\\.[0-9]+\\.([a-z0-9]+)$" AND NOT CMAKE_MATCH_1 STREQUAL MUSA_SDK_KIND)
    message(FATAL_ERROR
      "The wheel's version ${SKBUILD_PROJECT_VERSION_FULL} names the SDK ${CMAKE_MATCH_1}, and the SDK at ${MUSA_HOME} is ${MUSA_SDK_KIND}.\n"
      "Likely cause: MUSA_HOME changed during the build.\n"
      "Fix: delete the build folder, then build again")
  endif()
  file(GENERATE OUTPUT "$<TARGET_FILE:${target}>.sdk" CONTENT "${MUSA_SDK_KIND}\n")
  install(FILES "$<TARGET_FILE:${target}>.sdk" DESTINATION "${declared_DESTINATION}")
endfunction()

# Runs mcc.py, which prints a list.
function(_musa_query_mcc result)
  get_property(script GLOBAL PROPERTY MUSA_MCC_SCRIPT)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" "${script}" "${MUSA_MCC_EXECUTABLE}" ${ARGN}
    OUTPUT_VARIABLE answer ERROR_VARIABLE reason RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed)
    message(FATAL_ERROR "${reason}")
  endif()
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

# musa_accepted_flags(<result> <flag>...): the flags that this mcc accepts. The SDK's is based on clang, whichever
# compiler builds the host's sources, and rejects options of GCC.
function(musa_accepted_flags result)
  _musa_query_mcc(answer accepted ${ARGN})
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()

# musa_unity_kernels(<result> <name> <file>...): with CMAKE_UNITY_BUILD, one source that includes the .mu files, which then share
# the time for their headers; otherwise the files. An anonymous namespace is that of all of them.
function(musa_unity_kernels result name)
  if(NOT CMAKE_UNITY_BUILD)
    set(${result} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  set(text "")
  foreach(file IN LISTS ARGN)
    get_filename_component(path "${file}" ABSOLUTE)
    string(APPEND text "#include \"${path}\"\n")
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/musa/${name}.mu")
  file(CONFIGURE OUTPUT "${source}" CONTENT "${text}" @ONLY)
  set(${result} "${source}" PARENT_SCOPE)
endfunction()

# musa_kernel_flags(<result>): the flags that every .mu source needs. --offload-arch for the architectures in
# $TORCH_MUSA_ARCH_LIST, or else all that mcc supports. clang defines __CUDA__ in its MUSA mode too, and torch's
# headers would then assume CUDA.
function(musa_kernel_flags result)
  _musa_query_mcc(archs archs)
  message(STATUS "MUSA architectures: ${archs}")
  list(TRANSFORM archs PREPEND "--offload-arch=mp_")
  set(${result} -std=c++20 -U__CUDA__ ${archs} PARENT_SCOPE)
endfunction()

# musa_precompile_for_kernels(<target> <header>): makes mcc parse the header once, before the .mu sources of the target, instead of
# in each of them, if it supports that: the emulator's mcc with GCC does. Otherwise it has no effect, so sources must include
# all headers. Call it before the target's library is added, when MUSA_MCC_FLAGS is complete (it appends to it), and then
# musa_torch_kernels(<target>). The header includes no kernels.
function(musa_precompile_for_kernels target header)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build}}")
  _musa_query_mcc(answer precompiles ${flags} ${MUSA_MCC_FLAGS})
  message(STATUS "mcc precompiles headers: ${answer}")
  if(NOT answer STREQUAL "yes")
    return()
  endif()
  get_filename_component(path "${header}" ABSOLUTE)
  set(precompiled "${CMAKE_CURRENT_BINARY_DIR}/musa/${target}/precompiled.h.gch")
  file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/musa/${target}")
  # The options of musa_add_library's own command.
  set(folders "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  add_custom_command(
    OUTPUT "${precompiled}"
    COMMAND "${MUSA_MCC_EXECUTABLE}" -x musa-header ${flags} -fPIC "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>"
      "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>" "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>"
      ${MUSA_MCC_FLAGS} -MD -MF "${precompiled}.d" -MT "${precompiled}" "${path}" -o "${precompiled}"
    DEPENDS "${path}" "${MUSA_MCC_EXECUTABLE}"
    DEPFILE "${precompiled}.d"
    COMMENT "Precompiling ${header} for MUSA"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${target}_precompiled DEPENDS "${precompiled}")
  add_dependencies(${target}_precompiled musa_ported_headers)
  set(MUSA_MCC_FLAGS ${MUSA_MCC_FLAGS} -include-pch "${precompiled}" PARENT_SCOPE)
endfunction()

# musa_ported_headers(<result>): a folder of this build with torch's CUDA headers, ported by musa-port, and in its folder
# `overlay` the other headers of torch that test for CUDA's compiler. Targets with .mu sources that include torch's headers
# depend on the target `musa_ported_headers`, and have `overlay` before, and the folder after, torch's include folders.
function(musa_ported_headers result)
  set(folder "${CMAKE_BINARY_DIR}/ported")
  if(NOT TARGET musa_ported_headers)
    execute_process(
      COMMAND "${Python_EXECUTABLE}" -c "import musa_port; print(musa_port.include_dir())"
      OUTPUT_VARIABLE port_include ERROR_VARIABLE reason RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(failed)
      message(FATAL_ERROR
        "Kernels need torch's headers ported to MUSA, and musa_port cannot be imported:\n${reason}"
        "Likely cause: the package musa-port is not installed for ${Python_EXECUTABLE}.\n"
        "Fix: ${Python_EXECUTABLE} -m pip install --no-build-isolation --no-deps packages/musa-port, in a checkout of the project")
    endif()
    file(GLOB sources CONFIGURE_DEPENDS "${port_include}/../*.py" "${port_include}/../rules/*.toml")
    add_custom_command(
      OUTPUT "${folder}/stamp"
      COMMAND "${Python_EXECUTABLE}" -m musa_port -o "${folder}" --quiet
      COMMAND "${CMAKE_COMMAND}" -E touch "${folder}/stamp"
      DEPENDS ${sources}
      COMMENT "Porting the headers of the installed torch")
    # The first build of the kernels needs all headers, because their dependencies are not known yet.
    add_custom_target(musa_ported_headers DEPENDS "${folder}/stamp")
    set_property(GLOBAL PROPERTY MUSA_PORT_INCLUDE "${port_include}")
  endif()
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# musa_torch_kernels(<target>): for a target with .mu sources that include torch's headers: the include folders and the
# dependency of musa_ported_headers. The overlay is also on the path of the host's sources, which preprocess to the same text
# with it: it differs only for a MUSA compiler.
function(musa_torch_kernels target)
  musa_ported_headers(ported)
  get_property(port_include GLOBAL PROPERTY MUSA_PORT_INCLUDE)
  target_include_directories(${target} BEFORE PRIVATE "${ported}/overlay")
  target_include_directories(${target} PRIVATE "${port_include}")
  add_dependencies(${target} musa_ported_headers)
  if(TARGET ${target}_precompiled)
    add_dependencies(${target} ${target}_precompiled)
  endif()
endfunction()

# musa_torch_kernel_flags(<result>): musa_kernel_flags and the flags that the include folders above need.
function(musa_torch_kernel_flags result)
  musa_kernel_flags(flags)
  musa_ported_headers(ported)
  get_property(port_include GLOBAL PROPERTY MUSA_PORT_INCLUDE)
  # Last among the include folders: headers that the runtime or musa-port wrote for MUSA have precedence over ported ones.
  set(${result} ${flags} "-idirafter${ported}" -DAT_DISABLE_JITERATOR -include "${port_include}/prelude.h" PARENT_SCOPE)
endfunction()
