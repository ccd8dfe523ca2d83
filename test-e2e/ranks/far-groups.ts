/**
 * Groups whose ranks live in processes of their own (programs/far-rank.ts), to be used as if they were here: so one test that holds all
 * ranks of a world holds for ranks anywhere. What a call is given is mirrored there, buffer by buffer, and comes back when it ends.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { CollectiveError, type Group, RankLostError, type Sent, serveRendezvous } from "@terse/collectives";
import { talk } from "./talk.ts";

const token = "the secret of this test";

/** What a far rank says of a call that has ended. */
export interface Answer {
  readonly call: number;
  readonly sent: Sent;
  readonly result?: unknown;
  /** A group that the call has made. */
  readonly group?: { readonly id: number; readonly rank: number; readonly size: number; readonly engine: string };
  /** `ofSignal`: it is the reason of the call's own signal. The same error has the same `id`. */
  readonly error?: { readonly ofSignal: true } | FarError;
  /** Of each mirrored buffer that the call was given. */
  readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
}
export interface FarError {
  readonly id: number;
  readonly name: string;
  readonly message: string;
  readonly reason?: CollectiveError["reason"];
  readonly rank?: number;
  readonly causeIsOfSignal: boolean;
}

interface Mirror {
  readonly id: number;
  readonly buffer: ArrayBufferLike;
  uses: number; // by calls that have not ended
}

/** One rank's process. */
class FarRank {
  readonly #say: (value: unknown) => void;
  readonly #pending = new Map<number, (answer: Answer) => void>();
  readonly #mirrors = new Map<ArrayBufferLike, Mirror>();
  readonly #signals = new Map<AbortSignal, number>();
  readonly #errors = new Map<number, Error>();
  #ids = 0;

  constructor(socket: Socket) {
    this.#say = talk<Answer>(socket, (answer) => {
      this.#pending.get(answer.call)?.(answer);
      this.#pending.delete(answer.call);
    });
  }

  /** `heard` sees the answer before anybody who waits. */
  call(group: number, method: string, given: unknown[], heard: (answer: Answer) => void): Promise<unknown> {
    const id = this.#ids++;
    const mirrors = new Set<Mirror>();
    let signal: AbortSignal | undefined;
    const words = given.map((each) =>
      this.#encode(each, mirrors, (found) => {
        signal = found;
      }),
    );
    const fresh = [...mirrors].filter((mirror) => mirror.uses === 0);
    for (const mirror of mirrors) mirror.uses++;
    const contents = fresh.map((mirror) => [mirror.id, new Uint8Array(mirror.buffer)]);
    const ended = new Promise<Answer>((resolve) => this.#pending.set(id, resolve));
    this.#say({ call: id, group, method, given: words, contents });
    return ended.then((answer) => {
      const came = new Map(answer.contents);
      for (const mirror of mirrors) {
        if (--mirror.uses > 0) continue;
        new Uint8Array(mirror.buffer).set(came.get(mirror.id)!);
        this.#mirrors.delete(mirror.buffer);
        this.#say({ forget: mirror.id });
      }
      heard(answer);
      if (!answer.error) return answer.group ? new FarGroup(this, answer) : answer.result;
      throw "ofSignal" in answer.error ? signal!.reason : this.#revived(answer.error, signal);
    });
  }

  #encode(value: unknown, mirrors: Set<Mirror>, found: (signal: AbortSignal) => void): unknown {
    if (ArrayBuffer.isView(value)) {
      const { buffer, byteOffset } = value;
      const mirror = this.#mirrors.get(buffer) ?? { id: this.#ids++, buffer, uses: 0 };
      this.#mirrors.set(buffer, mirror);
      mirrors.add(mirror);
      return { view: [mirror.id, value.constructor.name, byteOffset, (value as Uint8Array).length] };
    }
    if (value instanceof AbortSignal) {
      found(value);
      return { signal: this.#signal(value) };
    }
    if (Array.isArray(value)) return value.map((each) => this.#encode(each, mirrors, found));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.#encode(each, mirrors, found)]));
  }

  #signal(signal: AbortSignal): number {
    const known = this.#signals.get(signal);
    if (known !== undefined) return known;
    const id = this.#ids++;
    this.#signals.set(signal, id);
    const abort = () => this.#say({ abort: id, reason: (signal.reason as Error).message ?? signal.reason });
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    return id;
  }

  #revived({ id, name, message, reason, rank, causeIsOfSignal }: FarError, signal?: AbortSignal): Error {
    const known = this.#errors.get(id);
    if (known) return known;
    const options = causeIsOfSignal ? { cause: signal!.reason } : {};
    const classes: Record<string, new (text: string) => Error> = { TypeError, RangeError };
    const error =
      name === "RankLostError"
        ? new RankLostError(rank!, message, options)
        : name === "CollectiveError"
          ? new CollectiveError(reason!, message, options)
          : new (classes[name] ?? Error)(message);
    this.#errors.set(id, error);
    return error;
  }
}

