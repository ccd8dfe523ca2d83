#include "../binding.h"

#include <array>

namespace {

Napi::Value accumulate(const Napi::CallbackInfo& info) {
    size_t n;
    float* m = first_floats_of(info[0], "m", n);
    float* v = floats_of(info[1], "v", n);
    const float* g = floats_of(info[2], "g", n);
    const terse_moments_options options = moments_options_of(options_of(info, 3));
    const terse_moments& moments = table_of<terse_moments>(info);
    return accepted(info, accepted_in_parallel(n, [&](size_t i, size_t count) {
                        return moments.accumulate(m + i, v + i, g + i, count, &options);
                    }));
}

// The sums of chunks are added in order, so they do not depend on the number of threads.
Napi::Value squares(const Napi::CallbackInfo& info) {
    size_t n;
    const float* theta = first_floats_of(info[0], "θ", n);
    const float* m = floats_of(info[1], "m", n);
    const float* v = floats_of(info[2], "v", n);
    const terse_adam_update update = adam_update_of(options_of(info, 3));
    const terse_moments& moments = table_of<terse_moments>(info);
    std::vector<std::array<double, 2>> chunks(n / TERSE_REDUCTION_CHUNK + 1);
    in_chunks(n, [&](size_t chunk, size_t begin, size_t count) {
        moments.squares(theta + begin, m + begin, v + begin, count, &update, chunks[chunk].data());
    });
    double sums[2] = {0, 0};
    for (const auto& chunk : chunks) sums[0] += chunk[0], sums[1] += chunk[1];
    return two_numbers(info.Env(), sums);
}

// Returns the sums and the accepted elements.
Napi::Value accumulate_and_squares(const Napi::CallbackInfo& info) {
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
        good[chunk] = moments.accumulate_and_squares(theta + begin, m + begin, v + begin, g + begin, count, &options,
                                                     &update, chunks[chunk].data());
    });
    size_t accepted = n;
    for (size_t chunk = chunks.size(); chunk-- > 0;) {
        const size_t begin = chunk * TERSE_REDUCTION_CHUNK;
        if (begin < n && good[chunk] < std::min<size_t>(TERSE_REDUCTION_CHUNK, n - begin))
            accepted = begin + good[chunk];
    }
    double sums[2] = {0, 0};
    for (const auto& chunk : chunks) sums[0] += chunk[0], sums[1] += chunk[1];
    Napi::Array result = two_numbers(info.Env(), sums);
    result[2u] = Napi::Number::New(info.Env(), static_cast<double>(accepted));
    return result;
}

void apply(const Napi::CallbackInfo& info) {
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

Napi::Value refresh(const Napi::CallbackInfo& info) {
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
        chunks[chunk] = moments.refresh(fresh + i, frozen + i, m + i, last + i, count, &options,
                                        packed.given ? &part : nullptr);
    });
    return Napi::Number::New(info.Env(), *std::max_element(chunks.begin(), chunks.end()));
}

}  // namespace

Napi::Value moments(const Napi::CallbackInfo& info) {
    return implementations(info, terse_moments_at,
                           {
                               method<accumulate>("accumulate"),
                               method<squares>("squares"),
                               method<accumulate_and_squares>("accumulateAndSquares"),
                               method<apply>("apply"),
                               method<refresh>("refresh"),
                           });
}
