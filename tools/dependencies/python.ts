import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { StepFailed } from "../remedy.ts";
import { ask } from "../run.ts";
import type { Progress } from "../steps.ts";
import { installFolder, toolchain } from "../toolchain.ts";
import { pipInstall } from "./pip.ts";
import { findPython3, type Python3, requirePython3 } from "./python3.ts";

const requirements = join(import.meta.dirname, "python-requirements.txt");

/** The Python with torch, numpy and safetensors, for tests and benchmarks; undefined when it is not installed yet. */
export async function findPython(): Promise<string | undefined> {
  const named = process.env["TERSE_PYTHON"];
  if (named) {
    const question = "import importlib.util as u; print(all(map(u.find_spec, ['torch', 'numpy', 'safetensors'])))";
    if ((await ask(named, ["-c", question])) !== "True")
      throw new StepFailed(
        `TERSE_PYTHON=${named} is not a Python with torch, numpy and safetensors: unset it, or install them there.`,
      );
    return named;
  }
  const python3 = await findPython3();
  if (python3 === undefined) return undefined;
  const python = join(folder(python3), "bin", "python3");
  return existsSync(python) ? python : undefined;
}

export async function installPython(progress: Progress): Promise<string> {
  const target = folder(await requirePython3());
  const fill = async (partial: string) => {
    // Without pip inside, because that needs the distribution's python3-venv package; pip installs from outside.
    await progress.run("python3", ["-m", "venv", "--without-pip", partial]);
    const [packages] = globSync("lib/python*/site-packages", { cwd: partial });
    await pipInstall(progress, join(partial, packages!), ["--requirement", requirements]);
  };
  const bytes = 9e9; // with the wheels, until they are unpacked
  await installFolder(progress, target, fill, { bytes });
  return join(target, "bin", "python3");
}

/** A folder for each Python version and each set of requirements: python-3.11-8f14e45f. */
function folder(python: Python3): string {
  const pins = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 8);
  return join(toolchain, `python-${python.version.split(".").slice(0, 2).join(".")}-${pins}`);
}
