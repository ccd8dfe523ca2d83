import { availableParallelism } from "node:os";
import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { LongestFirst } from "./tools/testing/longest-first.ts";
import { toolchain } from "./tools/toolchain.ts";

const conditions = ["@terse/source", "node", "import", "module", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ["{packages,native,apps}/*/**/*.test.ts", "test-e2e/**/*.test.ts", "tools/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", "**/build/**"],
    // A crash of a native addon must not take the other files with it.
    pool: "forks",
    // One more than there are cores: some files wait for processes and deadlines while others compute.
    maxWorkers: Math.min(8, availableParallelism() + 1),
    sequence: { sequencer: LongestFirst },
    // Guards against a hang, for a busy machine. A test that asserts a reaction time measures it. tools/testing/hang-guard.ts
    // ends what these limits do not reach, and waits longer.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    execArgv: ["--conditions=@terse/source"],
    // Python's packages are installed without bytecode. The first test that imports one writes it, outside of the repository: torch
    // and transformers are then imported in a third of the time.
    env: { PYTHONDONTWRITEBYTECODE: "", PYTHONPYCACHEPREFIX: join(toolchain, "bytecode") },
    setupFiles: ["tools/testing/worker-setup.ts"],
  },
});
