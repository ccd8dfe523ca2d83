// MPI's messages between two processes as an Engine.
//
// libmpi is linked by a module of its own beside the addon (mpi.cc), which is opened when somebody asks for MPI: a process that
// does not use it has none of what MPI's libraries do when they are loaded. Where the build found no MPI, no_mpi.cc stands in.
#pragma once
#include <memory>
#include <string>

#include "../engine.h"

namespace terse::collectives {

struct MpiPlace {
    int rank, size;  // in MPI_COMM_WORLD
    std::string library;
};

class Mpi {
public:
    virtual ~Mpi() = default;

    // From any thread, as often as one likes; returns when every process of the job has called it. Throws Failure.
    virtual MpiPlace start(Clock::time_point deadline) = 0;

    // After start. One rank's end of a group; several ranks may live in one process.
    virtual std::unique_ptr<MeetingEngine> make(int rank, int size) = 0;

    // After start. All processes of the job, who need not hear of each other first: the place where they tell each other
    // everything else. `round` counts from 0, alike in all of them.
    virtual std::unique_ptr<Engine> make_meeting(int round) = 0;

    // At the end of the process, when all engines are gone.
    virtual void finish() noexcept = 0;
};

// nullptr, with a sentence that says why, where there is no MPI or its module does not open.
Mpi* open_mpi(std::string& why);
bool has_mpi();
void finish_mpi() noexcept;  // if it was opened

}  // namespace terse::collectives
