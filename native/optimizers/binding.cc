// The tables of terse/optimizers.h as JavaScript objects: one object per implementation, one method per function.
#include <napi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <string>
#include <vector>

#include "arguments.h"
#include "cuda.h"
#include "terse/parallel.h"

namespace {

constexpr size_t GRAIN = 4096;  // elements: whole bytes of signs, whole groups of terse/walk.h

// Calls part(begin, end) on all threads. Elements do not depend on each other, so the bits do not depend on the number of threads.
template <typename Part>
void in_parallel(size_t n, Part part) {
    terse_parallel(n, GRAIN, [](void* context, size_t begin, size_t end) { (*static_cast<Part*>(context))(begin, end); }, &part);
}

// The same for kernels that return how many elements they accepted. Gives n, or the index of the first element that was not finite.
template <typename Part>
size_t accepted_in_parallel(size_t n, Part part) {
    std::atomic<size_t> accepted{n};
    in_parallel(n, [&](size_t begin, size_t end) {
        const size_t good = begin + part(begin, end - begin);
        size_t least = accepted;
        while (good < end && good < least && !accepted.compare_exchange_weak(least, good)) {}
    });
    return accepted;
}

// Calls part(chunk, begin, count) for all chunks of TERSE_REDUCTION_CHUNK elements, on all threads.
template <typename Part>
void in_chunks(size_t n, Part part) {
    auto several = [&](size_t begin, size_t end) {
        for (; begin < end; begin += TERSE_REDUCTION_CHUNK) part(begin / TERSE_REDUCTION_CHUNK, begin, std::min<size_t>(TERSE_REDUCTION_CHUNK, end - begin));
    };
    terse_parallel(n, TERSE_REDUCTION_CHUNK, [](void* context, size_t begin, size_t end) { (*static_cast<decltype(several)*>(context))(begin, end); }, &several);
}

template <typename Table>
const Table& table_of(const Napi::CallbackInfo& info) { return *static_cast<const Table*>(info.Data()); }

Napi::Value accepted(const Napi::CallbackInfo& info, size_t count) { return Napi::Number::New(info.Env(), static_cast<double>(count)); }

Napi::Value lion_vote(const Napi::CallbackInfo& info) {
    size_t n;
    float* m = first_floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    uint8_t* wire = packed_signs_of(info[0], "wire", n);
    const terse_lion_options options = lion_vote_options_of(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return lion.vote(wire + i / 8, m + i, g + i, count, &options); }));
}

void lion_mix(const Napi::CallbackInfo& info) {
    size_t n;
    float* c = first_floats_of(info[0], "c", n);
    float* m = floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_lion_options options = lion_mix_options_of(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) { lion.mix(c + i, m + i, g + i, end - i, &options); });
}

Napi::Value lion_step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_lion_options options = lion_step_options_of(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return lion.step(theta + i, m + i, g + i, count, &options); }));
}

void apply_signs(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const uint8_t* wire = packed_signs_of(info[1], "wire", n);
    const Change change(options_of(info, 2));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) { lion.apply_signs(theta + i, wire + i / 8, end - i, change.keep, change.scale); });
}

void apply_ternary(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const uint8_t* plus = packed_signs_of(info[1], "plus", n);
    const uint8_t* nonzero = packed_signs_of(info[2], "nonzero", n);
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) { lion.apply_ternary(theta + i, plus + i / 8, nonzero + i / 8, end - i, change.keep, change.scale); });
}

void apply_tally(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    const double ranks = ranks_of(info[2]);
    const std::vector<const uint8_t*> planes = planes_of(info[1], ranks, n);
    const Change change(options_of(info, 3));
    const terse_lion& lion = table_of<terse_lion>(info);
    in_parallel(n, [&](size_t i, size_t end) {
        std::vector<const uint8_t*> part(planes);
        for (auto& plane : part) plane += i / 8;
        lion.apply_tally(theta + i, part.data(), static_cast<size_t>(ranks), end - i, change.keep, change.scale);
    });
}

