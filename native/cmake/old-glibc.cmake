# For what is built here and runs elsewhere.
option(TERSE_OLD_GLIBC "Make libraries that load on every glibc since 2.17, whichever this one is" OFF)
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h HAVE_GLIBC)  # without it there is nothing to do

# terse_old_glibc(TARGET source…): the sources of TARGET that use threads. Their functions have another home there,
# libpthread, which glibc still brings for them.
function(terse_old_glibc target)
  if(TERSE_OLD_GLIBC AND HAVE_GLIBC)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS -include ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/old_glibc.h)
    target_link_options(${target} PRIVATE LINKER:--no-as-needed -l:libpthread.so.0 LINKER:--as-needed)
  endif()
endfunction()
