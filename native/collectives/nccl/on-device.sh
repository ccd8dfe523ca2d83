#!/bin/bash
# Builds and runs all that can be asked of this engine on a machine with a GPU, cmake and g++. Node is not needed: where it is, and
# ./terse setup has been, the tests of packages/collectives run too. NCCL is found as the engine finds it (TERSE_NCCL names a file), and
# libtorch, for the checks with its streams, where LIBTORCH or python3 has it.
#   native/collectives/nccl/on-device.sh [BUILD-FOLDER]
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
build=${1:-$sources/build}

if [ -z "${TERSE_CUDA_DRIVER:-}" ] && ! nvidia-smi --list-gpus; then
  echo "no GPU is here" >&2
  exit 1
fi
if [ -z "${LIBTORCH:-}" ]; then
  find_torch='import importlib.util as u; torch = u.find_spec("torch"); print(torch.submodule_search_locations[0] if torch else "")'
  LIBTORCH=$("${TERSE_PYTHON:-python3}" -c "$find_torch" || true)
  export LIBTORCH
fi

cmake -S "$sources" -B "$build" -DTERSE_TORCH="$LIBTORCH"
cmake --build "$build" --parallel "$(nproc)" --target nccl_check

status=0
TERSE_NCCL_CHECK_LARGE=1 "$build/nccl_check" || status=1
if ! cmake --build "$build" --target help | grep nccl_check_torch > /dev/null; then
  echo "skipped libtorch: see above"
elif cmake --build "$build" --target nccl_check_torch; then
  "$build/nccl_check_torch" || status=1
else
  status=1
fi
if [ -e "$sources/../build/Release/collectives.node" ] && node -e 'process.exit(parseInt(process.versions.node) < 22)' 2> /dev/null; then
  (cd "$sources/../../.." && node_modules/.bin/vitest run packages/collectives/src/engines/nccl-device.test.ts --reporter=verbose) || status=1
else
  echo "skipped packages/collectives: ./terse setup has not been here, or node is not on the PATH"
fi
exit $status