Napi::Value adamw_step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    float* v = floats_of(info[2], "v", n);
    const float* g = floats_of(info[3], "g", n);
    const terse_adamw_options options = adamw_options_of(options_of(info, 4));
    const terse_adamw& adamw = table_of<terse_adamw>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return adamw.step(theta + i, m + i, v + i, g + i, count, &options); }));
}

Napi::Value sgd_step(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = info[1].IsUndefined() ? nullptr : floats_of(info[1], "m", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_sgd_options options = sgd_options_of(options_of(info, 3));
    const terse_sgd& sgd = table_of<terse_sgd>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return sgd.step(theta + i, m ? m + i : nullptr, g + i, count, &options); }));
}

void low_rank_add(const Napi::CallbackInfo& info) {
    size_t floats_of_p, floats_of_q;
    const float* p = first_floats_of(info[1], "p", floats_of_p);
    const float* q = first_floats_of(info[2], "q", floats_of_q);
    const Napi::Object given = options_of(info, 3);
    const Change change(given);
    const size_t r = rank_of(given), m = rows_of(info.Env(), "p", floats_of_p, r), n = rows_of(info.Env(), "q", floats_of_q, r);
    const BufferView x = buffer_of(info[0], "x", DType::f32);
    if (x.length != m * n) throw_length(info.Env(), "x", x.length, m * n, "floats, one for each row of p and each row of q");
    if (x.length == 0) return;
    const terse_low_rank& low_rank = table_of<terse_low_rank>(info);
    // New memory costs as much as a tenth of the product, so that of usual sizes is kept.
    constexpr size_t most_kept = size_t{1} << 22;
    thread_local std::vector<float> kept;
    std::vector<float> large;
    const size_t floats = low_rank.packed_floats(n, r);
    std::vector<float>& memory = floats > most_kept ? large : kept;
    if (memory.size() < floats) memory.resize(floats);
    float* const packed = memory.data();
    low_rank.pack(packed, q, n, r);
    // A row takes about as long as n r / 8 elements of a kernel that runs at memory speed.
    const size_t row = std::max<size_t>(1, n * r / 8), rows = 12;
    auto part = [&](size_t begin, size_t end) {
        low_rank.add(static_cast<float*>(x.data) + begin / row * n, p + begin / row * r, packed, (end - begin) / row, n, r, change.keep, change.scale);
    };
    terse_parallel(m * row, rows * row, [](void* context, size_t begin, size_t end) { (*static_cast<decltype(part)*>(context))(begin, end); }, &part);
}

void low_rank_normalize(const Napi::CallbackInfo& info) {
    size_t floats;
    float* columns = first_floats_of(info[1], "columns", floats);
    float* q = floats_of(info[0], "q", floats);
    const Napi::Object given = options_of(info, 2);
    const size_t r = rank_of(given), n = rows_of(info.Env(), "columns", floats, r);
    std::vector<double> norms(r);
    table_of<terse_low_rank>(info).normalize(q, columns, n, r, number_of(given, "threshold"), norms.data());
}

Napi::Value moments_accumulate(const Napi::CallbackInfo& info) {
    size_t n;
    float* m = first_floats_of(info[0], "m", n);
    float* v = floats_of(info[1], "v", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_moments_options options = moments_options_of(options_of(info, 3));
    const terse_moments& moments = table_of<terse_moments>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) { return moments.accumulate(m + i, v + i, g + i, count, &options); }));
}

// The sum of the chunks' squares, added in order, so that it does not depend on the number of threads; and the index of the first element that is not
// finite, or n.
Napi::Value squares_of(const Napi::CallbackInfo& info, const std::vector<double>& chunks, const float* error, size_t n) {
    double both[2] = {0, static_cast<double>(n)};
    for (const double chunk : chunks) both[0] += chunk;
    if (!std::isfinite(both[0])) both[1] = static_cast<double>(std::find_if(error, error + n, [](float x) { return !std::isfinite(x); }) - error);
    return two_numbers(info.Env(), both);
}

