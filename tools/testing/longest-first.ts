import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Short files that take long: they compile, start processes, or wait. Of each three, one waits while the others
 * compute.
 */
export const longest: readonly string[] = [
  "native/codecs/src/cuda.test.ts",
  "tools/testing/document-commands.test.ts",
  "test-e2e/ranks/ranks.test.ts",
  "test-e2e/runs/train.test.ts",
  "packages/optimizers/src/overlap.test.ts",
  "packages/codecs/python/python.test.ts",
  "packages/codecs/torch/torch.test.ts",
  "packages/collectives/src/engines/tcp.test.ts",
  "native/codecs/src/arm.test.ts",
  "native/codecs/src/fuzz.test.ts",
  "packages/data/src/tokenizers/as-in-python.test.ts",
  "test-e2e/ranks/mpirun.test.ts",
  "test-e2e/runs/local-steps.test.ts",
  "packages/collectives/src/rendezvous/server.test.ts",
  "test-e2e/runs/recovery.test.ts",
  "test-e2e/runs/launcher.test.ts",
  "test-e2e/ranks/faults.test.ts",
  "test-e2e/runs/saves.test.ts",
  "test-e2e/runs/requeue.test.ts",
  "test-e2e/ranks/network.test.ts",
  "test-e2e/ranks/outage.test.ts",
  "tools/publish/oldest-node.test.ts",
  "tools/publish/copy-sources.test.ts",
  "native/optimizers/src/cuda.test.ts",
  "packages/collectives/src/engines/gloo.test.ts",
  "packages/codecs/src/published.test.ts",
  "test-e2e/ranks/launchers.test.ts",
  "tools/testing/hang-guard.test.ts",
  "packages/collectives/src/engines/nccl.test.ts",
  "packages/collectives/src/engines/nccl-check.test.ts",
  "packages/collectives/src/join-world.test.ts",
  "packages/collectives/src/engines/loopback.test.ts",
];

/**
 * The files that take longest begin, so that all workers are busy to the end. The others follow by their time in the
 * last run, or else by size. Last are those that share a process, so that no worker is replaced between two of them.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId, project }: TestSpecification) => {
      const at = longest.indexOf(relative(this.ctx.config.root, moduleId));
      if (at >= 0) return at;
      return longest.length + (project.config.isolate ? 0 : 1);
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
