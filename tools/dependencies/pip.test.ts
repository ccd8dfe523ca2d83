import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, vi } from "vitest";
import { run } from "../run.ts";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { pipInstall } from "./pip.ts";

const progress = { run, say: () => {} };
const hasPip = spawnSync("python3", ["-m", "pip", "--version"]).status === 0;

/** A wheel of one empty module. */
async function wheelIn(folder: string): Promise<string> {
  const wheel = join(folder, "terse_probe-1.0-py3-none-any.whl");
  const info = "terse_probe-1.0.dist-info";
  const files = {
    "terse_probe.py": "",
    [`${info}/METADATA`]: "Metadata-Version: 2.1\nName: terse-probe\nVersion: 1.0\n",
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/RECORD`]: "",
  };
  const program = `import json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    for name, text in json.loads(sys.argv[2]).items(): wheel.writestr(name, text)`;
  await run("python3", ["-c", program, wheel, JSON.stringify(files)]);
  return wheel;
}

const settings = `[global]
constraint = {}/constraint.txt
require-hashes = true
require-virtualenv = true
[install]
prefix = {}/prefix
root = {}/root
user = true
`;
const variables = {
  PIP_CONSTRAINT: "{}/constraint.txt",
  PIP_DRY_RUN: "1",
  PIP_PREFIX: "{}/prefix",
  PIP_PYTHON: "{}/python",
  PIP_ROOT: "{}/root",
  PIP_TARGET: "{}/target",
};

it.skipIf(!hasPip).each([
  { by: "a file", settings, variables: {} },
  { by: "variables", settings: "", variables },
])(
  `pip installs into the folder that is named, whatever else is set by $by${hasPip ? "" : " (skipped: no pip)"}`,
  async ({ settings, variables }) => {
    const folder = scratchFolder();
    const here = (text: string) => text.replaceAll("{}", folder);
    const wheel = await wheelIn(folder);
    writeFileSync(join(folder, "constraint.txt"), "terse-probe==2.0\n");
    writeFileSync(join(folder, "pip.conf"), here(settings));
    vi.stubEnv("PIP_CONFIG_FILE", join(folder, "pip.conf"));
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, here(value));
    try {
      const packages = join(folder, "packages");
      await pipInstall(progress, packages, ["--no-index", wheel]);
      expect(existsSync(join(packages, "terse_probe.py"))).toBe(true);
    } finally {
      vi.unstubAllEnvs();
    }
  },
);