Napi::Value moments_carry(const Napi::CallbackInfo& info) {
    size_t n;
    float* error = first_floats_of(info[0], "error", n);
    uint8_t* signs = packed_signs_of(info[1], "signs", n);
    const float* m = floats_of(info[2], "m", n);
    const float* g = floats_of(info[3], "g", n);
    const Napi::Object given = options_of(info, 4);
    const uint8_t* hold = hold_of(given, n);
    const float keep = static_cast<float>(number_of(given, "keep")), add = static_cast<float>(number_of(given, "add")), sent = static_cast<float>(number_of(given, "sent"));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<double> chunks(n / TERSE_REDUCTION_CHUNK + 1, 0.0);
    in_chunks(n, [&](size_t chunk, size_t i, size_t count) {
        chunks[chunk] = moments.carry(error + i, signs + i / 8, m + i, g + i, hold ? hold + i / 8 : nullptr, count, keep, add, sent);
    });
    return squares_of(info, chunks, error, n);
}

Napi::Value moments_carry_mean(const Napi::CallbackInfo& info) {
    size_t n;
    float* error = first_floats_of(info[0], "error", n);
    uint8_t* signs = packed_signs_of(info[1], "signs", n);
    const PackedMomenta wires(info[2], n);
    const Napi::Object given = options_of(info, 3);
    const uint8_t* hold = hold_of(given, n);
    const float sent = static_cast<float>(number_of(given, "sent"));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<double> chunks(n / TERSE_REDUCTION_CHUNK + 1, 0.0);
    in_chunks(n, [&](size_t chunk, size_t i, size_t count) {
        std::vector<const uint8_t*> part(wires.signs);
        for (auto& from : part) from += i / 8;
        chunks[chunk] = moments.carry_mean(error + i, signs + i / 8, part.data(), wires.scales.data(), part.size(), hold ? hold + i / 8 : nullptr, count, sent);
    });
    return squares_of(info, chunks, error, n);
}

// The sums of chunks are added in order, so they do not depend on the number of threads.
Napi::Value moments_squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* theta = first_floats_of(info[0], "θ", n);
    const float* m = floats_of(info[1], "m", n);
    const float* v = floats_of(info[2], "v", n);
    const terse_adam_update update = adam_update_of(options_of(info, 3));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<std::array<double, 2>> chunks(n / TERSE_REDUCTION_CHUNK + 1);
    in_chunks(n, [&](size_t chunk, size_t begin, size_t count) { moments.squares(theta + begin, m + begin, v + begin, count, &update, chunks[chunk].data()); });
    double sums[2] = {0, 0};
    for (const auto& chunk : chunks) sums[0] += chunk[0], sums[1] += chunk[1];
    return two_numbers(info.Env(), sums);
}

// Returns the sums and the accepted elements.
Napi::Value moments_accumulate_and_squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    float* v = floats_of(info[2], "v", n);
    const float* g = floats_of(info[3], "g", n);
    const terse_moments_options options = moments_options_of(options_of(info, 4));
    const terse_adam_update update = adam_update_of(options_of(info, 5));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<std::array<double, 2>> chunks(n / TERSE_REDUCTION_CHUNK + 1);
    std::vector<size_t> good(chunks.size(), 0);
    in_chunks(n, [&](size_t chunk, size_t begin, size_t count) {
        good[chunk] = moments.accumulate_and_squares(theta + begin, m + begin, v + begin, g + begin, count, &options, &update, chunks[chunk].data());
    });
    size_t accepted = n;
    for (size_t chunk = chunks.size(); chunk-- > 0;) {
        const size_t begin = chunk * TERSE_REDUCTION_CHUNK;
        if (begin < n && good[chunk] < std::min<size_t>(TERSE_REDUCTION_CHUNK, n - begin)) accepted = begin + good[chunk];
    }
    double sums[2] = {0, 0};
    for (const auto& chunk : chunks) sums[0] += chunk[0], sums[1] += chunk[1];
    Napi::Array result = two_numbers(info.Env(), sums);
    result[2u] = Napi::Number::New(info.Env(), static_cast<double>(accepted));
    return result;
}

