import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { root } from "../toolchain.ts";
import { report } from "./doctor.ts";
import type { Finding } from "./findings.ts";

describe("doctor", () => {
  const here: Finding = { name: "Node", state: "ok", version: "24.21.0", path: "/tools/node" };
  const later: Finding = { name: "libtorch", state: "later", note: "540 MB to fetch", remedy: "./terse setup" };
  const missing: Finding = { name: "compiler", state: "missing", remedy: "sudo apt-get install g++" };

  it("names what the user must install, and the command", () => {
    const text = report([here, later, missing]);
    expect(text).toContain("✓ Node      24.21.0  /tools/node");
    expect(text).toMatch(/✗ compiler {2}missing\n\s+→ sudo apt-get install g\+\+/);
    expect(text).toMatch(/Missing: compiler\. .*\n$/);
  });

  it("says what ./terse setup installs, and when nothing is missing", () => {
    expect(report([here, later])).toMatch(/\.\/terse setup installs what is missing: libtorch\.\n$/);
    expect(report([here])).toMatch(/Everything is installed\.\n$/);
  });

  it("examines a machine where nothing is set up, and changes nothing", () => {
    const toolchain = join(scratchFolder(), "toolchain");
    const env = {
      ...process.env,
      TERSE_TOOLCHAIN: toolchain,
      LIBTORCH: "",
      TERSE_GLOO: "",
      TERSE_MPI: "",
      TERSE_PYTHON: "",
    };
    const answer = execFileSync(process.execPath, [join(root, "tools", "terse.ts"), "doctor", "--json"], {
      env,
      encoding: "utf8",
    });
    const { findings } = JSON.parse(answer) as { findings: Finding[] };
    const states = Object.fromEntries(findings.map((finding) => [finding.name, finding.state]));
    expect(states).toMatchObject({ machine: "ok", pnpm: "later", "test Python": "later" });
    expect(Object.keys(states)).toEqual(
      expect.arrayContaining(["Node", "libtorch", "Gloo", "MPI", "NCCL", "CUDA", "compiler", "cmake"]),
    );
    expect(existsSync(toolchain)).toBe(false);
  });
});
