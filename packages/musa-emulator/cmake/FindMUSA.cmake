# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) torch_musa contributors
#
# find_package(MUSA): compiles MUSA kernels in CMake projects.
#
#   list(APPEND CMAKE_MODULE_PATH $ENV{MUSA_HOME}/cmake)
#   find_package(MUSA REQUIRED)
#   musa_add_library(kernels SHARED axpy.mu host.cpp OPTIONS -O3)
#   musa_add_executable(program main.mu)
#
# Reads    MUSA_MCC_FLAGS (list), MUSA_VERBOSE_BUILD, MUSA_LINK_LIBRARIES_KEYWORD (PRIVATE, PUBLIC or nothing),
#          MUSA_MCC_EXECUTABLE; and the source property MUSA_SOURCE_PROPERTY_FORMAT: with OBJ, mcc compiles a .cpp.
# Sets     MUSA_FOUND, MUSA_VERSION, MUSA_VERSION_MAJOR, MUSA_VERSION_MINOR, MUSA_TOOLKIT_ROOT_DIR, MUSA_INCLUDE_DIRS,
#          MUSA_LIBRARIES, MUSA_MUSART_LIBRARY, MUSA_MCC_EXECUTABLE.
# Defines  musa_add_library(name [SHARED|STATIC|MODULE|OBJECT] sources... [OPTIONS flags...]), musa_add_executable,
#          musa_include_directories(folders...), musa_compile(objects sources... [OPTIONS flags...]).
#
# A .mu or .cu file is compiled with the include folders, definitions and options of its target.

get_filename_component(MUSA_TOOLKIT_ROOT_DIR "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(NOT MUSA_MCC_EXECUTABLE AND DEFINED ENV{PYTORCH_MCC})
  set(MUSA_MCC_EXECUTABLE "$ENV{PYTORCH_MCC}")
endif()
find_program(MUSA_MCC_EXECUTABLE mcc PATHS "${MUSA_TOOLKIT_ROOT_DIR}/bin" NO_DEFAULT_PATH)
find_library(MUSA_MUSART_LIBRARY musart PATHS "${MUSA_TOOLKIT_ROOT_DIR}/lib" NO_DEFAULT_PATH)
find_path(MUSA_INCLUDE_DIRS musa_runtime.h PATHS "${MUSA_TOOLKIT_ROOT_DIR}/include" NO_DEFAULT_PATH)
if(EXISTS "${MUSA_TOOLKIT_ROOT_DIR}/version.json")
  file(READ "${MUSA_TOOLKIT_ROOT_DIR}/version.json" _musa_versions)
  string(JSON MUSA_VERSION ERROR_VARIABLE _musa_error GET "${_musa_versions}" musa_runtime version)
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _musa_matched "${MUSA_VERSION}")
  set(MUSA_VERSION_MAJOR "${CMAKE_MATCH_1}")
  set(MUSA_VERSION_MINOR "${CMAKE_MATCH_2}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MUSA
  REQUIRED_VARS MUSA_MCC_EXECUTABLE MUSA_MUSART_LIBRARY MUSA_INCLUDE_DIRS
  VERSION_VAR MUSA_VERSION)
if(NOT MUSA_FOUND)
  return()
endif()

set(MUSA_LIBRARIES "${MUSA_MUSART_LIBRARY}")
set(MUSA_MCC_FLAGS "" CACHE STRING "Flags for every call of mcc")
option(MUSA_VERBOSE_BUILD "Print the mcc commands" OFF)
mark_as_advanced(MUSA_MCC_EXECUTABLE MUSA_MUSART_LIBRARY MUSA_INCLUDE_DIRS)

macro(musa_include_directories)
  include_directories(${ARGN})
endmacro()

# Sets `objects` to an object file for each source that mcc compiles, with the compile settings of `target`, and
# `rest` to the other sources.
function(_musa_objects target objects rest)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "OPTIONS;SOURCES")
  set(compiled "")
  set(others "")
  foreach(source IN LISTS arg_SOURCES)
    get_source_file_property(format "${source}" MUSA_SOURCE_PROPERTY_FORMAT)
    if(NOT source MATCHES "\\.(mu|cu)$" AND NOT format STREQUAL "OBJ")
      list(APPEND others "${source}")
      continue()
    endif()
    get_filename_component(path "${source}" ABSOLUTE)
    file(RELATIVE_PATH name "${CMAKE_CURRENT_SOURCE_DIR}" "${path}")
    string(REPLACE ".." "__" name "${name}")
    set(object "${CMAKE_CURRENT_BINARY_DIR}/musa/${target}/${name}.o")
    get_filename_component(folder "${object}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
    set(verbose "")
    if(MUSA_VERBOSE_BUILD)
      set(verbose -v)
    endif()
    set(standard "")
    if(CMAKE_CXX_STANDARD)
      set(standard "-std=c++${CMAKE_CXX_STANDARD}")
    endif()
    string(TOUPPER "${CMAKE_BUILD_TYPE}" build)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build}}")
    set(of_folders "")
    set(of_definitions "")
    set(of_options "")
    if(TARGET ${target})
      set(folders "$<REMOVE_DUPLICATES:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>>")
      set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
      set(of_folders "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>")
      set(of_definitions "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>")
      set(of_options "$<TARGET_PROPERTY:${target},COMPILE_OPTIONS>")
    endif()
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${MUSA_MCC_EXECUTABLE}" -x musa ${verbose} ${flags} ${standard} -fPIC
        "${of_folders}" "${of_definitions}" "${of_options}" ${MUSA_MCC_FLAGS} ${arg_OPTIONS}
        -MD -MF "${object}.d" -MT "${object}" -c "${path}" -o "${object}"
      DEPENDS "${path}" "${MUSA_MCC_EXECUTABLE}"
      DEPFILE "${object}.d"
      COMMENT "Compiling ${name} for MUSA"
      COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties("${object}" PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    list(APPEND compiled "${object}")
  endforeach()
  set(${objects} "${compiled}" PARENT_SCOPE)
  set(${rest} "${others}" PARENT_SCOPE)
endfunction()

# Adds sources, include directories and libraries to a target.
function(_musa_fill target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "OPTIONS")
  _musa_objects(${target} compiled rest SOURCES ${arg_UNPARSED_ARGUMENTS} OPTIONS ${arg_OPTIONS})
  target_sources(${target} PRIVATE ${compiled} ${rest})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE "${MUSA_INCLUDE_DIRS}")
  target_link_libraries(${target} ${MUSA_LINK_LIBRARIES_KEYWORD} "${MUSA_LIBRARIES}")
endfunction()

macro(musa_add_library name)
  set(_musa_sources ${ARGN})
  set(_musa_kind "")
  if("${ARGN}" MATCHES "^(SHARED|STATIC|MODULE|OBJECT);")
    list(POP_FRONT _musa_sources _musa_kind)
  endif()
  add_library(${name} ${_musa_kind})
  _musa_fill(${name} ${_musa_sources})
endmacro()

macro(musa_add_executable name)
  add_executable(${name})
  _musa_fill(${name} ${ARGN})
endmacro()

macro(musa_compile objects)
  cmake_parse_arguments(_musa "" "" "OPTIONS" ${ARGN})
  _musa_objects(compiled_objects ${objects} _musa_rest SOURCES ${_musa_UNPARSED_ARGUMENTS} OPTIONS ${_musa_OPTIONS})
endmacro()
