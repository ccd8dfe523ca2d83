import { defineConfig } from "vitest/config";

const conditions = ["@terse/source", "node", "import", "module", "default"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    include: ["{packages,native,apps}/*/**/*.test.ts", "test-e2e/**/*.test.ts", "tools/**/*.test.ts"],
    exclude: ["**/node_modules/**", "**/dist/**", "**/build/**"],
    // A crash of a native addon must not take the other files with it.
    pool: "forks",
    maxWorkers: 2,
    // Guards against a hang, for a busy machine. A test that asserts a reaction time measures it. tools/testing/hang-guard.ts
    // ends what these limits do not reach, and waits longer.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    execArgv: ["--conditions=@terse/source"],
    setupFiles: ["tools/testing/worker-setup.ts"],
  },
});
