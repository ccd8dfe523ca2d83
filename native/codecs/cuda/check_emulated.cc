// The kernels on the CPU: see emulator/cuda_runtime.h.
#include "check.h"

int main() { return check_all(); }