void moments_apply(const Napi::CallbackInfo& info) {
    size_t n;
    float* theta = first_floats_of(info[0], "θ", n);
    float* m = floats_of(info[1], "m", n);
    const float* v = floats_of(info[2], "v", n);
    const Napi::Object given = options_of(info, 3);
    const terse_adam_update update = adam_update_of(given);
    const float rate = static_cast<float>(number_of(given, "rate"));
    const PackedMomentum packed(info[4], n);
    const terse_moments& moments = table_of<terse_moments>(info);
    in_parallel(n, [&](size_t i, size_t end) {
        const terse_packed_momentum part = packed.from(i);
        moments.apply(theta + i, m + i, v + i, end - i, &update, rate, packed.given ? &part : nullptr);
    });
}

Napi::Value moments_refresh(const Napi::CallbackInfo& info) {
    size_t n;
    float* fresh = first_floats_of(info[0], "fresh", n);
    const float* frozen = floats_of(info[1], "frozen", n);
    float* m = floats_of(info[2], "m", n);
    const PackedMomentum packed(is_packed(info[3]) ? info[3] : info.Env().Undefined(), n);
    const float* last = packed.given ? m : floats_of(info[3], "last", n);
    const terse_refresh_options options = refresh_options_of(options_of(info, 4));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<float> chunks(n / TERSE_REDUCTION_CHUNK + 1, 0.0f);
    in_chunks(n, [&](size_t chunk, size_t i, size_t count) {
        const terse_packed_momentum part = packed.from(i);
        chunks[chunk] = moments.refresh(fresh + i, frozen + i, m + i, last + i, count, &options, packed.given ? &part : nullptr);
    });
    return Napi::Number::New(info.Env(), *std::max_element(chunks.begin(), chunks.end()));
}

Napi::Value sum_of_squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* x = first_floats_of(info[0], "x", n);
    return Napi::Number::New(info.Env(), terse_sum_of_squares(&table_of<terse_reductions>(info), x, n));
}

Napi::Value address_of(const Napi::CallbackInfo& info) {
    return Napi::BigInt::New(info.Env(), static_cast<uint64_t>(reinterpret_cast<uintptr_t>(terse::buffer_of(info[0], "buffer").data)));
}

// The tables are static constants: a method's data is a pointer to its table, which is never freed.
template <typename Table>
void* data_of(const Table* table) { return const_cast<Table*>(table); }

