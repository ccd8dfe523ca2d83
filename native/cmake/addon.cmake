# terse_addon(NAME source…) builds the Node addon NAME.node, with cmake-js or with plain CMake and CMAKE_JS_INC.
# The addon runs on every CPU of its architecture; terse_instructions() lets single files use more instructions.

include(CheckLinkerFlag)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")

# Results must be the same on every processor, so the compiler may not contract a*b+c into a fused multiply-add. A
# CFLAGS of somebody's with -ffast-math would also let it forget NaN, and linked it would round small floats to 0.
set(TERSE_EXACT -fno-fast-math -fno-unsafe-math-optimizations)
add_compile_options(-Wall -Wextra ${TERSE_EXACT} -ffp-contract=off)
add_link_options(${TERSE_EXACT})

set(TERSE_NATIVE_DIR ${CMAKE_CURRENT_LIST_DIR}/..)

# Threads of a library may outlive the plugin, or the Worker, that has loaded it: its code must stay.
if(NOT APPLE)
  set(TERSE_STAYS -Wl,-z,nodelete)
endif()

function(terse_addon name)
  add_library(${name} SHARED ${ARGN} ${TERSE_NATIVE_DIR}/iostreams.cc ${CMAKE_JS_SRC})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".node")
  terse_addon_objects(${name})
  target_link_libraries(${name} PRIVATE ${CMAKE_JS_LIB} ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL ${TERSE_STAYS})
  # Node itself has the functions of Node-API, which an LDFLAGS with -z defs would miss.
  check_linker_flag(CXX -Wl,-z,undefs TERSE_HAS_UNDEFS)
  if(TERSE_HAS_UNDEFS)
    target_link_options(${name} PRIVATE -Wl,-z,undefs)
  endif()
endfunction()

# terse_addon_objects(TARGET) compiles the sources of TARGET as those of an addon are: an OBJECT library serves several
# addons.
function(terse_addon_objects target)
  target_include_directories(${target} PRIVATE ${TERSE_NATIVE_DIR}/include)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_JS_INC})
  # ALL: where memory is out, say, std::exception too becomes an error in JavaScript.
  target_compile_definitions(${target} PRIVATE NAPI_VERSION=9 NAPI_CPP_EXCEPTIONS NODE_ADDON_API_CPP_EXCEPTIONS_ALL)
  # A worker thread that is being terminated cannot throw. With this its exceptions are dropped; without it they abort
  # the process.
  target_compile_definitions(${target} PRIVATE NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
endfunction()

# terse_instructions(-mavx2 file…) compiles only these files for these instructions.
function(terse_instructions flags)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()
