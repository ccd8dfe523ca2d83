import { join } from "node:path";
import { defineConfig } from "vitest/config";
import { availableProcessors } from "./native/loader/src/available-processors.ts";
import { nodeFlags } from "./tools/programs.ts";
import { LongestFirst } from "./tools/testing/longest-first.ts";
import { toolchain } from "./tools/toolchain.ts";

const conditions = ["@terse/source", "node", "import", "module", "default"];

const outputs = ["**/node_modules/**", "**/dist/**", "**/build/**"];

/** Tests of plain modules: one process runs many of these files, so that it loads libtorch and the packages once. */
const sharedProcess = [
  "packages/{checkpoint,codecs,data,exchange,models,optimizers,options}/**/*.test.ts",
  "apps/{bench,train}/**/*.test.ts",
];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    projects: [
      {
        extends: true,
        // These start processes, replace modules, or call engines: each file has its own process, which it may end.
        test: {
          name: "alone",
          include: ["{packages,native,apps}/*/**/*.test.ts", "test-e2e/**/*.test.ts", "tools/**/*.test.ts"],
          exclude: [...outputs, ...sharedProcess],
        },
      },
      { extends: true, test: { name: "together", include: sharedProcess, exclude: outputs, isolate: false } },
    ],
    // A crash of a native addon ends a process, and not the run.
    pool: "forks",
    // One more than there are cores: some files wait for processes and deadlines while others compute.
    maxWorkers: Math.min(8, availableProcessors() + 1),
    sequence: { sequencer: LongestFirst },
    // Guards against a hang, for a busy machine. A test that asserts a reaction time measures it.
    // tools/testing/hang-guard.ts ends what these limits do not reach, and waits longer.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    execArgv: [...nodeFlags],
    // Python's packages are installed without bytecode. The first test that imports one writes it, outside of the
    // repository: torch and transformers are then imported in a third of the time.
    // Operators take one thread: there are more processes than cores, and threads that wait for each other there take
    // several times as long.
    // Tests of SIGHUP also pass under nohup, and those of terminals on any.
    env: {
      PYTHONDONTWRITEBYTECODE: "",
      PYTHONPYCACHEPREFIX: join(toolchain, "bytecode"),
      OMP_NUM_THREADS: "1",
      TERSE_IGNORES_HANGUP: "",
      TERM: "xterm",
      NO_COLOR: "",
    },
    setupFiles: ["tools/testing/worker-setup.ts"],
  },
});
