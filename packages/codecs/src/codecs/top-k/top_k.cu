// top-k on a GPU: the k largest magnitudes of x (n), the earlier of equal ones -> k indices of ceil(log2 n) bits, k
// floats.
//
//   sample   at most 2^16 magnitudes in 2048 ranges: where the k-th largest probably lies
//   count    all magnitudes, in 2048 ranges of what is in sight; the last block to end picks the range that holds the
//            k-th. Once where it is known exactly, else again within that range; after a sample that misled, everywhere
//   choose   a tile of 4096 at a time: those above the k-th, and the first that equal it, to their places
//   pack     their indices; of Elias-Fano's, the bits are set in words of the workspace, and copied
//   values   to 16 bits, to 2 bits and a table, or to signs and a table
//
// Decoding reads Elias-Fano's marks in tiles too: the place of a mark gives its index once the marks before it are
// counted.
//
// Three readings of x: two to count and one to choose, as long as the sample is right. How often to count is known on
// the device only, so all four rounds that it can take are launched, and those that are not needed return at once.
#include "kept_indices.cuh"
#include "kept_values.cuh"
#include "search.cuh"

// *bad = the first index that does not ascend below n, or whose float is not finite; 0 for a bad table or pad bits.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_check_wire(places<Index> in, kept_on_wire kept, size_t n, size_t k, uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    if (first_thread() == 0 && !kept.is_good(k)) refuse(bad, 0);
    for (size_t j = first_thread(); j < k; j += all_threads()) {
        const size_t index = in.at(j);
        const bool ascends = j == 0 || index > in.at(j - 1);
        if (!ascends || index >= n || !kept.is_finite(j)) refuse(bad, j);
    }
}

// No two indices are the same.
template <class Index>
__global__ void __launch_bounds__(THREADS)
    top_k_decode_add(float *sum, places<Index> in, kept_on_wire kept, size_t k, float scale, const uint64_t *bad) {
    if (*bad != TERSE_CODEC_CUDA_GOOD) return;
    for (size_t j = first_thread(); j < k; j += all_threads()) sum[in.at(j)] += scale * kept.at(j);
}

static bool short_indices(size_t n) { return n <= TERSE_SHORT_INDICES; }

// The workspace, in bytes from its beginning; what encoding expects to be 0 comes first.
//
//   search | states of tiles: above, equal; or of marks | meaning | words of the indices || the kept indices | the kept
//   values | partial sums
struct room {
    size_t states, meaning_at, words, zeros, chosen, kept, partials, all;
};

static size_t mark_tiles(const terse_index_layout &l) {
    return l.marks ? divided_up(divided_up(l.marks_at % 8 + l.marks, 8), MARKS / 8) : 0;
}

static room room_of(size_t n, const terse_codec_options *o) {
    const top_k_wire wire = top_k_wire_of(n, o);
    const bool as_they_are = o->values == TERSE_VALUES_F32, has_table = wire.indices > 0;
    const size_t of_x = 2 * divided_up(n, TILE), of_marks = mark_tiles(wire.layout), k = o->k;
    room r;
    r.states = sizeof(search);
    r.meaning_at = r.states + sizeof(unsigned long long) * (of_x > of_marks ? of_x : of_marks);
    r.words = r.meaning_at + (has_table ? sizeof(meaning) : 0);
    r.zeros = r.words + (wire.layout.marks ? whole_words(wire.layout.bytes) : 0);
    r.chosen = r.zeros;
    r.kept = r.chosen + whole_words(k * (short_indices(n) ? 4 : 8));
    r.partials = r.kept + (as_they_are ? 0 : whole_words(4 * k));
    r.all = r.partials + (has_table ? 4 * sizeof(double) * divided_up(k, TERSE_REDUCTION_CHUNK) : 0);
    return r;
}

static size_t workspace_bytes(size_t n, const terse_codec_options *o) { return room_of(n, o).all; }

// One after the other, until one cannot be launched.
#define THEN(call) \
    if (status == TERSE_CODEC_OK) status = call

// The table and the values of the kept floats, which lie in the workspace.
template <class Index>
static terse_codec_status write_values(uint8_t *wire, const top_k_wire &parts, const terse_codec_options *o,
                                       uint8_t *workspace, const room &r, uint64_t *bad, void *stream) {
    const float *const kept = (const float *)(workspace + r.kept);
    const search *const s = (const search *)workspace;
    meaning *const m = (meaning *)(workspace + r.meaning_at);
    double *const partials = (double *)(workspace + r.partials);
    uint8_t *const values = wire + parts.values, *const table = wire + parts.table;
    const size_t k = o->k;
    if (o->values == TERSE_VALUES_F16)
        return launch(top_k_halves<Index>, divided_up(k, THREADS), THREADS, stream, values, kept,
                      (const Index *)(workspace + r.chosen), k, s, bad);
    const slots all = slots_of({k, 1, k, nullptr}, TERSE_REDUCTION_CHUNK);
    terse_codec_status status = TERSE_CODEC_OK;
    const unsigned bits = o->values == TERSE_VALUES_2BIT ? 2 : 1;
    if (bits == 1) {
        THEN(sum_all<MAGNITUDES>(partials, kept, nullptr, nullptr, all, stream));
        THEN(launch(top_k_magnitude, 1, WARP, stream, table, partials, all));
    } else {
        THEN(sum_all<PLAIN>(partials, kept, nullptr, nullptr, all, stream));
        THEN(launch(top_k_mean, 1, WARP, stream, m, partials, all));
        THEN(sum_all<SQUARES>(partials, kept, nullptr, &m->mean, all, stream));
        THEN(launch(top_k_borders, 1, WARP, stream, m, partials, all));
        THEN(launch(top_k_sum_bins, divided_up(all.count, SUM_THREADS / 16), SUM_THREADS, stream, partials, m, kept,
                    all, s));
        THEN(launch(top_k_table, 1, WARP, stream, table, partials, m, all));
    }
    THEN(launch(top_k_codes, divided_up(divided_up(k * bits, 8), THREADS), THREADS, stream, values, kept, k, bits, m,
                s));
    return status;
}

