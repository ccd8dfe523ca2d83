#include "check.h"
#include "vote/vote.h"

void terse_check_vote_cuda() {
    const long before = checks;
    static const size_t all_ranks[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 64, 127, 128, 200, 1023, 1024};
    for (const size_t ranks : all_ranks)
        for (size_t l = 0; l < length_count; l++) {
            const size_t n = lengths[l];
            if (ranks > 3 && n % 3 == 0) continue;
            if (ranks > 9 && n > 5003) continue;
            if (ranks > 200 && n > 600) continue;
            const size_t bytes = n / 8 + (n % 8 != 0);
            const bool aligned = random_word() % 2 == 0;
            std::vector<std::vector<uint8_t>> votes(ranks);
            // One allocation; the distance between votes is a multiple of 16, or arbitrary.
            const size_t stride = (bytes + 15) / 16 * 16 + (aligned ? 0 : 1 + random_word() % 3);
            device_bytes there(stride * ranks, aligned ? 0 : random_word() % 16);
            std::vector<const uint8_t *> host(ranks), device(ranks);
            std::vector<uint8_t> room(stride * ranks);
            for (size_t r = 0; r < ranks; r++) {
                votes[r] = any_bytes(bytes ? bytes : 1);  // an address even where there is nothing: null would be
                                                          // absent
                // The random votes of many ranks nearly tie, so few elements reach the ends of the count. Hence some
                // ranks agree.
                if (r && random_word() % 3 == 0) votes[r] = votes[r - 1];
                if (bytes) std::memcpy(room.data() + r * stride, votes[r].data(), bytes);
                host[r] = votes[r].data(), device[r] = there.at + r * stride;
                if (ranks > 2 && random_word() % 8 == 0 && r) host[r] = device[r] = nullptr;  // absent
            }
            there.put(room.data());
            for (int kind = 0; kind < 5; kind++) {
                const size_t shift = aligned ? 0 : random_word() % 16;
                device_bytes out[VOTE_PLANES] = {{bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift},
                                                 {bytes, shift}, {bytes, shift}, {bytes, shift}, {bytes, shift},
                                                 {bytes, shift}, {bytes, shift}, {bytes, shift}};
                std::vector<uint8_t> expected[VOTE_PLANES];
                uint8_t *to[VOTE_PLANES], *expected_to[VOTE_PLANES];
                for (size_t k = 0; k < VOTE_PLANES; k++)
                    expected[k].assign(bytes, SENTINEL), expected_to[k] = expected[k].data(), to[k] = out[k].at;
                terse_codec_status status, expected_status;
                const char *what;
                if (kind < 2) {
                    what = kind ? "majority, ties plus" : "majority, ties minus";
                    const terse_zero tie = kind ? TERSE_ZERO_PLUS : TERSE_ZERO_MINUS;
                    expected_status = terse_vote_scalar.majority(expected_to[0], host.data(), ranks, n, tie);
                    status = terse_vote_cuda_majority(to[0], device.data(), ranks, n, tie, nullptr);
                } else if (kind == 2) {
                    what = "majority or zero";
                    expected_status = terse_vote_scalar.majority_or_zero(expected_to[0], expected_to[1], host.data(),
                                                                         ranks, n);
                    status = terse_vote_cuda_majority_or_zero(to[0], to[1], device.data(), ranks, n, nullptr);
                } else if (kind == 3) {
                    what = "tally";
                    expected_status = terse_vote_scalar.tally(expected_to, host.data(), ranks, n);
                    status = terse_vote_cuda_tally(to, device.data(), ranks, n, nullptr);
                } else {
                    what = "majority, in place";
                    expected_status = terse_vote_scalar.majority(expected_to[0], host.data(), ranks, n,
                                                                 TERSE_ZERO_PLUS);
                    status = terse_vote_cuda_majority(there.at, device.data(), ranks, n, TERSE_ZERO_PLUS, nullptr);
                    if (bytes) must(cudaMemcpy(to[0], there.at, bytes, cudaMemcpyDeviceToDevice));
                }
                expect(status == TERSE_CODEC_OK && expected_status == TERSE_CODEC_OK, "vote", "cuda", n, "status");
                bool same = true;
                for (size_t k = 0; k < VOTE_PLANES; k++)
                    same = same && out[k].get() == expected[k] && out[k].margins_are_whole();
                expect(same, "vote", "cuda", n, what);
            }
        }
    uint8_t *out = nullptr;
    std::vector<const uint8_t *> nobody(1025);
    expect(terse_vote_cuda_majority(out, nobody.data(), 3, 8, TERSE_ZERO_PLUS, nullptr) == TERSE_CODEC_BAD_RANKS,
           "vote", "cuda", 8, "nobody is refused");
    nobody.assign(1025, (const uint8_t *)&checks);
    expect(terse_vote_cuda_majority(out, nobody.data(), 1025, 8, TERSE_ZERO_PLUS, nullptr) == TERSE_CODEC_BAD_RANKS,
           "vote", "cuda", 8, "1025 ranks are refused");
    expect(terse_vote_cuda_majority(out, nobody.data(), 2, 8, TERSE_ZERO_UNSET, nullptr) == TERSE_CODEC_BAD_ZERO,
           "vote", "cuda", 8, "a tie that is not set");
    std::printf("vote cuda %ld checks\n", checks - before);
}
