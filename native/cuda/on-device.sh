#!/bin/bash
# Builds the kernels of codecs and optimizers and asks of them all that a machine with a GPU can: it needs cmake, g++,
# nvcc (on the PATH, in CUDA_HOME, or from pip) and python3; no Node. Against scalar C, against the golden vectors, at
# odd lengths about 1 Mi; then how fast they are, into RESULTS/codecs-cuda.jsonl and RESULTS/step-cuda.jsonl, as
# docs/results has lines; then compute-sanitizer, where there is one. Goes on after a failure, and exits with 1; with 77
# where no GPU is.
#   native/cuda/on-device.sh [BUILD-FOLDER [RESULTS]]
set -uo pipefail
native=$(cd "$(dirname "$0")/.." && pwd)
build=${1:-$native/cuda/build}
results=${2:-$build}
failed=0
try() {
  echo "== $*" >&2
  "$@" || { echo "== failed with $?: $*" >&2; failed=1; }
}

mkdir -p "$build" "$results"
for part in codecs optimizers; do
  cmake -S "$native/$part/cuda" -B "$build/$part" &&
    cmake --build "$build/$part" --parallel "$(nproc)" --target "terse_${part}_cuda" "${part}_cuda_check_program" || {
    echo "== not built. If CMake found no nvcc, name a toolkit in CUDA_HOME, or let pip bring one:" >&2
    echo "  pip install --no-deps --target ~/.cache/terse/cuda-13.0 nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*" >&2
    exit 1
  }
done
codecs=$build/codecs/codecs_cuda_check
optimizers=$build/optimizers/optimizers_cuda_check
"$optimizers" check
case $? in
  0) ;;
  77) exit 77 ;;
  *) failed=1 ;;
esac

try "$codecs" check
python3 "$native/codecs/cuda/golden.py" >"$build/golden.txt" || failed=1
try "$codecs" golden <"$build/golden.txt"
try "$codecs" long

"$codecs" bench | tee "$results/codecs-cuda.jsonl"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1
"$optimizers" bench | tee "$results/step-cuda.jsonl"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1

if sanitizer=$(command -v compute-sanitizer); then
  for tool in memcheck racecheck; do
    try timeout 100 "$sanitizer" --tool $tool --error-exitcode 1 "$codecs" golden <"$build/golden.txt"
  done
else
  echo "== no compute-sanitizer here: addresses and races were not watched" >&2
fi
exit $failed
