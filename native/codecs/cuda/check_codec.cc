// Compares every kernel of a codec with its scalar C. They give the same bytes, the same sums and the same first bad
// element, and write nothing outside the arrays, for every length and alignment.
#include <cmath>

#include "check.h"

namespace {
// Whether the floats are equal bit for bit; all NaN are equal.
bool same_floats(const device_bytes &there, const std::vector<float> &expected) {
    const std::vector<uint8_t> bytes = there.get();
    for (size_t i = 0; i < expected.size(); i++) {
        float value;
        std::memcpy(&value, bytes.data() + 4 * i, 4);
        if (std::memcmp(&value, &expected[i], 4) && !(std::isnan(value) && std::isnan(expected[i]))) return false;
    }
    return true;
}

}  // namespace

void check_length(const terse_codec_cuda *codec, const configuration &c, size_t length, int kind) {
    if (length < c.least) return;
    size_t n = length;
    const terse_codec *scalar = codec->definition;
    // In half of the calls all arrays are aligned, in the other half they begin anywhere.
    const bool aligned = random_word() % 2 == 0;
    const auto shift = [&](size_t unit) { return aligned ? 0 : unit * (random_word() % (32 / unit)); };
    terse_codec_options o = options_of(&c, n);
    if (o.dimensions == 2) n -= n % (o.block * o.block);  // whole squares only
    o.scale = kind == 1 ? 1.0f : 0.3f;
    char what[80];
    std::snprintf(what, sizeof what, "%s, %s,", scalar->name, c.how);
    const auto expecting = [&](bool good, const char *how) { expect(good, what, "cuda", n, how); };

    std::vector<float> x(n);
    for (float &value : x)
        value = kind == 0   ? (random_word() % 2 ? 0.0f : -0.0f)
                : c.number  ? c.number()
                : kind == 1 ? any_float()
                            : gradient();
    size_t bytes = 0, room = 0;
    expecting(terse_codec_wire_bytes(scalar, n, &o, &bytes) == TERSE_CODEC_OK, "bytes of the wire");
    expecting(terse_codec_cuda_workspace_bytes(codec, n, &o, &room) == TERSE_CODEC_OK && room % 8 == 0,
              "bytes of the workspace");

    device_bytes x_there(n * 4, shift(4)), wire_there(bytes, shift(1)), sum_there(n * 4, shift(4)), workspace(room, 0),
        bad(8, 0);
    device_bytes hold_there(o.hold ? n / 8 + (n % 8 != 0) : 0, shift(1));
    terse_codec_options there = o;
    if (o.hold) hold_there.put(o.hold), there.hold = hold_there.at;
    const auto encode = [&] {
        return terse_codec_cuda_encode(codec, wire_there.at, bytes, (const float *)x_there.at, n, &there, workspace.at,
                                       room, (uint64_t *)bad.at, nullptr);
    };

    std::vector<uint8_t> wire(bytes);
    size_t first_bad = n;
    const terse_codec_status encoded = terse_codec_encode(scalar, wire.data(), bytes, x.data(), n, &o, &first_bad);
    x_there.put(x.data());
    expecting(encode() == TERSE_CODEC_OK, "encode's status");
    if (encoded == TERSE_CODEC_OK) {
        expecting(bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD, "good numbers are good");
        expecting(wire_there.get() == wire, "wire bytes");
    } else {
        expecting(bad_on_device(bad) == first_bad, "index of the first element that does not fit");
    }

    // Error feedback: first with errors whose sum with x is sometimes not finite or does not fit, then with an x that
    // is not finite.
    for (int spoilt = 0; spoilt < (n ? 2 : 1) && (n + (size_t)kind) % 2 == 0; spoilt++) {
        std::vector<float> error(n), given = x;
        const bool any = kind == 1 && random_word() % 2;
        for (float &value : error) value = any ? any_float() : c.number ? c.number() : gradient();
        if (spoilt) given[random_word() % n] = NAN;
        device_bytes given_there(n * 4, shift(4)), error_there(n * 4, shift(4));
        given_there.put(given.data()), error_there.put(error.data());
        std::vector<uint8_t> expected_wire(bytes);
        const std::vector<float> before = error;
        const terse_codec_status expected = terse_codec_encode_with_feedback(
            scalar, expected_wire.data(), bytes, given.data(), error.data(), n, &o, &first_bad);
        if (expected != TERSE_CODEC_OK) {  // then the error that C leaves depends on the pieces in which it works
            const auto first_infinite = [&](const auto &value) {
                size_t i = 0;
                while (i < n && std::isfinite(value(i))) i++;
                return i;
            };
            size_t infinite = first_infinite([&](size_t i) { return given[i]; });
            if (infinite == n) infinite = first_infinite([&](size_t i) { return o.decay * before[i] + given[i]; });
            for (size_t i = 0; i < n; i++)
                error[i] = infinite < n ? before[i] : ((o.decay * before[i] + given[i]) - given[i]) / o.decay;
            if (infinite < n) first_bad = infinite;
        }
        expecting(terse_codec_cuda_encode_with_feedback(codec, wire_there.at, bytes, (const float *)given_there.at,
                                                        (float *)error_there.at, n, &there, workspace.at, room,
                                                        (uint64_t *)bad.at, nullptr) == TERSE_CODEC_OK,
                  "encode_with_feedback's status");
        expecting(bad_on_device(bad) == (expected == TERSE_CODEC_OK ? TERSE_CODEC_CUDA_GOOD : first_bad),
                  "what is refused with feedback");
        expecting(expected != TERSE_CODEC_OK || wire_there.get() == expected_wire, "wire bytes with feedback");
        expecting(same_floats(error_there, error), spoilt ? "an error of refused floats" : "the error that stays");
        expecting(given_there.margins_are_whole() && error_there.margins_are_whole(),
                  "bytes outside the arrays of feedback");
    }

    const std::vector<uint8_t> written = wire;
    for (int any = encoded != TERSE_CODEC_OK; any < 3; any++) {
        if (any == 1) wire = any_bytes(bytes);  // decoding must agree on any bytes
        if (any == 2) {
            if (encoded != TERSE_CODEC_OK || !bytes) break;
            wire = written, wire[random_word() % bytes] ^= (uint8_t)(1 << random_word() % 8);
        }
        wire_there.put(wire.data());
        std::vector<float> sum(n);
        for (float &value : sum) value = any_float() * 0.25f;
        sum_there.put(sum.data());
        const terse_codec_status status = terse_codec_decode_add(scalar, sum.data(), n, wire.data(), bytes, &o);
        expecting(terse_codec_cuda_decode_add(codec, (float *)sum_there.at, n, wire_there.at, bytes, &there,
                                              workspace.at, room, (uint64_t *)bad.at, nullptr) == TERSE_CODEC_OK,
                  "decode_add's status");
        expecting((bad_on_device(bad) == TERSE_CODEC_CUDA_GOOD) == (status == TERSE_CODEC_OK), "which wires are bad");
        const std::vector<uint8_t> sums = sum_there.get();
        expecting(!n || !std::memcmp(sums.data(), sum.data(), sums.size()),
                  any ? "decoded sums of any bytes" : "decoded sums");
    }

    for (int trial = 0; n && trial < (n > 60000 ? 1 : 2); trial++) {  // one bad element, sometimes a second one after
                                                                      // it
        static const float worst[] = {NAN, -INFINITY, INFINITY, -NAN};
        const size_t first = random_word() % n, second = first + random_word() % (n - first);
        std::vector<float> spoilt = x;
        spoilt[second] = worst[trial + 1], spoilt[first] = worst[trial];
        const terse_codec_status refused = terse_codec_encode(scalar, wire.data(), bytes, spoilt.data(), n, &o,
                                                              &first_bad);
        x_there.put(spoilt.data());
        expecting(encode() == TERSE_CODEC_OK && refused != TERSE_CODEC_OK && bad_on_device(bad) == first_bad,
                  "index of the first bad element");
    }
    expecting(x_there.margins_are_whole() && wire_there.margins_are_whole() && sum_there.margins_are_whole() &&
                  workspace.margins_are_whole() && bad.margins_are_whole(),
              "bytes outside the arrays");
}

