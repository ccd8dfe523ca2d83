# terse_libtorch(TARGET) compiles and links TARGET against libtorch, found in the first of
#   1. LIBTORCH, a folder with lib/ and include/;
#   2. the torch package of python3;
#   3. the newest libtorch-* of the toolchain folder.
# find_package(Torch) is not used: with a CUDA wheel it fails where no CUDA toolkit is installed, and where a system
# libtorch is installed too it takes the wrong libc10.so. libtorch_cuda.so is not linked: it is opened at run time, for
# the first CUDA device.

include(${CMAKE_CURRENT_LIST_DIR}/toolchain.cmake)

function(terse_find_libtorch result how)
  if(DEFINED ENV{LIBTORCH} AND NOT "$ENV{LIBTORCH}" STREQUAL "")
    if(NOT EXISTS "$ENV{LIBTORCH}/lib/libtorch_cpu.so" OR NOT EXISTS "$ENV{LIBTORCH}/include/ATen")
      message(FATAL_ERROR "LIBTORCH is $ENV{LIBTORCH}, which has no lib/libtorch_cpu.so or no include/ATen. Set it to the torch folder of a wheel, or to an unpacked libtorch.")
    endif()
    get_filename_component(root "$ENV{LIBTORCH}" REALPATH)
    set(${result} "${root}" PARENT_SCOPE)
    set(${how} "LIBTORCH" PARENT_SCOPE)
    return()
  endif()

  find_program(TERSE_PYTHON3 python3)
  if(TERSE_PYTHON3)
    # find_spec does not import torch, which would take seconds.
    execute_process(
      COMMAND ${TERSE_PYTHON3} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
      OUTPUT_VARIABLE root OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND EXISTS "${root}/lib/libtorch_cpu.so" AND EXISTS "${root}/include/ATen")
      get_filename_component(root "${root}" REALPATH)
      set(${result} "${root}" PARENT_SCOPE)
      set(${how} "python3" PARENT_SCOPE)
      return()
    endif()
  endif()

  terse_toolchain_folder(toolchain)
  file(GLOB roots "${toolchain}/libtorch-*/torch")
  list(SORT roots COMPARE NATURAL ORDER DESCENDING)
  foreach(root ${roots})
    if(EXISTS "${root}/lib/libtorch_cpu.so" AND EXISTS "${root}/include/ATen")
      get_filename_component(root "${root}" REALPATH)
      set(${result} "${root}" PARENT_SCOPE)
      set(${how} "the toolchain folder" PARENT_SCOPE)
      return()
    endif()
  endforeach()

  message(FATAL_ERROR
    "libtorch was not found. Provide it in one of these ways:\n"
    "  1. LIBTORCH=/path/to/torch, a folder with lib/ and include/ (a wheel's torch folder, or an unpacked libtorch)\n"
    "  2. python3 -m pip install torch\n"
    "  3. ./terse setup, which installs it in ${toolchain}")
endfunction()

# The version is read from the headers, because the addon is compiled against them.
function(terse_libtorch_version root result)
  foreach(file torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS "${root}/include/${file}")
      file(STRINGS "${root}/include/${file}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
      if(lines)
        string(REGEX MATCHALL "[0-9]+" numbers "${lines}")
        string(REPLACE ";" "." version "${numbers}")
        set(${result} "${version}" PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
  message(FATAL_ERROR "${root}/include has no torch/version.h, so it is not a supported libtorch. Set LIBTORCH to one of version 2.6 to 2.14.")
endfunction()

function(terse_libtorch target)
  terse_find_libtorch(root how)
  terse_libtorch_version(${root} version)
  if(version VERSION_LESS 2.6)
    message(FATAL_ERROR "libtorch ${version} at ${root} (found by ${how}) is too old: 2.6 to 2.14 are supported. Set LIBTORCH to a newer one.")
  endif()

  # Wheels up to 2.6 were built with the old std::string; the names of the symbols show it.
  file(STRINGS "${root}/lib/libc10.so" modern REGEX "_ZN3c105ErrorC[12]E.*__cxx11" LIMIT_COUNT 1)
  set(abi 0)
  if(modern)
    set(abi 1)
  endif()
  message(STATUS "libtorch ${version} at ${root}, found by ${how}, C++11 ABI ${abi}")

  target_include_directories(${target} SYSTEM PRIVATE "${root}/include" "${root}/include/torch/csrc/api/include")
  target_compile_definitions(${target} PRIVATE _GLIBCXX_USE_CXX11_ABI=${abi} "TERSE_LIBTORCH_ROOT=\"${root}\"")
  target_link_libraries(${target} PRIVATE "${root}/lib/libtorch_cpu.so" "${root}/lib/libc10.so")
  # libtorch_cpu.so needs CUDA libraries, which its own RUNPATH finds when it is loaded; they need not resolve when the
  # addon is linked.
  target_link_options(${target} PRIVATE -Wl,--allow-shlib-undefined -Wl,--no-as-needed)
  # RPATH and not RUNPATH: it goes before LD_LIBRARY_PATH, where people have another libtorch.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "${root}/lib" SKIP_BUILD_RPATH FALSE)

  # TypeScript reads this before it opens the addon, to name a libtorch that was removed; the dynamic linker's own
  # message would not.
  file(WRITE "${CMAKE_BINARY_DIR}/Release/build-info.json.new"
    "{\n  \"libtorch\": \"${root}\",\n  \"foundBy\": \"${how}\",\n  \"version\": \"${version}\",\n  \"cxx11Abi\": ${abi},\n  \"compiler\": \"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"\n}\n")
  file(RENAME "${CMAKE_BINARY_DIR}/Release/build-info.json.new" "${CMAKE_BINARY_DIR}/Release/build-info.json")
endfunction()
