import { spawnSync } from "node:child_process";
import { codecs, levels, NativeMissingError, votes } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { definition as sign } from "./codecs/sign/sign.ts";
import { choose, implementations } from "./implementation.ts";
import { vote } from "./vote/vote.ts";

const withoutAddon = () => {
  throw new NativeMissingError("the addon is not built");
};

/** What a fresh process says it runs under TERSE_IMPLEMENTATION, after really using it. */
function runs(name: string | undefined) {
  const program = `
    const { majority, sign, voteImplementation } = await import("./src/index.ts");
    const wire = new Uint8Array(1);
    sign.encode(wire, new Float32Array([1, -1, 1]), { zero: "plus" });
    majority(wire, [wire], 3, { tie: "plus" });
    console.log(sign.implementation, voteImplementation(), wire[0]);`;
  const env = { ...process.env, TERSE_IMPLEMENTATION: name };
  if (name === undefined) delete env.TERSE_IMPLEMENTATION;
  return spawnSync(process.execPath, ["--conditions=@terse/source", "--input-type=module", "-e", program], {
    cwd: `${import.meta.dirname}/..`,
    env: { ...env, NODE_OPTIONS: "" },
    encoding: "utf8",
  });
}

describe("which implementation runs", () => {
  const signs = implementations(sign, codecs);
  const elections = implementations(vote, votes);

  it("is the best one", () => {
    expect(runs(undefined).stdout.trim()).toBe(
      `${signs.kernels[0]!.implementation} ${elections.kernels[0]!.implementation} 5`,
    );
  });

  const known = signs.missing ? ["typescript"] : [...levels(), "typescript"];

  it.each(known)("is %s where TERSE_IMPLEMENTATION says so, or the next plainer one there is", (name) => {
    const most = known.indexOf(name);
    const named = (kernels: readonly { implementation: string }[]) =>
      kernels.find(({ implementation }) => known.indexOf(implementation) >= most)!.implementation;
    expect(runs(name).stdout.trim()).toBe(`${named(signs.kernels)} ${named(elections.kernels)} 5`);
  });

  it("is an error that lists what there is, where the name is unknown", () => {
    const { status, stderr } = runs("sse9");
    expect(status).not.toBe(0);
    expect(stderr).toContain(
      `TERSE_IMPLEMENTATION=sse9: this machine has no such implementation; it has ${known.join(", ")}`,
    );
  });

  it("is the definition where the addon is missing", () => {
    const none = () => [];
    expect(choose(implementations(sign, withoutAddon), none, "")).toBe(sign);
    expect(choose(implementations(sign, withoutAddon), none, "typescript")).toBe(sign);
    expect(() => choose(implementations(sign, withoutAddon), none, "avx2")).toThrow(
      "it has typescript (the addon is not built)",
    );
  });

  it("does not hide any other failure", () => {
    const broken = () => {
      throw new TypeError("broken");
    };
    expect(() => implementations(sign, broken)).toThrow("broken");
  });
});
