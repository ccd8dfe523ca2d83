#!/bin/bash
# Builds and runs the checks of the NCCL engine on a machine with a GPU, cmake and g++. It needs no Node. If there is
# Node, and ./terse setup has run, it runs the device tests of packages/collectives too. NCCL is found as the engine
# finds it (TERSE_NCCL names a file). The check with libtorch's streams needs LIBTORCH, or a torch in python3.
#   native/collectives/checks/nccl/on-device.sh [BUILD-FOLDER]
set -euo pipefail
sources=$(cd "$(dirname "$0")" && pwd)
build=${1:-$sources/build}

if [ -z "${TERSE_CUDA_DRIVER:-}" ] && ! nvidia-smi --list-gpus; then
  echo "this machine has no GPU" >&2
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
if [ -e "$sources/../../build/Release/collectives.node" ] && node -e 'process.exit(parseInt(process.versions.node) < 22)' 2> /dev/null; then
  (cd "$sources/../../../.." && node_modules/.bin/vitest run packages/collectives/src/engines/nccl-device.test.ts --reporter=verbose) || status=1
else
  echo "skipped packages/collectives: ./terse setup has not run, or node is not on the PATH"
fi
exit $status
