// The kernels on the CPU: see emulator/cuda_runtime.h.
//   codecs_cuda_emulated [codec …]
#include "check.h"

int main(int count, char **arguments) { return check_all(arguments + 1, count - 1); }
