// Communicators over an engine whose ranks exchange addresses.
#pragma once
#include <napi.h>

#include <memory>

#include "engines/engine.h"

namespace terse::collectives::binding {

// → [communicator, its addresses by peer]; `link`: an emulated link, or undefined
Napi::Value make_with_addresses(Napi::Env env, std::unique_ptr<RendezvousEngine> engine, const Napi::Value& link,
                                Clock::duration timeout);

}  // namespace terse::collectives::binding
