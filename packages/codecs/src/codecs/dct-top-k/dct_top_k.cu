// dct-top-k on a GPU: transforms each chunk of x, in fp64 and in the order of dct_top_k.h, and writes the k largest
// coefficients to the wire.
//
//   chunk                      threads   numbers at once
//   up to 256 floats           a warp    as many chunks as make 256 numbers; warps do not wait for each other
//   up to 4096 floats          a block   as many chunks as make 4096 numbers
//   a square of more           a block   4096; the square itself is in the workspace
#include "kernels.cuh"

static bool for_warps(size_t length) { return length <= OF_THREAD * WARP; }

static alike chunks_alike(size_t chunks, size_t length, size_t side, size_t k, size_t begin, size_t wire_begin) {
    const size_t kept = k < length ? k : length, index_bytes = terse_index_bytes(kept, length),
                 numbers = for_warps(length) ? OF_THREAD * WARP : AT_ONCE;
    const auto by = [](size_t value) { return divisor::by((unsigned)value); };
    const divisor at_once = by(chunks == 0 ? 0 : numbers / (length <= AT_ONCE ? length : side));
    return {chunks,
            index_bytes + 4 * kept,
            at_once,
            by(length),
            by(side),
            by(kept),
            by(terse_index_bits(length)),
            (unsigned)index_bytes,
            begin,
            wire_begin};
}

// Whole chunks, and what is left behind them. The workspace: a word for what does not fit | bases | planes
struct plan {
    bool squares;
    alike whole, rest;

    plan(size_t n, const terse_codec_options *o) : squares(o->dimensions == 2) {
        const size_t length = squares ? o->block * o->block : o->block;
        whole = chunks_alike(n / length, length, o->block, o->k, 0, 0);
        rest = chunks_alike(n % length ? 1 : 0, n % length, n % length, o->k, n - n % length, n / length * whole.bytes);
    }
    size_t blocks_of_planes() const {
        return whole.length.value <= AT_ONCE ? 0 : whole.chunks < MOST_PLANES ? whole.chunks : MOST_PLANES;
    }
    size_t bases() const { return 1; }
    size_t basis_of_rest() const { return bases() + 3 + whole.side.value; }
    size_t planes() const { return basis_of_rest() + (rest.chunks ? 3 + rest.side.value : 0); }
    size_t bytes() const { return 8 * (planes() + blocks_of_planes() * whole.length.value); }
};

static size_t workspace_bytes(size_t n, const terse_codec_options *o) { return plan(n, o).bytes(); }

static terse_codec_status put_basis(basis *b, double *factors, const alike &a, void *stream) {
    const unsigned side = a.side.value, odd = side >> a.side.shift;
    *b = {factors, divisor::by(odd)};
    return a.chunks ? launch(dct_put_basis, divided_up(side + 1, THREADS), THREADS, stream, factors, side, odd)
                    : TERSE_CODEC_OK;
}

// Two or three blocks fit a multiprocessor, and one computes while another waits for memory. More numbers a thread
// would need more registers than there are.
template <class Team>
static size_t blocks_of(const alike &a) {
    return a.chunks ? divided_up(divided_up(a.chunks, a.at_once.value), Team::BLOCK / Team::SIZE) : 0;
}

static terse_codec_status encode(uint8_t *wire, const float *x, size_t n, const terse_codec_options *o, void *workspace,
                                 uint64_t *bad, void *stream) {
    const plan p(n, o);
    double *const room = (double *)workspace;
    uint64_t *const misfit = (uint64_t *)workspace;
    terse_codec_status status = terse_cuda_status(cudaMemsetAsync(misfit, 0xff, sizeof *misfit, (cudaStream_t)stream));
    const auto encode_alike = [&](const alike &a, double *factors) {
        basis b;
        if (status == TERSE_CODEC_OK) status = put_basis(&b, factors, a, stream);
        if (status != TERSE_CODEC_OK) return;
        const bool squares = p.squares;
        if (a.length.value > AT_ONCE)
            status = launch(dct_encode_large, p.blocks_of_planes(), THREADS, stream, wire, x, a, b, room + p.planes(),
                            bad, misfit);
        else if (for_warps(a.length.value))
            status = launch(squares ? dct_encode<warp_team, true> : dct_encode<warp_team, false>,
                            blocks_of<warp_team>(a), warp_team::BLOCK, stream, wire, x, a, b, bad, misfit);
        else
            status = launch(squares ? dct_encode<block_team, true> : dct_encode<block_team, false>,
                            blocks_of<block_team>(a), block_team::BLOCK, stream, wire, x, a, b, bad, misfit);
    };
    encode_alike(p.whole, room + p.bases());
    if (p.rest.chunks) encode_alike(p.rest, room + p.basis_of_rest());
    return status == TERSE_CODEC_OK ? launch(refuse_too, 1, WARP, stream, bad, misfit) : status;
}

static terse_codec_status decode_add(float *sum, const uint8_t *wire, size_t n, const terse_codec_options *o,
                                     void *workspace, uint64_t *bad, void *stream) {
    const plan p(n, o);
    double *const room = (double *)workspace;
    terse_codec_status status = launch(dct_check_wire, divided_up(p.whole.chunks, THREADS / WARP), THREADS, stream,
                                       wire, p.whole, bad);
    if (status == TERSE_CODEC_OK) status = launch(dct_check_wire, p.rest.chunks, THREADS, stream, wire, p.rest, bad);
    const auto decode_alike = [&](const alike &a, double *factors) {
        basis b;
        if (status == TERSE_CODEC_OK) status = put_basis(&b, factors, a, stream);
        if (status != TERSE_CODEC_OK) return;
        const bool squares = p.squares;
        if (a.length.value > AT_ONCE)
            status = launch(dct_decode_add_large, p.blocks_of_planes(), THREADS, stream, sum, wire, a, b,
                            room + p.planes(), o->scale, bad);
        else if (for_warps(a.length.value))
            status = launch(squares ? dct_decode_add<warp_team, true> : dct_decode_add<warp_team, false>,
                            blocks_of<warp_team>(a), warp_team::BLOCK, stream, sum, wire, a, b, o->scale, bad);
        else
            status = launch(squares ? dct_decode_add<block_team, true> : dct_decode_add<block_team, false>,
                            blocks_of<block_team>(a), block_team::BLOCK, stream, sum, wire, a, b, o->scale, bad);
    };
    decode_alike(p.whole, room + p.bases());
    if (p.rest.chunks) decode_alike(p.rest, room + p.basis_of_rest());
    return status;
}

extern const terse_codec_cuda terse_dct_top_k_cuda;
const terse_codec_cuda terse_dct_top_k_cuda = {&terse_dct_top_k_scalar, workspace_bytes, encode, decode_add};
