#include "vote.h"

#include <string.h>

#include "../shared/overlap.h"

typedef uint64_t word;  // 64 elements

static inline word full_add(word *sum, word a, word b) {
    const word half = *sum ^ a, carry = (*sum & a) | (half & b);
    *sum = half ^ b;
    return carry;
}

static inline word load(const uint8_t *from, size_t bytes) {
    word elements = 0;
    if (bytes >= 8) memcpy(&elements, from, 8);
    else
        for (size_t b = 0; b < bytes; b++) elements |= (word)from[b] << (8 * b);
    return elements;
}

#include "vote_words.h"

static size_t wire_bytes(size_t n) { return n / 8 + (n % 8 != 0); }

static size_t block_bytes(size_t all, size_t at) {
    return all - at < sizeof(vote_plane) ? all - at : sizeof(vote_plane);
}

// Pad bits are 0 on every wire.
static void clear_pads(uint8_t *out, size_t n) {
    if (n % 8) out[n / 8] &= (uint8_t)((1u << n % 8) - 1);
}

// The votes of the ranks that are present. False if there are none, or too many.
typedef struct present {
    const uint8_t *votes[TERSE_VOTE_MAX_RANKS];
    size_t ranks;
} present;

static int take_present(present *p, const uint8_t *const *votes, size_t ranks) {
    p->ranks = 0;
    if (ranks > TERSE_VOTE_MAX_RANKS) return 0;
    for (size_t r = 0; r < ranks; r++)
        if (votes[r]) p->votes[p->ranks++] = votes[r];
    return p->ranks > 0;
}

// Whether a result overlaps a vote partly, so that elements would be written before they are counted. It may be the
// vote itself.
static int meets_a_vote(const uint8_t *out, const present *p, size_t bytes) {
    for (size_t r = 0; r < p->ranks; r++)
        if (p->votes[r] != out && terse_overlap(out, bytes, p->votes[r], bytes)) return 1;
    return 0;
}

typedef struct threshold {
    unsigned start;  // every counter's first value
    int top;         // the plane that is 1 where the count reached T
} threshold;

static threshold threshold_of(size_t ranks, size_t T) {
    int top = 0;
    while ((size_t)1 << top < T || (size_t)1 << top <= ranks - T) top++;  // room for T, and for ranks - T beyond it
    return (threshold){(unsigned)(((size_t)1 << top) - T), top};
}

terse_codec_status vote_majority(vote_count *count, uint8_t *out, const uint8_t *const *votes, size_t ranks, size_t n,
                                 terse_zero tie) {
    present p;
    if (!take_present(&p, votes, ranks)) return TERSE_CODEC_BAD_RANKS;
    if (tie != TERSE_ZERO_MINUS && tie != TERSE_ZERO_PLUS) return TERSE_CODEC_BAD_ZERO;
    if (meets_a_vote(out, &p, wire_bytes(n))) return TERSE_CODEC_OVERLAP;
    const threshold half = threshold_of(p.ranks, tie == TERSE_ZERO_PLUS ? (p.ranks + 1) / 2 : p.ranks / 2 + 1);
    _Alignas(64) vote_plane planes[VOTE_PLANES];
    for (size_t at = 0, all = wire_bytes(n); at < all; at += sizeof(vote_plane)) {
        const size_t bytes = block_bytes(all, at);
        count(planes, half.top, half.start, p.votes, p.ranks, at, bytes);
        memcpy(out + at, planes[half.top], bytes);
    }
    clear_pads(out, n);
    return TERSE_CODEC_OK;
}

terse_codec_status vote_majority_or_zero(vote_count *count, uint8_t *plus, uint8_t *nonzero,
                                         const uint8_t *const *votes, size_t ranks, size_t n) {
    present p;
    if (!take_present(&p, votes, ranks)) return TERSE_CODEC_BAD_RANKS;
    if (meets_a_vote(plus, &p, wire_bytes(n)) || meets_a_vote(nonzero, &p, wire_bytes(n)) ||
        terse_overlap(plus, wire_bytes(n), nonzero, wire_bytes(n)))
        return TERSE_CODEC_OVERLAP;
    const threshold half = threshold_of(p.ranks, (p.ranks + 1) / 2);
    const uint64_t odd = p.ranks % 2 ? ~(uint64_t)0 : 0;
    _Alignas(64) vote_plane planes[VOTE_PLANES], decided;
    for (size_t at = 0, all = wire_bytes(n); at < all; at += sizeof(vote_plane)) {
        const size_t bytes = block_bytes(all, at);
        count(planes, half.top, half.start, p.votes, p.ranks, at, bytes);
        uint64_t *reached = planes[half.top];
        for (size_t w = 0; 8 * w < bytes; w++) {
            uint64_t beyond = odd;  // a tie of even ranks is a count of exactly T: all planes below the top are 0
            for (int k = 0; k < half.top; k++) beyond |= planes[k][w];
            decided[w] = ~reached[w] | beyond;
            reached[w] &= beyond;
        }
        memcpy(plus + at, reached, bytes);
        memcpy(nonzero + at, decided, bytes);
    }
    clear_pads(plus, n);
    clear_pads(nonzero, n);
    return TERSE_CODEC_OK;
}

size_t terse_vote_planes(size_t ranks) {
    size_t planes = 0;
    for (; ranks; ranks >>= 1) planes++;
    return planes;
}

terse_codec_status vote_tally(vote_count *count, uint8_t *const *out, const uint8_t *const *votes, size_t ranks,
                              size_t n) {
    present p;
    if (!take_present(&p, votes, ranks)) return TERSE_CODEC_BAD_RANKS;
    // The number of planes does not depend on which ranks are absent.
    const int top = (int)terse_vote_planes(ranks) - 1;
    for (int k = 0; k <= top; k++) {
        if (meets_a_vote(out[k], &p, wire_bytes(n))) return TERSE_CODEC_OVERLAP;
        for (int other = 0; other < k; other++)
            if (terse_overlap(out[k], wire_bytes(n), out[other], wire_bytes(n))) return TERSE_CODEC_OVERLAP;
    }
    _Alignas(64) vote_plane planes[VOTE_PLANES];
    for (size_t at = 0, all = wire_bytes(n); at < all; at += sizeof(vote_plane)) {
        const size_t bytes = block_bytes(all, at);
        count(planes, top, 0, p.votes, p.ranks, at, bytes);
        for (int k = 0; k <= top; k++) memcpy(out[k] + at, planes[k], bytes);
    }
    for (int k = 0; k <= top; k++) clear_pads(out[k], n);
    return TERSE_CODEC_OK;
}

TERSE_VOTE(scalar)