Napi::Value lions(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_lion* lion;
    for (uint32_t i = 0; (lion = terse_lion_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = lion->implementation;
        object["vote"] = Napi::Function::New<lion_vote>(env, "vote", data_of(lion));
        object["mix"] = Napi::Function::New<lion_mix>(env, "mix", data_of(lion));
        object["step"] = Napi::Function::New<lion_step>(env, "step", data_of(lion));
        object["applySigns"] = Napi::Function::New<apply_signs>(env, "applySigns", data_of(lion));
        object["applyTernary"] = Napi::Function::New<apply_ternary>(env, "applyTernary", data_of(lion));
        object["applyTally"] = Napi::Function::New<apply_tally>(env, "applyTally", data_of(lion));
        list[i] = object;
    }
    return list;
}

Napi::Value adamws(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_adamw* adamw;
    for (uint32_t i = 0; (adamw = terse_adamw_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = adamw->implementation;
        object["step"] = Napi::Function::New<adamw_step>(env, "step", data_of(adamw));
        list[i] = object;
    }
    return list;
}

Napi::Value sgds(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_sgd* sgd;
    for (uint32_t i = 0; (sgd = terse_sgd_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = sgd->implementation;
        object["step"] = Napi::Function::New<sgd_step>(env, "step", data_of(sgd));
        list[i] = object;
    }
    return list;
}

Napi::Value moments(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_moments* moments;
    for (uint32_t i = 0; (moments = terse_moments_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = moments->implementation;
        object["accumulate"] = Napi::Function::New<moments_accumulate>(env, "accumulate", data_of(moments));
        object["carry"] = Napi::Function::New<moments_carry>(env, "carry", data_of(moments));
        object["carryMean"] = Napi::Function::New<moments_carry_mean>(env, "carryMean", data_of(moments));
        object["squares"] = Napi::Function::New<moments_squares>(env, "squares", data_of(moments));
        object["accumulateAndSquares"] = Napi::Function::New<moments_accumulate_and_squares>(env, "accumulateAndSquares", data_of(moments));
        object["apply"] = Napi::Function::New<moments_apply>(env, "apply", data_of(moments));
        object["refresh"] = Napi::Function::New<moments_refresh>(env, "refresh", data_of(moments));
        list[i] = object;
    }
    return list;
}

Napi::Value low_ranks(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_low_rank* low_rank;
    for (uint32_t i = 0; (low_rank = terse_low_rank_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = low_rank->implementation;
        object["add"] = Napi::Function::New<low_rank_add>(env, "add", data_of(low_rank));
        object["normalize"] = Napi::Function::New<low_rank_normalize>(env, "normalize", data_of(low_rank));
        list[i] = object;
    }
    return list;
}

Napi::Value reductions(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    Napi::Array list = Napi::Array::New(env);
    const terse_reductions* reductions;
    for (uint32_t i = 0; (reductions = terse_reductions_at(i)); i++) {
        Napi::Object object = Napi::Object::New(env);
        object["implementation"] = reductions->implementation;
        object["sumOfSquares"] = Napi::Function::New<sum_of_squares>(env, "sumOfSquares", data_of(reductions));
        list[i] = object;
    }
    return list;
}

Napi::Value fingerprint(const Napi::CallbackInfo& info) {
    size_t n = 0;
    const float* x = first_floats_of(info[0], "x", n);
    return Napi::BigInt::New(info.Env(), terse_fingerprint(x, n));
}

void use_threads(const Napi::CallbackInfo& info) {
    const double threads = info[0].IsNumber() ? info[0].As<Napi::Number>().DoubleValue() : 0;
    if (!(threads >= 1 && threads <= 65536) || threads != std::floor(threads)) throw Napi::RangeError::New(info.Env(), "threads: expected an integer >= 1");
    terse_parallel_use(static_cast<unsigned>(threads));
}

void use_team(const Napi::CallbackInfo& info) {
    bool whole = false;
    const uint64_t address = info[0].IsBigInt() ? info[0].As<Napi::BigInt>().Uint64Value(&whole) : 0;
    if (!whole || address == 0) throw Napi::TypeError::New(info.Env(), "team: expected the address of a function, as a bigint");
    terse_parallel_lend(reinterpret_cast<terse_parallel_team*>(address));
}

Napi::Object init(Napi::Env env, Napi::Object exports) {
    exports["abi"] = Napi::Number::New(env, terse_optimizers_abi());
    exports["lions"] = Napi::Function::New<lions>(env, "lions");
    exports["adamws"] = Napi::Function::New<adamws>(env, "adamws");
    exports["sgds"] = Napi::Function::New<sgds>(env, "sgds");
    exports["moments"] = Napi::Function::New<moments>(env, "moments");
    exports["lowRanks"] = Napi::Function::New<low_ranks>(env, "lowRanks");
    exports["reductions"] = Napi::Function::New<reductions>(env, "reductions");
    exports["fingerprint"] = Napi::Function::New<fingerprint>(env, "fingerprint");
    exports["useThreads"] = Napi::Function::New<use_threads>(env, "useThreads");
    exports["useTeam"] = Napi::Function::New<use_team>(env, "useTeam");
    exports["openCuda"] = Napi::Function::New<open_cuda>(env, "openCuda");
    exports["addressOf"] = Napi::Function::New<address_of>(env, "addressOf");
    return exports;
}

}  // namespace

NODE_API_MODULE(optimizers, init)
