// libFuzzer's way in; TARGET is one of targets.h.
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    TARGET(bytes, size);
    return 0;
}
