// Compares every vote with the scalar one: the same planes, nothing written outside them, the same refusals.
#include <stdio.h>
#include <string.h>

#include "check/check.h"

enum { MOST = 8400, BITS = MOST / 8 + 80, MARGIN = 40, MANY = 1024 };
static uint8_t vote_room[MANY][BITS], plane_room[2][16][BITS + 2 * MARGIN];

static void check_vote(const terse_vote *vote, const terse_vote *scalar) {
    static const size_t ranks_list[] = {1,  2,  3,  4,  5,  6,   7,   8,   9,   15,  16,   17,
                                        31, 32, 33, 63, 64, 100, 255, 256, 511, 513, 1023, 1024};
    const uint8_t *votes[MANY];
    for (size_t r = 0; r < sizeof ranks_list / sizeof *ranks_list; r++) {
        const size_t ranks = ranks_list[r];
        for (size_t l = 0; l < length_count; l += ranks > 17 && l < 60 ? 7 : 1) {
            const size_t n = lengths[l], shift = random_word() % 32;
            for (size_t v = 0; v < ranks; v++) {
                votes[v] = vote_room[v] + (shift + 3 * v) % 32;
                random_bytes(vote_room[v], BITS);
                // The random votes of many ranks nearly tie, so few elements reach the ends of the count. Hence some
                // ranks agree.
                if (v && random_word() % 3 == 0) memcpy((uint8_t *)votes[v], votes[v - 1], BITS - 64);
            }
            const int some_absent = random_word() % 2;
            for (size_t v = 1; v < ranks && some_absent; v++)
                if (random_word() % 4 == 0) votes[v] = NULL;
            for (int kind = 0; kind < 4; kind++) {
                memset(plane_room, SENTINEL, sizeof plane_room);
                uint8_t *out[2][16];
                for (int side = 0; side < 2; side++)
                    for (int k = 0; k < 16; k++) out[side][k] = plane_room[side][k] + shift;
                const char *what[] = {"majority, ties minus", "majority, ties plus", "majority or zero", "tally"};
                for (int side = 0; side < 2; side++) {
                    const terse_vote *by = side ? scalar : vote;
                    if (kind < 2)
                        by->majority(out[side][0], votes, ranks, n, kind ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS);
                    else if (kind == 2) by->majority_or_zero(out[side][0], out[side][1], votes, ranks, n);
                    else by->tally(out[side], votes, ranks, n);
                }
                expect(!memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, n,
                       what[kind]);
            }
        }
    }
    memset(votes, 0, sizeof votes);
    memset(plane_room, SENTINEL, sizeof plane_room);
    uint8_t *planes[16];
    for (int k = 0; k < 16; k++) planes[k] = plane_room[0][k];
    const int refused = vote->majority(planes[0], votes, MANY, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS &&
                        vote->majority_or_zero(planes[0], planes[1], votes, MANY, 8) == TERSE_CODEC_BAD_RANKS &&
                        vote->tally(planes, votes, MANY, 8) == TERSE_CODEC_BAD_RANKS;
    expect(refused && !memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, 8,
           "all absent is refused, and nothing written");
    uint8_t *room = plane_room[0][0];
    const uint8_t *two[] = {room + 8, room + 40};
    uint8_t *beside[] = {room, room + 24}, *across[] = {room, room + 1};
    int overlaps = vote->majority(room + 9, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority(room + 33, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority_or_zero(room, room + 47, two, 2, 64) == TERSE_CODEC_OVERLAP &&
                vote->majority_or_zero(room + 7, room + 24, two, 2, 64) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->majority_or_zero(room + 24, room + 31, two, 2, 64) == TERSE_CODEC_OVERLAP &&
                vote->tally(across, two, 2, 64) == TERSE_CODEC_OVERLAP;
    overlaps &= vote->tally((uint8_t *[]){room, room + 15}, two, 2, 64) == TERSE_CODEC_OVERLAP;
    expect(overlaps && !memcmp(plane_room[0], plane_room[1], sizeof *plane_room), "vote", vote->implementation, 64,
           "a result across a vote or another result is refused, and nothing written");
    expect(vote->tally(beside, two, 2, 64) == TERSE_CODEC_OK &&
               vote->majority(room + 8, two, 2, 64, TERSE_ZERO_PLUS) == TERSE_CODEC_OK,
           "vote", vote->implementation, 64, "results between votes, and in place of one");
    expect(vote->majority(plane_room[0][0], votes, 0, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote",
           vote->implementation, 8, "0 ranks are refused");
    expect(vote->majority(plane_room[0][0], votes, MANY + 1, 8, TERSE_ZERO_PLUS) == TERSE_CODEC_BAD_RANKS, "vote",
           vote->implementation, 8, "1025 ranks are refused");
}

void terse_check_vote(void) {
    const terse_vote *vote, *scalar;
    expect(terse_vote_find(&vote, "sse9") == TERSE_CODEC_UNAVAILABLE, "vote", "sse9", 0,
           "an implementation that there is not");
    expect(terse_vote_find(&scalar, "scalar") == TERSE_CODEC_OK, "vote", "scalar", 0, "found");
    for (size_t i = 0; (vote = terse_vote_at(i)); i++) {
        if (!asked_for(vote->implementation)) continue;
        const long before = checks;
        check_vote(vote, scalar);
        printf("vote %s %ld checks\n", vote->implementation, checks - before);
    }
}
