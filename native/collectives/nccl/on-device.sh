#!/bin/bash
# Runs the tests of the engine nccl that need a GPU, on a machine that has one and that ./terse setup has prepared: alone on a device,
# and two ranks on one device (or on two, where there are). TERSE_NCCL names another library. Arguments go to vitest.
#   native/collectives/nccl/on-device.sh
set -euo pipefail
cd "$(dirname "$0")/../../.."

if ! nvidia-smi --list-gpus; then
  echo "no GPU is here; on one, this runs packages/collectives/src/engines/nccl-device.test.ts" >&2
  exit 1
fi
if [ ! -e native/collectives/build/Release/collectives.node ]; then
  echo "the addon is not built: run ./terse setup first" >&2
  exit 1
fi
exec node_modules/.bin/vitest run packages/collectives/src/engines/nccl-device.test.ts --reporter=verbose "$@"
