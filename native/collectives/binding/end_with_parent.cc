#include <signal.h>
#include <sys/prctl.h>

#include <cerrno>
#include <system_error>

#include "binding/functions.h"

namespace terse::collectives::binding {
namespace {

// endWithParent(): prctl(2), PR_SET_PDEATHSIG. It ends processes too that are stopped, or that do not come back from a
// call.
void end_with_parent(const Napi::CallbackInfo&) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        throw std::system_error(errno, std::generic_category(), "prctl(PR_SET_PDEATHSIG)");
}

}  // namespace

void add_end_with_parent(Napi::Env env, Napi::Object exports) {
    exports.Set("endWithParent", Napi::Function::New(env, end_with_parent, "endWithParent"));
}

}  // namespace terse::collectives::binding
