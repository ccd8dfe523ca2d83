import type { Options } from "tsup";

/** One bundle a package, ESM only; the declarations come from tsc, which reads the sources better. */
export const library: Options = {
  entry: ["src/index.ts"],
  format: "esm",
  target: "node22",
  platform: "node",
  sourcemap: true,
  clean: true,
  dts: false,
};
