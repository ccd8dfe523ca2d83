import { describe, expect, it } from "vitest";
import { remedyFor, requireSpace } from "./remedy.ts";

// What the tools really print.
const seen: [cause: string, output: string, remedy: RegExp][] = [
  [
    "a full disk (npm)",
    "npm ERR! code ENOSPC\nnpm ERR! nospc ENOSPC: no space left on device, write",
    /^The disk that holds \/tools is full/,
  ],
  [
    "a full disk (pip)",
    "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
    /is full.*TERSE_TOOLCHAIN=/,
  ],
  [
    "no network (npm)",
    "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://registry.npmjs.org/pnpm failed",
    /check the network/,
  ],
  [
    "no network (pip)",
    "NewConnectionError('<…>: Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')\nERROR: No matching distribution found for torch==2.13.0",
    /check the network/,
  ],
  [
    "no network (apt)",
    "E: Failed to fetch http://deb.debian.org/…  Temporary failure resolving 'deb.debian.org'",
    /check the network/,
  ],
  ["an unknown certificate", "npm ERR! code SELF_SIGNED_CERT_IN_CHAIN", /NODE_EXTRA_CA_CERTS/],
  [
    "an unknown certificate (pip)",
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate'))",
    /PIP_CERT/,
  ],
  ["a folder that is not ours", "Error: EACCES: permission denied, mkdir '/tools/pnpm'", /^\/tools is not writable/],
  [
    "an index without the wheel",
    "ERROR: No matching distribution found for torch==2.13.0",
    /no torch==2\.13\.0: check the network and the index .*LIBTORCH/,
  ],
  ["an old pip", "no such option: --only-binary", /upgrade pip/],
  ["a stale lockfile", 'ERR_PNPM_OUTDATED_LOCKFILE  Cannot install with "frozen-lockfile"', /commit the lockfile/],
  [
    "a compiler out of memory",
    "c++: fatal error: Killed signal terminated program cc1plus",
    /CMAKE_BUILD_PARALLEL_LEVEL=1/,
  ],
  ["no compiler", "CMake Error: No CMAKE_CXX_COMPILER could be found.", /apt-get install g\+\+/],
];

describe("remedyFor", () => {
  it.each(seen)("names the remedy of %s in one sentence", (_, output, remedy) => {
    const sentence = remedyFor(output, "/tools");
    expect(sentence).toMatch(remedy);
    expect(sentence).not.toContain("\n");
  });

  it("knows no remedy for an error in our own code", () => {
    expect(remedyFor("src/tensor.cc:12:3: error: 'foo' was not declared in this scope", "/tools")).toBeUndefined();
  });
});

describe("requireSpace", () => {
  it("refuses a disk that is too small, and says both sizes", () => {
    expect(() => requireSpace("/", Number.MAX_SAFE_INTEGER)).toThrow(/has [\d.]+ GB free and 9007199\.3 GB are needed/);
    expect(() => requireSpace("/", 0)).not.toThrow();
  });
});
