import { tmpdir } from "node:os";
import { describe, expect, it } from "vitest";
import { remedyFor, requireSpace } from "./remedy.ts";
import { root } from "./toolchain.ts";

// What the tools really print.
const seen: [cause: string, output: string, remedy: RegExp | string][] = [
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
  [
    "a full disk of the checkout (ld, which names no folder)",
    "/usr/bin/ld: final link failed: No space left on device\ncollect2: error: ld returned 1 exit status",
    /^The disk that holds \/home\/me\/terse is full: free some space, or clone the repository into another folder\.$/,
  ],
  [
    "a full disk of the compiler's own files",
    `tensor.cc:1: fatal error: error writing to ${tmpdir()}/ccAbCdEf.s: No space left on device`,
    /^The disk that holds \S+ is full.*: free some space, or choose another folder with TMPDIR=\/path\.$/,
  ],
  [
    "a full disk, in a command that names other folders",
    `c++ -DROOT="/tools/libtorch" ${"-W ".repeat(80)}\nfatal error: error writing to ${tmpdir()}/cc.s: No space left on device`,
    /TMPDIR=\/path\.$/,
  ],
  ["an unknown certificate", "npm ERR! code SELF_SIGNED_CERT_IN_CHAIN", /NODE_EXTRA_CA_CERTS/],
  [
    "an unknown certificate (pip)",
    "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate'))",
    /PIP_CERT/,
  ],
  ["a folder that is not ours", "Error: EACCES: permission denied, mkdir '/tools/pnpm'", /^\/tools is not writable/],
  [
    "a checkout that is not ours (pnpm)",
    '  × installing dependencies\n  ╰─▶ Failed to create virtual store slot directory at "/home/me/terse/\n      node_modules/.pnpm/jju@1.4.0": Permission denied (os error 13)',
    /^\/home\/me\/terse is not writable: change its owner, or clone the repository into another folder\.$/,
  ],
  [
    "a cache of npm that is not ours",
    `npm error code EACCES npm error syscall mkdir\nnpm error path ${root}/tools/no/such\nnpm error errno EACCES`,
    `${root}/tools is not writable: change its owner.`,
  ],
  [
    "a full disk of pnpm's store, in a sentence that pnpm has broken",
    `Failed to write to file at "${root}/.pnpm-\n      store/v11/files/9a": No\n      space left on device (os error 28)`,
    `The disk that holds ${root} is full`,
  ],
  [
    "an index without the wheel",
    "ERROR: No matching distribution found for torch==2.13.0",
    /no torch==2\.13\.0: check the network and the index .*LIBTORCH/,
  ],
  [
    "a package that is too new for npm's settings",
    "npm error code ETARGET\nnpm error notarget No matching version found for pnpm@12.21.0 with a date before 2/13/2026, 12:08:24 PM.",
    /npm_config_before=null/,
  ],
  [
    "packages that are too new for pnpm's settings",
    "✗ Lockfile failed supply-chain policy check (334 entries in 5.4s)\n        …was published at 2026-08-01, within the minimumReleaseAge cutoff",
    /pnpm_config_minimum_release_age=0/,
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

const places = { toolchain: "/tools", checkout: "/home/me/terse" };

describe("remedyFor", () => {
  it.each(seen)("names the remedy of %s in one sentence", (_, output, remedy) => {
    const cwd = output.startsWith("/usr/bin/ld") ? "/home/me/terse/native/tensor" : undefined;
    const sentence = remedyFor(output, { ...places, cwd });
    expect(sentence).toMatch(remedy);
    expect(sentence).not.toContain("\n");
  });

  it("knows no remedy for an error in our own code", () => {
    expect(remedyFor("src/tensor.cc:12:3: error: 'foo' was not declared in this scope", places)).toBeUndefined();
  });
});

describe("requireSpace", () => {
  it("refuses a disk that is too small, and says both sizes", () => {
    expect(() => requireSpace("/", Number.MAX_SAFE_INTEGER)).toThrow(/has [\d.]+ GB free and 9007199\.3 GB are needed/);
    expect(() => requireSpace("/", 0)).not.toThrow();
  });
});
