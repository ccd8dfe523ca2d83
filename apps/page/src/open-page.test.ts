import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openPage } from "./open-page.ts";
import { temporaryRun, trainingLine } from "./testing/temporary-run.ts";

/** What a journal is told, line by line. */
function listener() {
  const lines: string[] = [];
  const first = Promise.withResolvers<string>();
  const note = (line: string) => {
    lines.push(line);
    first.resolve(line);
  };
  return { note, lines, first: first.promise };
}

describe("the page of a training", () => {
  it("says its token only where nobody else has been told", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0));
    for (const isTold of [true, false]) {
      const shown = listener();
      const told: string[] = [];
      using _page = openPage(run.folder, { host: "0.0.0.0", port: 0 }, shown, (url) => {
        told.push(url);
        return isTold;
      });
      expect(await shown.first).toMatch(
        isTold ? /^page http:\/\/[^/]+\/$/ : /^page http:\/\/[^/]+\/#token=[\w-]{16,}$/,
      );
      expect(told).toEqual([expect.stringMatching(/^http:\/\/[^/]+\/#token=[\w-]{16,}$/)]);
    }
  });

  it("says where it is, and where its port is taken says so in one line; it ends with the training", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0));
    await using other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    const [shown, refused] = [listener(), listener()];
    const page = openPage(run.folder, { host: "127.0.0.1", port: 0 }, shown);
    using _refused = openPage(run.folder, { host: "127.0.0.1", port }, refused);

    const [, url = ""] = /^page (http:\/\/127\.0\.0\.1:\d+\/)$/.exec(await shown.first) ?? [];
    expect((await fetch(url)).status).toBe(200);
    expect(await refused.first).toBe(
      `the page is not shown: port ${port} of 127.0.0.1 is taken; choose another one, or 0 for any; ./terse page ${run.folder} shows this run, too`,
    );

    page[Symbol.dispose]();
    const answers = () =>
      fetch(url).then(
        () => true,
        () => false,
      );
    while (await answers()) await sleep(20);
    expect([shown.lines.length, refused.lines.length]).toEqual([1, 1]);
  });
});
