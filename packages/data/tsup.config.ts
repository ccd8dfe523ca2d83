import { defineConfig } from "tsup";
import { library } from "../../tsup.config.base.ts";

export default defineConfig({
  ...library,
  // Threads and programs need files of their own, beside the bundle (src/prefetch/samples-in-thread.ts,
  // src/documents/parquet.ts, src/tokenizers/isolated-tokenizer.ts, src/chat/renderer.ts).
  entry: {
    index: "src/index.ts",
    "samples-thread": "src/prefetch/samples-thread.ts",
    "parquet-thread": "src/documents/parquet-thread.ts",
    "render-process": "src/chat/render-process.ts",
    "tokenizer-process": "src/tokenizers/tokenizer-process.ts",
  },
});
