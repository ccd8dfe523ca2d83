// The kernels on the CPU: see native/cuda/emulator/cuda_runtime.h.
//   codecs_cuda_emulated [codec …|golden]
#include <cstring>

#include "check.h"

int main(int count, char **arguments) {
    if (count == 2 && !std::strcmp(arguments[1], "golden")) return check_golden();
    return check_all(arguments + 1, count - 1, false);
}
