import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { get, type IncomingHttpHeaders, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import { openRuns } from "./run-folder.ts";
import { type PageServer, servePage } from "./server.ts";
import { temporaryRun, trainingLine } from "./testing/temporary-run.ts";

const here = { host: "127.0.0.1", port: 0 };
const everywhere = { host: "0.0.0.0", port: 0 };

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Asks without a client that tidies paths. */
async function ask(
  { url }: PageServer,
  path: string,
  headers: Record<string, string> = {},
  method = "GET",
): Promise<Answer> {
  const request = get({ host: "127.0.0.1", port: new URL(url).port, path, headers, method });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return { status: response.statusCode!, headers: response.headers, body: await text(response) };
}

interface Event {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** The events of a stream, one after the other; `next` waits for one of this name. */
async function follow({ url }: PageServer, headers: Record<string, string> = {}) {
  const request = get({ host: "127.0.0.1", port: new URL(url).port, path: "/events", headers });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.headers["content-type"]).toBe("text/event-stream");
  const events = eventsOf(response);
  return {
    async next(name: string): Promise<Event> {
      for (;;) {
        const { value, done } = await events.next();
        if (done) throw new Error(`the stream ended before ${name}`);
        if (value.event === name) return value;
      }
    },
    async [Symbol.asyncDispose]() {
      request.destroy();
    },
  };
}

async function* eventsOf(response: IncomingMessage): AsyncGenerator<Event, undefined> {
  let rest = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      const blocks = (rest + chunk).split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const fields = block.split("\n").map((line) => line.split(/: (.*)/s) as [string, string]);
        const all = (name: string) => fields.filter(([field]) => field === name).map(([, value]) => value);
        yield { event: all("event")[0] ?? "", data: all("data").join("\n"), id: all("id")[0] };
      }
    }
  } catch {
    // the test has ended it
  }
}

const stepsIn = ({ data }: Event) =>
  data
    .split("\n")
    .slice(1)
    .map((line) => (JSON.parse(line) as { step: number }).step);

describe("a page on loopback", () => {
  it("sends one page, one script and one style sheet, which name no other address", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), here);
    for (const path of ["/", "/page.js", "/page.css"]) {
      const { status, headers, body } = await ask(server, path);
      expect([path, status]).toEqual([path, 200]);
      expect(headers["content-security-policy"]).toMatch(/^default-src 'none'; script-src 'self';/);
      // The name of SVG's namespace.
      expect(body.match(/(https?:)?\/\/[a-z]/g) ?? [], path).toEqual(path === "/page.js" ? ["http://w"] : []);
      const again = await ask(server, path, { "if-none-match": headers.etag! });
      expect([again.status, again.body]).toEqual([304, ""]);
    }
    const { headers } = await ask(server, "/page.js", { "accept-encoding": "gzip" });
    expect(headers["content-encoding"]).toBe("gzip");
  });

  it("sends no file, whatever path is asked for, and changes nothing", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), here);
    const paths = [
      "/recipe.json",
      "/../../../etc/passwd",
      "/%2e%2e/%2e%2e/etc/passwd",
      "//etc/passwd",
      "/page.js/../../main.ts",
    ];
    for (const path of [
      ...paths,
      "/..%2fpackage.json",
      "/\\..\\main.ts",
      "/__proto__",
      "/constructor",
      "/client/main.ts",
    ])
      expect([path, (await ask(server, path)).status]).toEqual([path, 404]);
    for (const method of ["POST", "PUT", "DELETE", "PATCH"])
      expect((await ask(server, "/", {}, method)).status).toBe(405);
  });

  it("refuses requests under another machine's name, as web pages elsewhere could make them", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), here);
    const port = new URL(server.url).port;
    for (const host of ["localhost", `localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`])
      expect((await ask(server, "/", { host })).status).toBe(200);
    for (const host of ["evil.example", `evil.example:${port}`, "localhost.evil.example", "127.0.0.1.evil.example"]) {
      const { status, body } = await ask(server, "/events", { host });
      expect([status, body]).toEqual([403, expect.stringMatching(/^this page is for its own machine.*\n$/)]);
    }
  });

  it("says in one line that its port is taken", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), here);
    const port = Number(new URL(server.url).port);
    await expect(servePage(openRuns([run.folder]), { ...here, port })).rejects.toThrow(
      `port ${port} of 127.0.0.1 is taken; choose another one, or 0 for any`,
    );
  });

  it("goes on after requests that are none", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), here);
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1").on("error", () => {});
    socket.write("\0\0 nothing\r\n\r\n");
    await once(socket, "close");
    expect((await ask(server, "/")).status).toBe(200);
  });
});

