import { join } from "node:path";
import { root } from "../toolchain.ts";

const own = ["hang-guard.ts", "closing-line.ts"].map((file) => `--reporter=${join(root, "tools", "testing", file)}`);

/** What ./terse test gives to vitest. */
export const vitestArguments = ["run", "--reporter=default", ...own];
