import { describe, expect, it } from "vitest";
import { which } from "../which.ts";
import { aptRelease, packagesInUris, runtimeLibraries } from "./apt.ts";

describe("apt", () => {
  it.skipIf(which("apt-get") === undefined)("names the release, for one folder per distribution (needs apt)", () => {
    expect(aptRelease('PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nID=debian\n')).toBe("debian-12");
    expect(aptRelease('NAME="Ubuntu"\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n')).toBe(
      "ubuntu-24.04",
    );
    expect(aptRelease("ID=debian\nVERSION_CODENAME=sid\n")).toBe("debian-sid");
  });

  it("finds a -dev package's own library, whatever its name in this release", () => {
    const debian12 = "libgloo-dev\n  Depends: libgloo0\n  Depends: libhiredis-dev\n  Depends: libibverbs-dev\n";
    const newer =
      "libgloo-dev\n  Depends: libgloo0t64\n  Depends: libgloo-dev-common-dev\n |Depends: libhiredis-dev\n  Depends: <libgloo-virtual>\n";
    expect(runtimeLibraries("libgloo-dev", debian12)).toEqual(["libgloo0"]);
    expect(runtimeLibraries("libgloo-dev", newer)).toEqual(["libgloo0t64"]);
    expect(runtimeLibraries("python3-pip", "python3-pip\n  Depends: python3\n")).toEqual([]);
  });

  it("lists the packages that this machine lacks", () => {
    const answer = [
      "'http://deb.debian.org/debian/pool/main/libn/libnl3/libnl-3-200_3.7.0-0.2%2bb1_amd64.deb' libnl-3-200_3.7.0-0.2+b1_amd64.deb 63124 MD5Sum:928f",
      "'http://archive.ubuntu.com/ubuntu/pool/universe/h/hiredis/libhiredis1.1.0_1.2.0-6ubuntu3_amd64.deb' libhiredis1.1.0_1.2.0-6ubuntu3_amd64.deb 41400 SHA512:1c",
      "",
    ].join("\n");
    expect(packagesInUris(answer)).toEqual(["libnl-3-200", "libhiredis1.1.0"]);
    expect(packagesInUris("")).toEqual([]);
  });
});
