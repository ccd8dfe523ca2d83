// Checks of the core without Node, under a sanitizer. `run` builds and runs them.
//
//     collectives_check worlds <rounds> <seed>
//     collectives_check headers <rounds> <seed>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "checks/core/check.h"

namespace terse::collectives::check {

static uint64_t seed_of_round;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed_of_round), what);
    std::abort();
}

}  // namespace terse::collectives::check

int main(int count, char** arguments) {
    using namespace terse::collectives::check;
    const std::string what = count > 1 ? arguments[1] : "";
    if (count != 4 || (what != "worlds" && what != "headers")) {
        std::fprintf(stderr, "collectives_check worlds|headers <rounds> <seed>\n");
        return 2;
    }
    const uint64_t rounds = std::strtoull(arguments[2], nullptr, 10), seed = std::strtoull(arguments[3], nullptr, 10);
    uint64_t succeeded = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        seed_of_round = seed + round;
        if (what == "worlds") check_world(seed_of_round);
        else succeeded += check_headers(seed_of_round);
    }
    std::printf("%s: %llu rounds from seed %llu", what.c_str(), static_cast<unsigned long long>(rounds),
                static_cast<unsigned long long>(seed));
    if (what == "headers") std::printf(", %llu operations succeeded", static_cast<unsigned long long>(succeeded));
    std::printf("\n");
}