void check_refusals(const terse_codec_cuda *codec, const configuration &c) {
    constexpr size_t N = 128;
    const char *name = codec->definition->name;
    terse_codec_options good = options_of(&c, N), o;
    good.hold = nullptr;
    if (good.dimensions == 2) good.block = 8, good.k = 5;  // N floats are two squares
    size_t bytes = 0, room = 0;
    terse_codec_cuda_workspace_bytes(codec, N, &good, &room);
    terse_codec_cuda_wire_bytes(codec, N, &good, &bytes);
    device_bytes x(N * 4, 0), wire(bytes, 0), workspace(room + 8, 0), bad(8, 0);
    const auto refuses = [&](terse_codec_status status, const char *what, const terse_codec_options &options,
                             size_t wire_bytes, const void *at, size_t have) {
        expect(terse_codec_cuda_encode(codec, wire.at, wire_bytes, (const float *)at, N, &options, workspace.at, have,
                                       (uint64_t *)bad.at, nullptr) == status,
               name, "cuda", N, what);
    };
    refuses(TERSE_CODEC_BAD_LENGTH, "a wire too long", good, bytes + 1, x.at, room);
    if (room) refuses(TERSE_CODEC_BAD_LENGTH, "a workspace too small", good, bytes, x.at, room - 1);
    refuses(TERSE_CODEC_OVERLAP, "a wire inside the floats", good, bytes, wire.at, room);
    refuses(TERSE_CODEC_MISALIGNED, "floats at half a float", good, bytes, x.at + 2, room);
    o = good, o.size--;
    refuses(TERSE_CODEC_BAD_ABI, "options of another version", o, bytes, x.at, room);
    if (codec->definition->takes & TERSE_TAKES_ZERO)
        o = good, o.zero = TERSE_ZERO_UNSET,
        refuses(TERSE_CODEC_BAD_ZERO, "a zero that is not set", o, bytes, x.at, room);
    if (codec->definition->takes & TERSE_TAKES_RANDOM)
        o = good, o.index = 32, refuses(TERSE_CODEC_BAD_INDEX, "an index of half a word", o, bytes, x.at, room);
    device_bytes error(N * 4, 0);
    const auto feeds = [&](terse_codec_status status, const char *what, const void *from, const void *to, size_t have) {
        expect(terse_codec_cuda_encode_with_feedback(codec, wire.at, bytes, (const float *)from, (float *)to, N, &good,
                                                     workspace.at, have, (uint64_t *)bad.at, nullptr) == status,
               name, "cuda", N, what);
    };
    feeds(TERSE_CODEC_BAD_LENGTH, "a workspace too small for feedback", x.at, error.at, room - 1);
    feeds(TERSE_CODEC_OVERLAP, "an error inside the floats", x.at, x.at + 4, room);
    feeds(TERSE_CODEC_OVERLAP, "floats inside the workspace", workspace.at, error.at, room);
    feeds(TERSE_CODEC_MISALIGNED, "floats of feedback at half a float", x.at + 2, error.at, room);
    feeds(TERSE_CODEC_MISALIGNED, "an error at half a float", x.at, error.at + 2, room);
    o = good, o.scale = INFINITY;
    expect(terse_codec_cuda_decode_add(codec, (float *)x.at, N, wire.at, bytes, &o, workspace.at, room,
                                       (uint64_t *)bad.at, nullptr) == TERSE_CODEC_BAD_SCALE,
           name, "cuda", N, "an infinite scale");
    expect(wire.margins_are_whole() && wire.get() == std::vector<uint8_t>(bytes, SENTINEL), name, "cuda", N,
           "a refused call writes nothing");
}
