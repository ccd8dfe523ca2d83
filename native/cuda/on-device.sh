#!/bin/bash
# Runs every check of the kernels of codecs and optimizers on a machine with a GPU. It needs cmake, g++, nvcc (on the
# PATH, in CUDA_HOME, or from pip) and python3; no Node.
#   native/cuda/on-device.sh [PART …]      parts, by default all, in this order:
#     build      into native/cuda/build, for this machine's GPU
#     check      against scalar C, against the golden vectors, and at odd lengths about 1 Mi
#     bench      how fast they are, in lines of JSON, native/cuda/build/{codecs,optimizers}-{64,256}.jsonl
#     sanitize   under compute-sanitizer, where there is one
# Goes on after a failure, and exits with 1; with 77 where no GPU is.
set -uo pipefail
native=$(cd "$(dirname "$0")/.." && pwd)
build=$native/cuda/build
codecs=$build/codecs/codecs_cuda_check
optimizers=$build/optimizers/optimizers_cuda_check
failed=0
try() {
  echo "== $*" >&2
  "$@" || { echo "== failed with $?: $*" >&2; failed=1; }
}

build_part() {
  cmake -S "$native/$1/cuda" -B "$build/$1" -DTERSE_CUDA_ARCHITECTURES="$architectures" &&
    cmake --build "$build/$1" --parallel "$(nproc)" --target "terse_$1_cuda" "$1_cuda_check_program"
}

build() {
  mkdir -p "$build"
  # "9.0" is 90; where nvidia-smi is missing, for all GPUs.
  architectures=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u | paste -sd ';')
  local builds=() part pid
  for part in codecs optimizers; do
    build_part $part &
    builds+=($!)
  done
  for pid in "${builds[@]}"; do
    wait "$pid" && continue
    echo "== not built. If CMake found no nvcc, name a toolkit in CUDA_HOME, or let pip bring one:" >&2
    echo "  pip install --no-deps --target ~/.cache/terse/cuda-13.0 nvidia-cuda-nvcc==13.0.* nvidia-nvvm==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-cccl==13.0.*" >&2
    exit 1
  done
}

golden() { python3 "$native/codecs/cuda/golden.py" | "$@" golden; }

check() {
  "$optimizers" check
  case $? in
    0) ;;
    77) exit 77 ;;
    *) failed=1 ;;
  esac
  try golden "$codecs"
  try "$codecs" long
  try "$codecs" check
}

bench() {
  local size
  for size in 64 256; do
    "$codecs" bench $size | tee "$build/codecs-$size.jsonl" || failed=1
    "$optimizers" bench $size | tee "$build/optimizers-$size.jsonl" || failed=1
  done
}

sanitize() {
  local sanitizer tool
  if sanitizer=$(command -v compute-sanitizer); then
    for tool in memcheck racecheck; do
      try golden timeout 100 "$sanitizer" --tool $tool --error-exitcode 1 "$codecs"
    done
  else
    echo "== no compute-sanitizer here: addresses and races were not watched" >&2
  fi
}

[ $# -gt 0 ] || set -- build check bench sanitize
for part; do
  case $part in
    build | check | bench | sanitize) $part ;;
    *) echo "on-device.sh: there is no part $part: build, check, bench, sanitize" >&2; exit 2 ;;
  esac
done
exit $failed
