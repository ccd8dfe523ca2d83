import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAddress } from "../../apps/page/src/address.ts";
import { root } from "../toolchain.ts";

const text = readFileSync(join(root, "Containerfile"), "utf8");
const instructions = text
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line)!.slice(1) as [string, string]);
const all = (name: string) => instructions.filter(([key]) => key === name).map(([, value]) => value);

it("has instructions that every builder knows, from a base of its own", () => {
  const known = ["FROM", "RUN", "USER", "WORKDIR", "ENV", "COPY", "EXPOSE", "ENTRYPOINT", "CMD"];
  expect(instructions.map(([key]) => key).filter((key) => !known.includes(key))).toEqual([]);
  expect(instructions[0]![0]).toBe("FROM");
});

it("installs what CI installs on a fresh machine, with which everything is known to build", () => {
  const workflow = readFileSync(join(root, ".github/workflows/ci.yml"), "utf8");
  const packages = (commands: string) =>
    /apt-get install -y --no-install-recommends ([^&\n]*)/.exec(commands)![1]!.trim().split(/\s+/);
  expect(packages(all("RUN").join("\n"))).toEqual(expect.arrayContaining(packages(workflow)));
  expect(text).toContain(`FROM ${/image: \["(debian:\d+)"/.exec(workflow)![1]}`);
});

it("starts the entry script with commands that it has", () => {
  const [entry] = JSON.parse(all("ENTRYPOINT")[0]!) as string[];
  expect(existsSync(join(root, entry!))).toBe(true);
  const help = readFileSync(join(root, "tools/help.txt"), "utf8");
  const started = [
    JSON.parse(all("CMD")[0]!)[0],
    ...all("RUN").flatMap((run) => /\.\/terse (\w+)/.exec(run)?.[1] ?? []),
  ];
  expect(started).toHaveLength(2);
  for (const command of started) expect(help).toContain(`./terse ${command}`);
});

it("leaves out what a machine has built for itself, and opens the ports that are documented", () => {
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8").trim().split("\n");
  expect(ignored).toEqual(expect.arrayContaining(["**/node_modules", "**/build", "**/dist"]));
  expect(all("EXPOSE")[0]!.split(" ")).toContain(String(parseAddress("").port));
});
