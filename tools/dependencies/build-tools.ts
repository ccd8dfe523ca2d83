import { StepFailed } from "../remedy.ts";
import { ask } from "../run.ts";
import { which } from "../which.ts";
import { requirePython3 } from "./python3.ts";
import { compareVersions } from "./versions.ts";

/** A tool that builds the addons; the system must have it, because it is never installed here. */
export interface BuildTool {
  name: string;
  path: string | undefined;
  remedy: string;
}

export function findBuildTools(): { compiler: BuildTool; cmake: BuildTool; make: BuildTool } {
  const first = (...commands: (string | undefined)[]) =>
    commands.map((command) => (command ? which(command) : undefined)).find(Boolean);
  return {
    compiler: {
      name: "a C++ compiler",
      path: first(process.env["CXX"], "c++", "g++", "clang++"),
      remedy: "sudo apt-get install g++",
    },
    cmake: { name: "cmake", path: first("cmake"), remedy: "sudo apt-get install cmake" },
    make: { name: "make", path: first("ninja", "make"), remedy: "sudo apt-get install make" },
  };
}

/** Throws `StepFailed`, which names all missing tools and one command that installs them. */
export function requireBuildTools(others: readonly BuildTool[] = []): void {
  const missing = [...Object.values(findBuildTools()), ...others].filter((tool) => tool.path === undefined);
  if (missing.length === 0) return;
  const packages = missing.map((tool) => tool.remedy.split(" ").at(-1)).join(" ");
  throw new StepFailed(
    `The native addons cannot be built; missing: ${missing.map((tool) => tool.name).join(", ")}: \`sudo apt-get install ${packages}\`.`,
  );
}

/** The same before anything is fetched, with the versions; `python`: whether libtorch is still to be fetched. */
export async function requireForBuilding(python: boolean): Promise<void> {
  const python3 = { name: "Python 3", path: which("python3"), remedy: "sudo apt-get install python3" };
  requireBuildTools(python ? [python3] : []);
  const { path } = findBuildTools().compiler;
  const compiler = await compilerVersion(path!);
  if (compiler?.enough === false)
    throw new StepFailed(
      `${path} is ${compiler.text}, and C++20 needs g++ 10 or clang 12: install a newer one, and name it in CXX, and its C compiler in CC.`,
    );
  if (python) await requirePython3();
}

/** "g++ 12.2.0", or undefined; `enough` is false for a compiler without C++20. */
export async function compilerVersion(path: string): Promise<{ text: string; enough: boolean } | undefined> {
  const banner = (await ask(path, ["--version"]))?.split("\n")[0];
  if (banner === undefined) return undefined;
  const clang = /clang version (\S+)/.exec(banner)?.[1];
  const version = clang ?? (await ask(path, ["-dumpfullversion", "-dumpversion"])) ?? "";
  return { text: `${clang ? "clang" : "g++"} ${version}`, enough: compareVersions(version, clang ? "12" : "10") >= 0 };
}