template <class Index>
static terse_codec_status choose(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o,
                                 uint8_t *workspace, const room &r, uint64_t *bad, void *stream) {
    search *const s = (search *)workspace;
    unsigned long long *const states = (unsigned long long *)(workspace + r.states);
    Index *const chosen = (Index *)(workspace + r.chosen);
    const top_k_wire parts = top_k_wire_of(n, o);
    const terse_index_layout &l = parts.layout;
    const size_t k = o->k, tiles = divided_up(n, TILE), blocks = tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS;
    const bool as_they_are = o->values == TERSE_VALUES_F32;
    uint8_t *const indices = wire + parts.indices, *const values = as_they_are ? wire + parts.values
                                                                               : workspace + r.kept;
    terse_codec_status status = launch(top_k_choose<Index>, blocks, THREADS, stream, values, multiples_of(4, values),
                                       chosen, s, states, tiles, x, n, k, bad);
    const unsigned low = (unsigned)l.low;
    if (l.marks) {
        unsigned *const words = (unsigned *)(workspace + r.words);
        THEN(launch(top_k_set_bits<Index>, divided_up(k, THREADS), THREADS, stream, words, chosen, k, low, l.step,
                    (size_t)l.marks_at, bad));
        THEN(launch(top_k_copy_bytes, divided_up(l.bytes, THREADS), THREADS, stream, indices, words, l.bytes, bad));
    } else if (low) {
        THEN(launch(top_k_pack<Index>, divided_up(k, WARPS * PACKED), THREADS, stream, indices, chosen, k, low,
                    low % 4 == 0 && multiples_of(4, indices), bad));
    }
    if (!as_they_are) THEN(write_values<Index>(wire, parts, o, workspace, r, bad, stream));
    return status;
}

// 256 threads throughout. Counting strides over x, 6 blocks a multiprocessor: a block's 8 KiB of counts are added to
// all others' once.
static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    search *const s = (search *)workspace;
    const room r = room_of(n, o);
    const size_t units = divided_up(n, WARPS * COUNTED), blocks = units < MOST_BLOCKS ? units : MOST_BLOCKS,
                 samples = top_k_samples(n);
    terse_codec_status status = terse_cuda_status(cudaMemsetAsync(workspace, 0, r.zeros, (cudaStream_t)stream));
    if (samples) THEN(launch(top_k_sample, divided_up(samples, 4 * THREADS), THREADS, stream, s, x, n, o->k, samples));
    for (unsigned round = samples ? 0 : 1; round < 4; round++)
        THEN(launch(top_k_count, blocks, THREADS, stream, s, x, n, o->k, bad));
    const auto choosing = short_indices(n) ? choose<unsigned> : choose<unsigned long long>;
    THEN(choosing(wire, x, n, o, (uint8_t *)workspace, r, bad, stream));
    return status;
}

template <class Index>
static terse_codec_status read_and_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                       uint8_t *workspace, uint64_t *bad, void *stream) {
    const room r = room_of(n, o);
    const top_k_wire parts = top_k_wire_of(n, o);
    const terse_index_layout &l = parts.layout;
    const size_t k = o->k, blocks = divided_up(k, THREADS), tiles = mark_tiles(l);
    Index *const chosen = (Index *)(workspace + r.chosen);
    const uint8_t *const indices = wire + parts.indices;
    const unsigned bits[] = {32, 16, 2, 1};  // of terse_values
    const kept_on_wire kept = {wire + parts.table, wire + parts.values, bits[o->values]};
    const places<Index> in = {indices, l.bytes, (unsigned)l.low, l.marks ? chosen : nullptr};
    terse_codec_status status = TERSE_CODEC_OK;
    if (l.marks) {
        THEN(terse_cuda_status(cudaMemsetAsync(workspace, 0, r.meaning_at, (cudaStream_t)stream)));
        THEN(launch(top_k_read_marks<Index>, tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS, THREADS, stream, chosen,
                    (search *)workspace, (unsigned long long *)(workspace + r.states), tiles, indices, l, n, k, bad));
    }
    THEN(launch(top_k_check_wire<Index>, blocks, THREADS, stream, in, kept, n, k, bad));
    THEN(launch(top_k_decode_add<Index>, blocks, THREADS, stream, sum, in, kept, k, o->scale, bad));
    return status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    const auto read = short_indices(n) ? read_and_add<unsigned> : read_and_add<unsigned long long>;
    return read(sum, wire, n, o, (uint8_t *)workspace, bad, stream);
}

extern const terse_codec_cuda terse_top_k_cuda;
const terse_codec_cuda terse_top_k_cuda = {&terse_top_k_scalar, workspace_bytes, encode, decode_add};
