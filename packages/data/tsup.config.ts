import { defineConfig } from "tsup";
import { library } from "../../tsup.config.base.ts";

export default defineConfig({
  ...library,
  // The thread is a file of its own, beside the bundle (src/prefetch/samples-in-thread.ts).
  entry: { index: "src/index.ts", "samples-thread": "src/prefetch/samples-thread.ts" },
});
