#include "binding/engines.h"

#include "binding/arguments.h"
#include "binding/communicator_object.h"
#include "binding/functions.h"
#include "engines/gloo/gloo.h"
#include "engines/loopback/loopback.h"
#include "engines/tcp/tcp.h"
#include "wire/header.h"
#include "wrappers/faulty.h"
#include "wrappers/paced.h"

namespace terse::collectives::binding {
namespace {

using LinkExternal = Napi::External<std::shared_ptr<Link>>;

// link(bitsPerSecond, latencySeconds) → one rank's link, for all its groups
Napi::Value link(const Napi::CallbackInfo& info) {
    const double bits = info[0].ToNumber(), latency = info[1].ToNumber();
    if (!(bits >= 1) || !(latency >= 0 && latency <= 3600))
        throw Napi::RangeError::New(info.Env(),
                                    "a link must have at least 1 bit per second, and a latency of at most an hour");
    return LinkExternal::New(info.Env(), new std::shared_ptr<Link>(std::make_shared<Link>(bits, latency)),
                             [](Napi::Env, std::shared_ptr<Link>* link) { delete link; });
}

std::unique_ptr<Engine> behind(const Napi::Value& link, std::unique_ptr<Engine> engine) {
    if (!link.IsExternal()) return engine;
    return make_paced(std::move(engine), *link.As<LinkExternal>().Data());
}

// An emulated link may hold a thread for the time that one segment takes.
Clock::duration longest_pause(const Napi::Value& link) {
    return link.IsExternal() ? (*link.As<LinkExternal>().Data())->time_of(segment_bytes) : Clock::duration{};
}

// loopback(size, timeoutSeconds, faults, links) → a communicator for each rank
Napi::Value loopback(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    const int size = info[0].ToNumber().Int32Value();
    if (size < 1 || size > 4096) throw Napi::RangeError::New(env, "a loopback world has 1 to 4096 ranks");
    auto engines = make_loopback(size);
    const auto links = info[3].As<Napi::Array>();
    for (int rank = 0; rank < size; rank++) engines[rank] = behind(links.Get(rank), std::move(engines[rank]));
    std::vector<std::vector<Fault>> faults(size);
    const auto list_of_faults = info[2].As<Napi::Array>();
    for (uint32_t i = 0; i < list_of_faults.Length(); i++) {
        const auto fault = list_of_faults.Get(i).As<Napi::Object>();
        const auto number = [&](const char* name) { return fault.Get(name).ToNumber(); };
        faults.at(number("rank").Uint32Value())
            .push_back({static_cast<Fault::Kind>(number("kind").Uint32Value()), number("at").Uint32Value(),
                        number("milliseconds").DoubleValue(), number("to").Int32Value()});
    }
    auto list = Napi::Array::New(env, size);
    for (int rank = 0; rank < size; rank++) {
        if (!faults[rank].empty()) engines[rank] = make_faulty(std::move(engines[rank]), faults[rank]);
        list.Set(rank, CommunicatorObject::make(
                           env, CommunicatorObject::over(std::move(engines[rank]), seconds(info[1]), true)));
    }
    return list;
}

// (rank, size, address, timeoutSeconds, connectSeconds, link, outageSeconds) → [communicator, addresses]
template <auto make>
Napi::Value listening(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    std::unique_ptr<RendezvousEngine> engine;
    try {
        engine = make(info[0].ToNumber(), info[1].ToNumber(), info[2].ToString(), seconds(info[4]),
                      seconds(info[6]) + longest_pause(info[5]));
    } catch (const std::exception& error) {
        throw Napi::Error::New(env,
                               "this rank cannot listen on " + info[2].ToString().Utf8Value() + ": " + error.what());
    }
    if (!engine) throw Napi::Error::New(env, "this build has no Gloo");
    return make_with_addresses(env, std::move(engine), info[5], seconds(info[3]));
}

}  // namespace

Napi::Value make_with_addresses(Napi::Env env, std::unique_ptr<RendezvousEngine> engine, const Napi::Value& link,
                                Clock::duration timeout) {
    const auto addresses = engine->addresses();
    auto list = Napi::Array::New(env, addresses.size());
    for (uint32_t peer = 0; peer < addresses.size(); peer++)
        list.Set(peer, Napi::Buffer<char>::Copy(env, addresses[peer].data(), addresses[peer].size()));
    auto result = Napi::Array::New(env, 2);
    RendezvousEngine* rendezvous = engine.get();
    result.Set(0u, CommunicatorObject::make(
                       env, CommunicatorObject::over(behind(link, std::move(engine)), timeout, false, rendezvous)));
    result.Set(1u, list);
    return result;
}

void add_engines(Napi::Env env, Napi::Object exports) {
    exports.Set("loopback", Napi::Function::New(env, loopback, "loopback"));
    exports.Set("tcp", Napi::Function::New(env, listening<make_tcp>, "tcp"));
    exports.Set("gloo", Napi::Function::New(env, listening<make_gloo>, "gloo"));
    exports.Set("link", Napi::Function::New(env, link, "link"));
    exports.Set("hasGloo", Napi::Boolean::New(env, has_gloo()));
    const auto sizes = Napi::Object::New(env);
    sizes.Set("segment", Napi::Number::New(env, segment_bytes));
    sizes.Set("inline", Napi::Number::New(env, inline_bytes));
    sizes.Set("smallSum", Napi::Number::New(env, small_sum_bytes));
    sizes.Set("leastRingSegment", Napi::Number::New(env, least_ring_segment));
    sizes.Set("mostRingSegment", Napi::Number::New(env, most_ring_segment));
    exports.Set("wireSizes", sizes);
}

}  // namespace terse::collectives::binding
