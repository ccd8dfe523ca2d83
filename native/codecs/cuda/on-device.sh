#!/bin/bash
# Builds the kernels and asks of them all that a machine with a GPU can: it needs cmake, g++ and nvcc (on the PATH, in CUDA_HOME, or from
# pip), and python3; no Node. Against scalar C, against the golden vectors, at odd lengths about 1 Mi; then compute-sanitizer where there
# is one; then how fast they are, into RESULTS: the lines of docs/results/codecs.jsonl. Goes on after a failure, and exits with 1.
#   native/codecs/cuda/on-device.sh [BUILD-FOLDER [RESULTS]]
set -uo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
build=${1:-$sources/build}
results=${2:-$build/codecs-cuda.jsonl}
failed=0
try() {
  echo "== $*" >&2
  "$@" || { echo "== failed with $?: $*" >&2; failed=1; }
}

cmake -S "$sources" -B "$build" && cmake --build "$build" --parallel "$(nproc)" --target terse_codecs_cuda codecs_cuda_check_program || {
  echo "== not built. If CMake found no nvcc, name a toolkit in CUDA_HOME, or let pip bring one:" >&2
  echo "  pip install --no-deps --target ~/.cache/terse/cuda-13.0 nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*" >&2
  exit 1
}
check=$build/codecs_cuda_check
"$check" check sign
case $? in 77) exit 77 ;; esac

try "$check" check
python3 "$sources/golden.py" >"$build/golden.txt" || failed=1
try "$check" golden <"$build/golden.txt"
try "$check" long
if sanitizer=$(command -v compute-sanitizer); then
  for tool in memcheck racecheck; do
    try timeout 120 "$sanitizer" --tool $tool --error-exitcode 1 "$check" golden <"$build/golden.txt"
  done
else
  echo "== no compute-sanitizer here: addresses and races were not watched" >&2
fi
"$check" bench | tee "$results"
[ "${PIPESTATUS[0]}" = 0 ] || failed=1
exit $failed