describe("a page on another address", () => {
  it("needs its token, in a header or in the cookie that it gives for it", async () => {
    using run = temporaryRun();
    await using server = await servePage(openRuns([run.folder]), everywhere);
    const token = /#token=([\w-]{32})$/.exec(server.url)![1]!;
    const refused = { status: 401, body: expect.stringMatching(/^this page needs its token: .*\n$/) };
    for (const path of ["/", "/events", "/enter", "/other"]) expect(await ask(server, path)).toMatchObject(refused);
    for (const wrong of ["", "x", token.slice(1), `${token}x`, token.toUpperCase()])
      expect(await ask(server, "/enter", { authorization: `Bearer ${wrong}` })).toMatchObject(refused);

    const { status, headers } = await ask(server, "/enter", { authorization: `Bearer ${token}` });
    expect(status).toBe(204);
    const [cookie] = headers["set-cookie"]!;
    expect(cookie).toMatch(/; HttpOnly; SameSite=Strict$/);
    const pair = cookie!.split(";")[0]!;
    expect((await ask(server, "/", { cookie: `other=1; ${pair}` })).status).toBe(200);
    expect(await ask(server, "/", { cookie: pair.slice(0, -1) })).toMatchObject(refused);
    await using stream = await follow(server, { cookie: pair });
    expect(JSON.parse((await stream.next("run")).data)).toMatchObject({ name: "a-run" });
  });

  it("lets a browser in again that has a given token's cookie, after it has started again at the same port", async () => {
    using run = temporaryRun();
    const token = "0123456789abcdef";
    const first = await servePage(openRuns([run.folder]), everywhere, token);
    const { headers } = await ask(first, "/enter", { authorization: `Bearer ${token}` });
    const cookie = headers["set-cookie"]![0]!.split(";")[0]!;
    await first[Symbol.asyncDispose]();
    const at = { ...everywhere, port: Number(new URL(first.url).port) };
    await using again = await servePage(openRuns([run.folder]), at, token);
    expect(again.url).toBe(first.url);
    expect((await ask(again, "/", { cookie })).status).toBe(200);
  });

  it.each(["short", "with a space in it", "a;b=cdefghijklmnopq"])("refuses the token %j in a line", async (token) => {
    await expect(servePage([], everywhere, token)).rejects.toThrow(
      /^TERSE_PAGE_TOKEN is no token: .* a new one is made$/,
    );
  });

  it("gives a browser without it the page that hands it in, and nothing of the run", async () => {
    using run = temporaryRun("secret-name");
    run.add(trainingLine(0));
    await using server = await servePage(openRuns([run.folder]), everywhere);
    const { status, body } = await ask(server, "/", { accept: "text/html,*/*" });
    expect([status, body]).toEqual([401, expect.stringContaining("<!doctype html>")]);
    expect(body).not.toContain("secret-name");
    expect((await ask(server, "/page.js")).status).toBe(200);
  });
});

