// MPI's point-to-point messages as an Engine.
//
// Only a module beside the addon (mpi.cc) is linked to libmpi. open_mpi.cc opens it on demand, so a process that does
// not use MPI does not load its libraries. If the build found no MPI, no_mpi.cc takes the place of open_mpi.cc.
#pragma once
#include <memory>
#include <string>

#include "engines/engine.h"

namespace terse::collectives {

struct MpiWorld {
    int rank, size;  // in MPI_COMM_WORLD
    std::string library;
};

class Mpi {
public:
    virtual ~Mpi() = default;

    // Any thread, any number of times. Returns when every process of the job has called it. Throws Failure.
    virtual MpiWorld start(Clock::time_point deadline) = 0;

    // After start. One rank of a group; a process may have several ranks.
    virtual std::unique_ptr<RendezvousEngine> make(int rank, int size) = 0;

    // After start. An engine of all processes of the job that needs no addresses: over it they exchange the address of
    // the rendezvous. `round` counts from 0, with the same number in every process.
    virtual std::unique_ptr<Engine> make_bootstrap(int round) = 0;

    // At the end of the process, when all engines are destroyed.
    virtual void finish() noexcept = 0;
};

// nullptr, with the reason in `why`, if there is no MPI or its module does not open.
Mpi* open_mpi(std::string& why);
bool has_mpi();
void finish_mpi() noexcept;  // if it was opened

}  // namespace terse::collectives
