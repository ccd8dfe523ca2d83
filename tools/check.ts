import { join } from "node:path";
import { CommandFailed, run } from "./run.ts";
import { paint, seconds } from "./steps.ts";
import { root } from "./toolchain.ts";

/** Style, types, and the packages as they would be published; shows all that a failed tool said. True when all is well. */
export async function check(variables: Record<string, string>): Promise<boolean> {
  const env = { ...variables, TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" };
  const tools: [title: string, command: string, args: string[]][] = [
    ["style", "biome", ["check", "."]],
    ["types of the tools", "tsc", ["-p", "tools"]],
    [
      "types and package lint",
      "turbo",
      [
        "run",
        "typecheck",
        "lint:package",
        "--continue=dependencies-successful",
        "--output-logs=errors-only",
        "--ui=stream",
      ],
    ],
  ];
  let well = true;
  for (const [title, command, args] of tools) {
    const start = Date.now();
    const show = (mark: string) =>
      process.stderr.write(`${mark} ${title} ${paint(process.stderr, "dim", `· ${seconds(Date.now() - start)}`)}\n`);
    try {
      await run(join(root, "node_modules", ".bin", command), args, { cwd: root, env });
      show(paint(process.stderr, "green", "✓"));
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      well = false;
      show(paint(process.stderr, "red", "✗"));
      process.stderr.write(`${error.output}${error.message}\n`);
    }
  }
  return well;
}
