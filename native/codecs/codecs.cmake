# Finds the C of the codecs in the folders of packages/codecs/src, so that no list names a codec. The folder of a codec
# is codecs/<name>/. It has these files, with `_` for `-` in <name>; all but the first may be absent.
#
#   <name>.c                   defines terse_<name>_scalar
#   <name>_<instructions>.c    defines terse_<name>_<instructions>: avx512, avx2, neon
#   <name>.cu                  defines terse_<name>_cuda
#   configurations.c           defines terse_<name>_configurations: the ways in which the checks use it
#   check.c, check.cu          define terse_check_<name> and terse_check_<name>_cuda: checks that only this codec has
#
# vote/ and the folders of shared/ are laid out alike.

get_filename_component(CODECS ${CMAKE_CURRENT_LIST_DIR}/../../packages/codecs/src ABSOLUTE)
set(CODEC_LISTS ${CMAKE_CURRENT_BINARY_DIR}/codec-lists)

# The instructions that this processor may have; the best come first.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(CODEC_INSTRUCTIONS avx512 avx2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
  set(CODEC_INSTRUCTIONS neon)
endif()
set(CODEC_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(CODEC_FLAGS_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl)

# terse_find_codecs() sets SCALAR, VECTORISED (for this processor), CONFIGURATIONS, CHECKS, KERNELS and KERNEL_CHECKS,
# and writes ${CODEC_LISTS}/codec_lists.h.
macro(terse_find_codecs)
  foreach(set SCALAR VECTORISED CONFIGURATIONS CHECKS KERNELS KERNEL_CHECKS)
    set(${set} "")
  endforeach()
  file(GLOB_RECURSE CODEC_FILES CONFIGURE_DEPENDS ${CODECS}/*.c ${CODECS}/*.cu)
  foreach(file ${CODEC_FILES})
    get_filename_component(name ${file} NAME)
    string(REGEX MATCH "_(avx512|avx2|neon)\\.c$" vectorised ${name})
    if(vectorised)
      set(instructions ${CMAKE_MATCH_1})
      if(NOT instructions IN_LIST CODEC_INSTRUCTIONS)
        continue()
      endif()
      terse_instructions("${CODEC_FLAGS_${instructions}}" ${file})
    endif()
    if(name STREQUAL "configurations.c")
      list(APPEND CONFIGURATIONS ${file})
    elseif(name MATCHES "^check(_.*)?\\.c$")
      list(APPEND CHECKS ${file})
    elseif(name STREQUAL "check.cu")
      list(APPEND KERNEL_CHECKS ${file})
    elseif(name MATCHES "\\.cu$")
      list(APPEND KERNELS ${file})
    elseif(vectorised)
      list(APPEND VECTORISED ${file})
    else()
      list(APPEND SCALAR ${file})
    endif()
  endforeach()
  terse_write_codec_lists()
endmacro()

# codec_lists.h has macros that repeat X for every entry of a list:
#
#   CODECS(X), VOTES(X)                                           X(symbol, implementation), the best first
#   KERNELS(X), CONFIGURATIONS(X), CHECKS(X), KERNEL_CHECKS(X)    X(symbol, "name")
function(terse_write_codec_lists)
  foreach(list CODECS VOTES KERNELS CONFIGURATIONS CHECKS KERNEL_CHECKS)
    set(of_${list} "")
  endforeach()
  macro(entry list file second)
    if(EXISTS ${folder}/${file})
      string(APPEND of_${list} " \\\n    X(${symbol}, ${second})")
    endif()
  endmacro()
  macro(implementations list)
    foreach(instructions ${CODEC_INSTRUCTIONS})
      entry(${list} ${symbol}_${instructions}.c ${instructions})
    endforeach()
    entry(${list} ${symbol}.c scalar)
  endmacro()

  file(GLOB folders ${CODECS}/codecs/* ${CODECS}/vote ${CODECS}/shared/*)
  foreach(folder ${folders})
    get_filename_component(name ${folder} NAME)
    string(REPLACE - _ symbol ${name})
    if(folder STREQUAL "${CODECS}/codecs/${name}")
      implementations(CODECS)
      entry(KERNELS ${symbol}.cu "\"${name}\"")
    elseif(name STREQUAL "vote")
      implementations(VOTES)
    endif()
    entry(CONFIGURATIONS configurations.c "\"${name}\"")
    entry(CHECKS check.c "\"${name}\"")
    entry(KERNEL_CHECKS check.cu "\"${name}\"")
  endforeach()

  set(text "// Written by CMake (native/codecs/codecs.cmake) from the files that there are.\n")
  foreach(list CODECS VOTES KERNELS CONFIGURATIONS CHECKS KERNEL_CHECKS)
    string(APPEND text "#define ${list}(X)${of_${list}}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CODEC_LISTS}/codec_lists.h CONTENT "${text}" @ONLY)
endfunction()
