#!/bin/bash
# Builds the kernels and runs all that can be asked of them on a machine with a GPU, cmake, g++ and nvcc (on the PATH, in CUDA_HOME, or
# from pip); Node is not needed. First the checks on the CPU, then on the GPU, then how fast they are: one JSON object a line.
#   native/codecs/cuda/on-device.sh [BUILD-FOLDER]
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
build=${1:-$sources/build}

cmake -S "$sources" -B "$build"
cmake --build "$build" --parallel "$(nproc)"
if [ ! -x "$build/codecs_cuda_check" ]; then
  echo "no nvcc was found (see above): name a toolkit in CUDA_HOME, or let pip bring one:" >&2
  echo "  pip install --no-deps --target ~/.cache/terse/cuda-13.0 nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*" >&2
  exit 1
fi
"$build/codecs_cuda_emulated"
"$build/codecs_cuda_check" check
"$build/codecs_cuda_check" bench
