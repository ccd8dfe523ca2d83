import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { hashFiles, type Stamp, wantedStamp, waysToBuild } from "./addons.ts";

describe("the stamp of a native build", () => {
  it("changes with content and names, not with times", () => {
    const folder = scratchFolder();
    const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
    write("a.c", "int a;");
    write("b.c", "int b;");
    const before = hashFiles(folder, ["a.c", "b.c"]);
    utimesSync(join(folder, "a.c"), 1e9, 1e9);
    expect(hashFiles(folder, ["a.c", "b.c"])).toBe(before);
    expect(hashFiles(folder, ["a.c"])).not.toBe(before);
    // The same bytes, divided differently between the files, have another hash.
    write("a.c", "int a;int");
    write("b.c", " b;");
    expect(hashFiles(folder, ["a.c", "b.c"])).not.toBe(before);
  });

  it("depends on the libraries, not on how they were found", () => {
    const gloo = (source: "TERSE_GLOO" | "toolchain", library: string) => ({
      gloo: { prefix: "/gloo", library, source },
    });
    const found = wantedStamp("collectives", gloo("toolchain", "/gloo/libgloo.so"));
    expect(wantedStamp("collectives", gloo("TERSE_GLOO", "/gloo/libgloo.so"))).toEqual(found);
    expect(wantedStamp("collectives", gloo("toolchain", "/gloo/libgloo.a")).tools).not.toBe(found.tools);
    const libtorch = (source: "LIBTORCH" | "toolchain") => ({
      libtorch: { root: "/torch", version: "2.13.0", source },
    });
    expect(wantedStamp("tensor", libtorch("LIBTORCH"))).toEqual(wantedStamp("tensor", libtorch("toolchain")));
  });

  it("asks for a clean build with other tools or another MPI, and not where an MPI has come", () => {
    const mpi = (prefix: string) => ({
      mpi: { prefix, path: `${prefix}/lib/libmpi.so`, source: "toolchain" as const },
    });
    const without = wantedStamp("collectives", {});
    const withOne = wantedStamp("collectives", mpi("/one"));
    const commands = (built: Stamp | undefined, wanted: Stamp) => waysToBuild(built, wanted).join();
    expect(withOne.mpi).not.toBe(without.mpi);
    expect(withOne.tools).toBe(without.tools);
    expect(commands(without, withOne)).toBe("configure,build");
    expect(commands(withOne, wantedStamp("collectives", mpi("/other")))).toBe("rebuild");
    expect(commands(withOne, without)).toBe("rebuild");
    expect(commands(withOne, { ...withOne, sources: "others" })).toBe("build");
    expect(commands(withOne, { ...withOne, tools: "others" })).toBe("rebuild");
    expect(commands(undefined, without)).toBe("rebuild");
    const { mpi: none, ...older } = wantedStamp("tensor", {}); // written before it had this field
    expect(commands(older, { ...wantedStamp("tensor", {}), sources: "others" })).toBe("build");
    expect(wantedStamp("tensor", mpi("/one"))).toEqual(wantedStamp("tensor", {}));
  });
});
