// Compares the kernels with golden vectors.
#include "../check/vectors.h"
#include "check.h"

namespace {
long golden_codec(const terse_golden_codec *golden) {
    const terse_codec_cuda *codec;
    if (terse_codec_cuda_find(&codec, golden->name) != TERSE_CODEC_OK) return 0;
    const size_t n = golden->n;
    size_t bytes = 0, room = 0;
    terse_codec_cuda_workspace_bytes(codec, n, &golden->options, &room);
    if (terse_codec_cuda_wire_bytes(codec, n, &golden->options, &bytes) != TERSE_CODEC_OK ||
        bytes != golden->wire_bytes) {
        terse_golden_differs("cuda", "the number of wire bytes");
        return 1;
    }
    terse_codec_options o = golden->options;
    const std::vector<uint8_t> wire(golden->wire, golden->wire + bytes);
    device_bytes x(4 * n, 0), to(bytes, 0), sum(4 * n, 0), hold(o.hold ? n / 8 + (n % 8 != 0) : 0, 0),
        workspace(room, 0), bad(8, 0);
    if (o.hold) hold.put(o.hold), o.hold = hold.at;
    x.put(golden->x), sum.put(golden->before);
    const terse_codec_status encoded = terse_codec_cuda_encode(codec, to.at, bytes, (const float *)x.at, n, &o,
                                                               workspace.at, room, (uint64_t *)bad.at, nullptr);
    if (encoded != TERSE_CODEC_OK || bad_on_device(bad) != TERSE_CODEC_CUDA_GOOD || to.get() != wire)
        terse_golden_differs("cuda", "the wire");
    to.put(golden->read);
    const terse_codec_status decoded = terse_codec_cuda_decode_add(codec, (float *)sum.at, n, to.at, bytes, &o,
                                                                   workspace.at, room, (uint64_t *)bad.at, nullptr);
    const std::vector<uint8_t> sums = sum.get();
    if (decoded != TERSE_CODEC_OK || bad_on_device(bad) != TERSE_CODEC_CUDA_GOOD ||
        (n && std::memcmp(sums.data(), golden->sum, 4 * n)))
        terse_golden_differs("cuda", "the sum");
    return 1;
}

long golden_vote(const terse_golden_vote *golden) {
    const size_t n = golden->n, ranks = golden->ranks, bytes = n / 8 + (n % 8 != 0), row = bytes ? bytes : 1;
    device_bytes votes(ranks * row, 0), out((2 + golden->planes) * row, 0);
    std::vector<uint8_t> all(ranks * row);
    std::vector<const uint8_t *> there(ranks);
    for (size_t r = 0; r < ranks; r++)
        if (golden->votes[r]) std::memcpy(all.data() + r * row, golden->votes[r], bytes), there[r] = votes.at + r * row;
    votes.put(all.data());
    const auto differs = [&](size_t at, const uint8_t *from) {
        return bytes && std::memcmp(out.get().data() + at * row, from, bytes);
    };
    for (int plus = 0; plus < 2; plus++) {
        const terse_codec_status status = terse_vote_cuda_majority(out.at, there.data(), ranks, n,
                                                                   plus ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS, nullptr);
        if (status != TERSE_CODEC_OK || differs(0, golden->majority[plus]))
            terse_golden_differs("cuda", "the majority");
    }
    if (terse_vote_cuda_majority_or_zero(out.at, out.at + row, there.data(), ranks, n, nullptr) != TERSE_CODEC_OK ||
        differs(0, golden->plus) || differs(1, golden->nonzero))
        terse_golden_differs("cuda", "the majority or zero");
    std::vector<uint8_t *> planes(golden->planes);
    for (size_t k = 0; k < planes.size(); k++) planes[k] = out.at + (2 + k) * row;
    bool same = terse_vote_cuda_tally(planes.data(), there.data(), ranks, n, nullptr) == TERSE_CODEC_OK;
    for (size_t k = 0; k < planes.size(); k++) same = same && !differs(2 + k, golden->plane[k]);
    if (!same) terse_golden_differs("cuda", "the tally");
    return 1;
}
}  // namespace

int check_golden() {
    const terse_golden_by by = {golden_codec, golden_vote};
    return terse_check_vectors(stdin, &by) != 0;
}
