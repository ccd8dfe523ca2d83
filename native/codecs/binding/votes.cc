// The vote on packed bits.
#include "arguments.h"
#include "tables.h"

namespace terse::codecs_binding {

namespace {

const terse_vote& vote_of(const Napi::CallbackInfo& info) { return *static_cast<const terse_vote*>(info.Data()); }

constexpr bool may_be_absent = true;

void majority(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    uint8_t* out = bytes_of(info[0], "out", bytes_of_bits(n));
    const Wires votes(info[1], "votes", bytes_of_bits(n), may_be_absent);
    const terse_zero tie = zero_of(options_of(info, 3).Get("tie"), "tie");
    throw_unless_ok(info.Env(), vote_of(info).majority(out, votes.pointers.data(), votes.pointers.size(), n, tie));
}

void majority_or_zero(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[3], "n");
    uint8_t* plus = bytes_of(info[0], "plus", bytes_of_bits(n));
    uint8_t* nonzero = bytes_of(info[1], "nonzero", bytes_of_bits(n));
    const Wires votes(info[2], "votes", bytes_of_bits(n), may_be_absent);
    throw_unless_ok(info.Env(),
                    vote_of(info).majority_or_zero(plus, nonzero, votes.pointers.data(), votes.pointers.size(), n));
}

void tally(const Napi::CallbackInfo& info) {
    const size_t n = count_of(info[2], "n");
    const Wires planes(info[0], "planes", bytes_of_bits(n)), votes(info[1], "votes", bytes_of_bits(n), may_be_absent);
    const size_t needed = terse_vote_planes(votes.pointers.size());
    if (planes.pointers.size() != needed)
        throw Napi::RangeError::New(info.Env(), "planes: a count of " + std::to_string(votes.pointers.size()) +
                                                    " votes takes " + std::to_string(needed) + " planes, not " +
                                                    std::to_string(planes.pointers.size()));
    throw_unless_ok(info.Env(),
                    vote_of(info).tally(planes.pointers.data(), votes.pointers.data(), votes.pointers.size(), n));
}

}  // namespace

Napi::Value votes(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_vote* vote;
    for (uint32_t i = 0; (vote = terse_vote_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["name"] = "vote";
        object["implementation"] = vote->implementation;
        add_method<majority>(object, "majority", vote);
        add_method<majority_or_zero>(object, "majorityOrZero", vote);
        add_method<tally>(object, "tally", vote);
        list[i] = object;
    }
    return list;
}

}  // namespace terse::codecs_binding
