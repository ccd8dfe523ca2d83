# terse_addon(NAME source…): a Node addon NAME.node, built by cmake-js (or by plain CMake with CMAKE_JS_INC given).
# The library itself is for the plain CPU; single files raise their own instruction level with terse_instructions().

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

# Results must be the same on every processor: no a*b+c is ever contracted behind our back.
add_compile_options(-Wall -Wextra -ffp-contract=off)

set(TERSE_NATIVE_DIR ${CMAKE_CURRENT_LIST_DIR}/..)

function(terse_addon name)
  add_library(${name} SHARED ${ARGN} ${TERSE_NATIVE_DIR}/streams.cc ${CMAKE_JS_SRC})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".node")
  target_include_directories(${name} PRIVATE ${TERSE_NATIVE_DIR}/include)
  target_include_directories(${name} SYSTEM PRIVATE ${CMAKE_JS_INC})
  target_compile_definitions(${name} PRIVATE NAPI_VERSION=9 NAPI_CPP_EXCEPTIONS)
  # In a worker thread that is being terminated nothing can be thrown any more: it ends, and not the process.
  target_compile_definitions(${name} PRIVATE NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS)
  target_link_libraries(${name} PRIVATE ${CMAKE_JS_LIB} ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE -Wl,-Bsymbolic -Wl,--exclude-libs,ALL)
endfunction()

# terse_instructions(-mavx2 file…): these files, and no others, may use these instructions.
function(terse_instructions flags)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS "${flags}")
endfunction()