describe("the stream of a run", () => {
  it("sends the recipe, then all lines, then those that are written", async () => {
    using run = temporaryRun("a-run", { steps: 7 });
    run.add(trainingLine(0), trainingLine(1));
    await using server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    expect(JSON.parse((await stream.next("run")).data)).toEqual({
      run: 0,
      of: 1,
      name: "a-run",
      recipe: { steps: 7 },
      problems: [],
    });
    expect(stepsIn(await stream.next("lines"))).toEqual([0, 1]);
    expect(JSON.parse((await stream.next("state")).data)).toMatchObject({ run: 0, running: false, cut: false });
    run.add(trainingLine(2));
    expect(stepsIn(await stream.next("lines"))).toEqual([2]);
  });

  it("waits for the end of a line, and says that it has none", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0), '{"step":1,"train/lo');
    await using server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    expect(stepsIn(await stream.next("lines"))).toEqual([0]);
    expect(JSON.parse((await stream.next("state")).data)).toMatchObject({ cut: true });
    run.add('ss":3}\n');
    const event = await stream.next("lines");
    expect(event.data).toBe('0\n{"step":1,"train/loss":3}');
    expect(JSON.parse((await stream.next("state")).data)).toMatchObject({ cut: false });
  });

  it("goes on where a browser was that comes back, and begins again where the file is another one", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0), trainingLine(1));
    await using server = await servePage(openRuns([run.folder]), here);
    let id: string | undefined;
    {
      await using first = await follow(server);
      ({ id } = await first.next("lines"));
    }
    run.add(trainingLine(2));
    await using second = await follow(server, { "last-event-id": id! });
    expect(stepsIn(await second.next("lines"))).toEqual([2]);

    run.rewrite(trainingLine(0), trainingLine(7));
    expect((await second.next("anew")).data).toBe("0");
    expect(stepsIn(await second.next("lines"))).toEqual([0, 7]);
    for (const nonsense of ["x", "1:2,3:4", "-1:-1", "1e99:5"]) {
      await using stream = await follow(server, { "last-event-id": nonsense });
      expect(stepsIn(await stream.next("lines"))).toEqual([0, 7]);
    }
  });

  it("sends a long file in parts, and a line that is longer than a part", async () => {
    using run = temporaryRun();
    const many = Array.from({ length: 20_000 }, (_, step) => trainingLine(step));
    run.add(...many, { step: 20_000, "sample/text": "x".repeat(1_000_000) }, trainingLine(20_001));
    await using server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    const steps: number[] = [];
    let parts = 0;
    while (steps.at(-1) !== 20_001) {
      steps.push(...stepsIn(await stream.next("lines")));
      parts++;
    }
    expect(steps).toEqual(Array.from({ length: 20_002 }, (_, step) => step));
    expect(parts).toBeGreaterThan(5);
  });

  it("passes over a line that is longer than any of metrics, and counts what is left of it as none", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0), { step: 1, "sample/text": "x".repeat(40 << 20) }, trainingLine(2));
    await using server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    expect(stepsIn(await stream.next("lines"))).toEqual([0]);
    const [, rest, last, ...none] = (await stream.next("lines")).data.split("\n");
    expect(() => JSON.parse(rest!)).toThrow();
    expect(JSON.parse(last!)).toMatchObject({ step: 2 });
    expect(none).toEqual([]);
  });

  it("waits for no pipe in the folder, and says that it is none of its files", async () => {
    using run = temporaryRun("a-run", null);
    for (const name of ["recipe.json", "metrics.jsonl", "lock.json"]) execFileSync("mkfifo", [join(run.folder, name)]);
    await using server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    expect(JSON.parse((await stream.next("run")).data)).toMatchObject({
      problems: [
        "recipe.json cannot be read, so the recipe and the number of steps are not shown",
        "metrics.jsonl is not a file, so no numbers are shown",
      ],
    });
    expect(JSON.parse((await stream.next("state")).data)).toMatchObject({ run: 0 });
  });

  it("shows what it can of a folder without a recipe, and of several runs with the same name", async () => {
    using one = temporaryRun("same", null);
    using other = temporaryRun("same");
    one.add(trainingLine(0));
    await using server = await servePage(openRuns([one.folder, other.folder]), here);
    await using stream = await follow(server);
    const [first, second] = [await stream.next("run"), await stream.next("run")].map(({ data }) => JSON.parse(data));
    expect(first.problems).toEqual(["recipe.json is missing, so the recipe and the number of steps are not shown"]);
    expect([first.name, second.name].every((name: string) => /^terse-page-\w+\/same$/.test(name))).toBe(true);
    expect(stepsIn(await stream.next("lines"))).toEqual([0]);
  });

  it("ends when the server does, with what was written last", async () => {
    using run = temporaryRun();
    run.add(trainingLine(0));
    const server = await servePage(openRuns([run.folder]), here);
    await using stream = await follow(server);
    await stream.next("state");
    run.add(trainingLine(1));
    await server[Symbol.asyncDispose]();
    expect(stepsIn(await stream.next("lines"))).toEqual([1]);
    await expect(stream.next("lines")).rejects.toThrow("the stream ended");
  });
});
