import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LockWatch, lockChangesEverySeconds, lockSilentAfterSeconds, thisProcess } from "./lock-holder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-lock-holder-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, "lock.json");
const write = (holder: object) => writeFileSync(path(), JSON.stringify(holder));
const elsewhere = { pid: 7, since: "1", host: "there", boot: "x", namespace: "pid:[1]" };

/** A watch whose clock stands still until it is told to go on. */
function watching() {
  let now = 0;
  const watch = new LockWatch(path(), () => now);
  return {
    look: () => watch.look(),
    /** Looks once a second. */
    after(seconds: number) {
      for (let i = 0; i < seconds - 1; i++) {
        now += 1000;
        watch.look();
      }
      now += 1000;
      return watch.look();
    },
    leap: (seconds: number) => {
      now += 1000 * seconds;
      return watch.look();
    },
  };
}

describe("who holds a lock file", () => {
  it("is known at once of a process of this namespace", () => {
    const watch = watching();
    expect(watch.look()).toBe("free"); // there is no file
    write(thisProcess());
    expect(watch.look()).toBe("held");
    write({ ...thisProcess(), since: "1" }); // another process has its number now
    expect(watch.look()).toBe("free");
    write({ ...thisProcess(), pid: 2 ** 22 + 1 });
    expect(watch.look()).toBe("free");
  });

  it("is seen elsewhere by the changes of the file, whatever its times are", () => {
    write(elsewhere);
    const watch = watching();
    expect(watch.look()).toBe("unclear");
    expect(watch.after(lockSilentAfterSeconds - 1)).toBe("unclear");
    write({ ...elsewhere, count: 1 });
    utimesSync(path(), new Date(0), new Date(0));
    expect(watch.after(1)).toBe("held");
    expect(watch.after(lockSilentAfterSeconds - 1)).toBe("held");
    expect(watch.after(1)).toBe("free");
    utimesSync(path(), new Date(1000), new Date(1000)); // it runs after all
    expect(watch.after(1)).toBe("held");
  });

  it("is not decided by a pause of the process that watches", () => {
    write(elsewhere);
    const watch = watching();
    watch.look();
    expect(watch.leap(1000)).toBe("unclear");
    expect(watch.after(lockSilentAfterSeconds - lockChangesEverySeconds)).toBe("free");
  });

  it("is watched longer where an earlier version wrote the file, which it touched every 15 s", () => {
    const { namespace: _, ...before } = elsewhere;
    write(before);
    const watch = watching();
    watch.look();
    expect(watch.after(59)).toBe("unclear");
    expect(watch.after(1)).toBe("free");
  });

  it.each(["", "null", '{"pid":', '{"pid":"7"}', '{"pid":-1}', "[]"])(
    "is nobody where the file stays cut short or holds something else: %s",
    (text) => {
      writeFileSync(path(), text);
      const watch = watching();
      expect(watch.look()).toBe("unclear");
      expect(watch.after(1)).toBe("free");
    },
  );
});
