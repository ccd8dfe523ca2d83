#include "../binding.h"

namespace {

void add(const Napi::CallbackInfo& info) {
    size_t floats_of_p, floats_of_q;
    const float* p = first_floats_of(info[1], "p", floats_of_p);
    const float* q = first_floats_of(info[2], "q", floats_of_q);
    const Napi::Object given = options_of(info, 3);
    const Change change(given);
    const size_t r = rank_of(given), m = rows_of(info.Env(), "p", floats_of_p, r),
                 n = rows_of(info.Env(), "q", floats_of_q, r);
    const BufferView x = buffer_of(info[0], "x", DType::f32);
    if (x.length != m * n)
        throw_length(info.Env(), "x", x.length, m * n, "floats, one for each row of p and each row of q");
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
        low_rank.add(static_cast<float*>(x.data) + begin / row * n, p + begin / row * r, packed, (end - begin) / row, n,
                     r, change.keep, change.scale);
    };
    terse_parallel(
        m * row, rows * row,
        [](void* context, size_t begin, size_t end) { (*static_cast<decltype(part)*>(context))(begin, end); }, &part);
}

void normalize(const Napi::CallbackInfo& info) {
    size_t floats;
    float* columns = first_floats_of(info[1], "columns", floats);
    float* q = floats_of(info[0], "q", floats);
    const Napi::Object given = options_of(info, 2);
    const size_t r = rank_of(given), n = rows_of(info.Env(), "columns", floats, r);
    std::vector<double> norms(r);
    table_of<terse_low_rank>(info).normalize(q, columns, n, r, number_of(given, "threshold"), norms.data());
}

}  // namespace

Napi::Value low_ranks(const Napi::CallbackInfo& info) {
    return implementations(info, terse_low_rank_at, {method<add>("add"), method<normalize>("normalize")});
}
