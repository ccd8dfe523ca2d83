import { globSync, rmSync } from "node:fs";
import type { Options } from "tsup";

/** One bundle a package, ESM only; the declarations come from tsc, which reads the sources better. */
export const library: Options = {
  entry: ["src/index.ts"],
  format: "esm",
  target: "node22.18", // the oldest that `engines` allow
  platform: "node",
  sourcemap: true,
  clean: true,
  dts: false,
  // `clean` leaves declarations: those of a file that is gone would be published for ever.
  plugins: [
    {
      name: "no-stale-declarations",
      buildStart() {
        for (const file of globSync("dist/**/*.d.ts")) rmSync(file);
      },
    },
  ],
};
