import { createServer, type ServerResponse } from "node:http";
import { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { openRuns } from "./run-folder.ts";
import { temporaryRun, trainingLine } from "./testing/temporary-run.ts";
import { Viewer } from "./viewer.ts";

describe("a viewer", () => {
  it("that takes nothing keeps little in memory, and gets all when it takes again", async () => {
    using run = temporaryRun();
    const count = 50_000; // 5 MB
    run.add(...Array.from({ length: count }, (_, step) => trainingLine(step)));
    const waiting: (() => void)[] = [];
    let isStuck = true;
    const received: Buffer[] = [];
    const connection = new Duplex({
      read() {},
      write(chunk: Buffer, _, done) {
        received.push(chunk);
        if (isStuck) waiting.push(done);
        else done();
      },
    });
    const bytes = () => received.reduce((sum, chunk) => sum + chunk.length, 0);

    const answering = Promise.withResolvers<ServerResponse>();
    const server = createServer((_, response) => answering.resolve(response));
    server.emit("connection", connection);
    connection.push("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    const response = await answering.promise;
    const viewer = new Viewer(response, openRuns([run.folder]), undefined);
    const sent = viewer.send();
    for (let second = 0; second < 20; second++) {
      void viewer.send(); // as the clock asks
      await sleep(10);
    }
    expect(bytes() + connection.writableLength + response.writableLength).toBeLessThan(1_000_000);

    isStuck = false;
    for (const done of waiting) done();
    await sent;
    expect(
      Buffer.concat(received)
        .toString()
        .match(/"step":/g),
    ).toHaveLength(count);
    connection.destroy();
  });
});
