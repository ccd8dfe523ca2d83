# terse_find_nvcc(RESULT HOW) finds the CUDA compiler, 12.1 or newer, in the first of
#   1. the PATH;
#   2. CUDA_HOME, CUDA_PATH or /usr/local/cuda;
#   3. pip's packages of python3;
#   4. the newest cuda-* of the toolchain folder.
# Where there is none, RESULT is empty and HOW says why. CMake's own CUDA support is not used: it needs a whole toolkit,
# and pip's packages are only a part of one.

include(${CMAKE_CURRENT_LIST_DIR}/toolchain.cmake)

function(terse_find_nvcc result how)
  set(${result} "" PARENT_SCOPE)
  set(passed_over "")

  set(candidates "")
  find_program(TERSE_NVCC nvcc NO_CMAKE_PATH NO_CMAKE_SYSTEM_PATH)
  if(TERSE_NVCC)
    list(APPEND candidates "${TERSE_NVCC}|the PATH")
  endif()
  foreach(home "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" "/usr/local/cuda")
    if(NOT home STREQUAL "")
      list(APPEND candidates "${home}/bin/nvcc|${home}")
    endif()
  endforeach()

  find_program(TERSE_PYTHON3 python3)
  if(TERSE_PYTHON3)
    execute_process(
      COMMAND ${TERSE_PYTHON3} -c "import nvidia; print('\\n'.join(nvidia.__path__))"
      OUTPUT_VARIABLE folders OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REPLACE "\n" ";" folders "${folders}")
    foreach(folder ${folders})
      file(GLOB found "${folder}/cu*/bin/nvcc")
      foreach(nvcc ${found})
        list(APPEND candidates "${nvcc}|python3")
      endforeach()
    endforeach()
  endif()

  terse_toolchain_folder(toolchain)
  file(GLOB found "${toolchain}/cuda-*/nvidia/cu*/bin/nvcc")
  list(SORT found COMPARE NATURAL ORDER DESCENDING)
  foreach(nvcc ${found})
    list(APPEND candidates "${nvcc}|the toolchain folder")
  endforeach()

  foreach(candidate ${candidates})
    string(REPLACE "|" ";" candidate "${candidate}")
    list(GET candidate 0 nvcc)
    list(GET candidate 1 by)
    if(NOT EXISTS "${nvcc}")
      continue()
    endif()
    execute_process(COMMAND "${nvcc}" --version OUTPUT_VARIABLE output ERROR_QUIET RESULT_VARIABLE failed)
    if(failed OR NOT output MATCHES "release ([0-9]+\\.[0-9]+)")
      string(APPEND passed_over " ${nvcc} does not run;")
    elseif(CMAKE_MATCH_1 VERSION_LESS 12.1)
      string(APPEND passed_over " ${nvcc} is ${CMAKE_MATCH_1}, but kernels with more than 4 KiB of arguments need 12.1;")
    else()
      set(${result} "${nvcc}" PARENT_SCOPE)
      set(${how} "CUDA ${CMAKE_MATCH_1}, found by ${by}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${how} "no nvcc on the PATH, in CUDA_HOME, among python3's packages or in ${toolchain};${passed_over} ./terse test installs one" PARENT_SCOPE)
endfunction()

set(TERSE_CUDA_ARCHITECTURES "" CACHE STRING "Compile the kernels for these GPUs only, such as 90: a fifth of the time")
option(TERSE_CUDA_FAST_COMPILE "Compile the kernels for the oldest and the newest GPU only, and without expensive optimizations where nvcc can: an eighth of the time" OFF)

# Machine code for every GPU generation from Ampere on that this nvcc supports (8.6 and 8.9 run the code for 8.0, 10.3
# that for 10.0), and PTX, which the driver compiles for other GPUs. Or machine code for TERSE_CUDA_ARCHITECTURES alone.
function(terse_cuda_architectures nvcc result)
  execute_process(COMMAND "${nvcc}" --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  set(wanted ${TERSE_CUDA_ARCHITECTURES})
  if(NOT wanted)
    set(wanted 80 90 100 120)
  endif()
  set(flags "")
  foreach(architecture ${wanted})
    if(known MATCHES "sm_${architecture}\n")
      list(APPEND flags "-gencode=arch=compute_${architecture},code=sm_${architecture}")
    elseif(TERSE_CUDA_ARCHITECTURES)
      message(FATAL_ERROR "TERSE_CUDA_ARCHITECTURES: ${nvcc} does not compile for ${architecture}")
    endif()
  endforeach()
  if(TERSE_CUDA_FAST_COMPILE)
    list(GET flags 0 oldest)
    list(GET flags -1 newest)
    set(flags ${oldest} ${newest})
    list(REMOVE_DUPLICATES flags)
  elseif(NOT TERSE_CUDA_ARCHITECTURES)
    list(APPEND flags "-gencode=arch=compute_90,code=compute_90")
  endif()
  set(${result} "${flags}" PARENT_SCOPE)
endfunction()

# terse_cuda_compiler() sets NVCC, empty where there is none; ARCHITECTURES and NVCC_FLAGS for every kernel;
# NVCC_LIBRARIES, the folder of the CUDA runtime.
macro(terse_cuda_compiler)
  terse_find_nvcc(NVCC NVCC_HOW)
  if(NVCC)
    terse_cuda_architectures(${NVCC} ARCHITECTURES)
    message(STATUS "CUDA: ${NVCC} (${NVCC_HOW})")
    get_filename_component(NVCC_LIBRARIES ${NVCC} REALPATH)
    get_filename_component(NVCC_LIBRARIES ${NVCC_LIBRARIES}/../../lib ABSOLUTE)  # pip's nvcc searches lib64 only
    # -fmad=false: nvcc contracts a*b+c by default.
    set(NVCC_FLAGS -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -O3 -fmad=false -diag-suppress=1675 -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-ffp-contract=off)
    if(TERSE_CUDA_FAST_COMPILE)
      execute_process(COMMAND "${NVCC}" --help OUTPUT_VARIABLE help ERROR_QUIET)
      if(help MATCHES "--Ofast-compile")
        list(APPEND NVCC_FLAGS --Ofast-compile=max)
      endif()
    endif()
  else()
    message(STATUS "CUDA: ${NVCC_HOW}")
  endif()
endmacro()

# terse_cuda_objects(RESULT source…) compiles each source for GPUs. RESULT is the list of the objects, which are made
# anew when a file of HEADERS changes.
get_filename_component(TERSE_REPOSITORY ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
function(terse_cuda_objects result)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
  set(objects "")
  foreach(source ${ARGN})
    file(RELATIVE_PATH name ${TERSE_REPOSITORY} ${source})
    string(REGEX REPLACE "[./]+" "_" object ${name})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda/${object}.o)
    add_custom_command(OUTPUT ${object} DEPENDS ${source} ${HEADERS}
      COMMAND ${NVCC} ${NVCC_FLAGS} ${ARCHITECTURES} -x cu -c ${source} -o ${object} COMMENT "Compiling ${name} for CUDA" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
