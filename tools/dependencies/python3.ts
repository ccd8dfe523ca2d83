import { StepFailed } from "../remedy.ts";
import { ask } from "../run.ts";
import { pythonRange, withinReleases } from "./versions.ts";

export interface Python3 {
  executable: string;
  version: string;
  torch: string | undefined; // the folder of its torch package, found without importing it
}

const question = `
import importlib.util, json, platform, sys
spec = importlib.util.find_spec("torch")
print(json.dumps({"executable": sys.executable, "version": platform.python_version(), "torch": spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None}))
`;

/** The `python3` on the PATH; undefined when there is none. */
export async function findPython3(): Promise<Python3 | undefined> {
  const answer = await ask("python3", ["-c", question]);
  if (answer === undefined) return undefined;
  const { executable, version, torch } = JSON.parse(lastLine(answer)) as {
    executable: string;
    version: string;
    torch: string | null;
  };
  return { executable, version, torch: torch ?? undefined };
}

/** The answer, after anything that a sitecustomize printed. */
function lastLine(text: string): string {
  return text.slice(text.lastIndexOf("\n") + 1);
}

/** python3, if PyTorch has wheels for its version; otherwise throws `StepFailed`. */
export async function requirePython3(): Promise<Python3> {
  const python = await findPython3();
  if (python === undefined) throw new StepFailed("python3 is not on the PATH: `sudo apt-get install python3`.");
  if (withinReleases(python.version, pythonRange)) return python;
  throw new StepFailed(
    `python3 is ${python.version}, and PyTorch has wheels for ${pythonRange.from} to ${pythonRange.to}: put such a Python first on the PATH.`,
  );
}
