import { existsSync, globSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { ask } from "../run.ts";
import { root } from "../toolchain.ts";
import { isBuilt } from "./addons.ts";

export interface Nccl {
  path: string;
  version: string | undefined;
}

/** The status of the engine nccl; undefined where its addon is not built. */
export async function askNcclEngine(
  libtorch: string | undefined,
): Promise<{ available: boolean; reason: string; version?: string; path?: string } | undefined> {
  if (!isBuilt("collectives")) return undefined;
  const addon = pathToFileURL(join(root, "native", "collectives", "src", "index.ts")).href;
  const question = `const { collectives } = await import(${JSON.stringify(addon)}); console.log(JSON.stringify(collectives().ncclStatus()));`;
  const flags = ["--conditions=@terse/source", "--input-type=module", "-e", question];
  const env = libtorch === undefined ? {} : { LIBTORCH: libtorch };
  const answer = await ask(process.execPath, flags, { env });
  return answer?.startsWith("{") ? JSON.parse(answer) : undefined;
}

/** libnccl.so.2 from TERSE_NCCL, else where dlopen finds it, else from a pip wheel. */
export async function findNccl(pythonPackages: readonly string[]): Promise<Nccl | undefined> {
  const searched = (process.env["LD_LIBRARY_PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const cache = (await ask("/sbin/ldconfig", ["-p"])) ?? "";
  const cached = /libnccl\.so\.2 .*=> (\S+)/.exec(cache)?.[1];
  const wheels = pythonPackages.map((folder) => join(folder, "nvidia", "nccl", "lib"));
  const folders = [...searched, ...(cached ? [dirname(cached)] : []), ...wheels];
  const named = process.env["TERSE_NCCL"] ? [process.env["TERSE_NCCL"]] : undefined;
  const files = named ?? folders.map((folder) => join(folder, "libnccl.so.2"));
  const path = files.find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const wheel = globSync("nvidia_nccl_cu*.dist-info", { cwd: join(dirname(path), "..", "..", "..") })[0];
  const version =
    /libnccl\.so\.(\d+\.\d+\.\d+)/.exec(realpathSync(path))?.[1] ?? /-(\d[\d.]*)\.dist-info/.exec(wheel ?? "")?.[1];
  return { path, version };
}