class FarGroup implements Group {
  readonly rank: number;
  readonly size: number;
  readonly engine: string;
  readonly #far: FarRank;
  readonly #id: number;
  #sent: Sent;
  #asking = false;

  constructor(far: FarRank, { group, sent }: Answer) {
    this.rank = group!.rank;
    this.size = group!.size;
    this.engine = group!.engine;
    this.#far = far;
    this.#id = group!.id;
    this.#sent = sent;
  }

  #call = (method: string, ...given: unknown[]): Promise<never> =>
    this.#far.call(this.#id, method, given, ({ sent }) => {
      this.#sent = sent;
    }) as Promise<never>;

  allReduce: Group["allReduce"] = (...given) => this.#call("allReduce", ...given);
  reduceScatter: Group["reduceScatter"] = (...given) => this.#call("reduceScatter", ...given);
  allGather: Group["allGather"] = (...given) => this.#call("allGather", ...given);
  allToAll: Group["allToAll"] = (...given) => this.#call("allToAll", ...given);
  broadcast: Group["broadcast"] = (...given) => this.#call("broadcast", ...given);
  gather: Group["gather"] = (...given) => this.#call("gather", ...given);
  scatter: Group["scatter"] = (...given) => this.#call("scatter", ...given);
  send: Group["send"] = (...given) => this.#call("send", ...given);
  recv: Group["recv"] = (...given) => this.#call("recv", ...given);
  barrier: Group["barrier"] = (...given) => this.#call("barrier", ...given);
  split: Group["split"] = (...given) => this.#call("split", ...given);
  close: Group["close"] = () => this.#call("close");
  abort(reason: string): void {
    void this.#call("abort", reason);
  }
  /** As it was when the last call ended; somebody who asks again hears of what goes on. */
  sent(): Sent {
    if (!this.#asking) {
      this.#asking = true;
      void this.#call("sent").then(() => {
        this.#asking = false;
      });
    }
    return this.#sent;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Where far ranks report, and the worlds that they then make together. */
export class FarRanks implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly #rendezvous: Awaited<ReturnType<typeof serveRendezvous>>[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => this.#sockets.push(socket.on("error", () => {})));
  }

  static async listen(): Promise<FarRanks> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new FarRanks(server);
  }

  /** To be given to far-rank.ts. */
  get port(): string {
    return `${(this.#server.address() as { port: number }).port}`;
  }

  /** Who reports first is rank 0. */
  async gathered(size: number): Promise<(engine: string) => Promise<Group[]>> {
    while (this.#sockets.length < size) await once(this.#server, "connection");
    const ranks = this.#sockets.map((socket) => new FarRank(socket));
    return async (engine) => {
      const server = await serveRendezvous({ size, token });
      this.#rendezvous.push(server);
      const shared = { WORLD_SIZE: `${size}`, TERSE_TOKEN: token, TERSE_RENDEZVOUS: `${server.host}:${server.port}` };
      const join = (far: FarRank, rank: number) =>
        far.call(-1, "join", [{ engine, env: { ...shared, RANK: `${rank}` } }], () => {});
      return (await Promise.all(ranks.map(join))) as Group[];
    };
  }

  /** The far ranks' processes end by themselves. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.end();
    this.#server.close();
    await Promise.all(this.#rendezvous.map((server) => server.close()));
  }
}
