/**
 * Groups whose ranks are in processes of their own (programs/remote-rank.ts), but which a test uses like local ones. So
 * the engine contract, which has all ranks of a world in one process, also runs on separate processes. The buffers of a
 * call are copied to the remote rank, and copied back when the call ends.
 */
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { CollectiveError, type Group, RankLostError, type Sent, serveRendezvous } from "@terse/collectives";
import { messageChannel } from "./message-channel.ts";

const token = "the secret of this test";
const deadlineSeconds = 300; // that a busy machine meets

/** A remote rank's message that a call has ended. */
export interface Answer {
  readonly call: number;
  readonly sent: Sent;
  readonly result?: unknown;
  /** The group that the call has opened. */
  readonly group?: { readonly id: number; readonly rank: number; readonly size: number; readonly engine: string };
  /** `ofSignal`: the error is the reason of the call's own signal. The same error has the same `id`. */
  readonly error?: { readonly ofSignal: true } | RemoteError;
  /** The content of each buffer that the call uses. */
  readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
}
export interface RemoteError {
  readonly id: number;
  readonly name: string;
  readonly message: string;
  readonly reason?: CollectiveError["reason"];
  readonly rank?: number;
  readonly causeIsOfSignal: boolean;
}

/** A buffer of the test, which the remote rank has a copy of. */
interface Mirror {
  readonly id: number;
  readonly buffer: ArrayBufferLike;
  uses: number; // calls that have not ended
}

const processEnded = () => new Error("the process of a remote rank has ended");

/** The connection to one rank's process. */
class RemoteRank {
  readonly #send: (value: unknown) => void;
  readonly #pending = new Map<number, PromiseWithResolvers<Answer>>();
  #isOver = false; // its process has ended
  readonly #mirrors = new Map<ArrayBufferLike, Mirror>();
  readonly #signals = new Map<AbortSignal, number>();
  readonly #errors = new Map<number, Error>();
  #ids = 0;

  constructor(socket: Socket) {
    this.#send = messageChannel<Answer>(socket, (answer) => {
      this.#pending.get(answer.call)?.resolve(answer);
      this.#pending.delete(answer.call);
    });
    socket.on("close", () => {
      this.#isOver = true;
      for (const { reject } of this.#pending.values()) reject(processEnded());
      this.#pending.clear();
    });
  }

  /** `onAnswer` is called before the promise settles. */
  call(group: number, method: string, args: unknown[], onAnswer: (answer: Answer) => void): Promise<unknown> {
    const id = this.#ids++;
    const mirrors = new Set<Mirror>();
    let signal: AbortSignal | undefined;
    const encoded = args.map((each) =>
      this.#encode(each, mirrors, (found) => {
        signal = found;
      }),
    );
    const unused = [...mirrors].filter((mirror) => mirror.uses === 0);
    for (const mirror of mirrors) mirror.uses++;
    const contents = unused.map((mirror) => [mirror.id, new Uint8Array(mirror.buffer)]);
    const ended = Promise.withResolvers<Answer>();
    if (this.#isOver) ended.reject(processEnded());
    else this.#pending.set(id, ended);
    this.#send({ call: id, group, method, args: encoded, contents });
    return ended.promise.then((answer) => {
      const returned = new Map(answer.contents);
      for (const mirror of mirrors) {
        if (--mirror.uses > 0) continue;
        new Uint8Array(mirror.buffer).set(returned.get(mirror.id)!);
        this.#mirrors.delete(mirror.buffer);
        this.#send({ forget: mirror.id });
      }
      onAnswer(answer);
      if (!answer.error) return answer.group ? new RemoteGroup(this, answer) : answer.result;
      throw "ofSignal" in answer.error ? signal!.reason : this.#errorOf(answer.error, signal);
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
    const abort = () => this.#send({ abort: id, reason: (signal.reason as Error).message ?? signal.reason });
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort);
    return id;
  }

  #errorOf({ id, name, message, reason, rank, causeIsOfSignal }: RemoteError, signal?: AbortSignal): Error {
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

class RemoteGroup implements Group {
  readonly rank: number;
  readonly size: number;
  readonly engine: string;
  readonly #remote: RemoteRank;
  readonly #id: number;
  #sent: Sent;
  #requesting = false;
  #ended: Error | undefined; // of a request for the counts, after its process has ended

  constructor(remote: RemoteRank, { group, sent }: Answer) {
    this.rank = group!.rank;
    this.size = group!.size;
    this.engine = group!.engine;
    this.#remote = remote;
    this.#id = group!.id;
    this.#sent = sent;
  }

  #call = (method: string, ...args: unknown[]): Promise<never> =>
    this.#remote.call(this.#id, method, args, ({ sent }) => {
      this.#sent = sent;
    }) as Promise<never>;

  allReduce: Group["allReduce"] = (...args) => this.#call("allReduce", ...args);
  reduceScatter: Group["reduceScatter"] = (...args) => this.#call("reduceScatter", ...args);
  allGather: Group["allGather"] = (...args) => this.#call("allGather", ...args);
  allToAll: Group["allToAll"] = (...args) => this.#call("allToAll", ...args);
  broadcast: Group["broadcast"] = (...args) => this.#call("broadcast", ...args);
  gather: Group["gather"] = (...args) => this.#call("gather", ...args);
  scatter: Group["scatter"] = (...args) => this.#call("scatter", ...args);
  send: Group["send"] = (...args) => this.#call("send", ...args);
  recv: Group["recv"] = (...args) => this.#call("recv", ...args);
  barrier: Group["barrier"] = (...args) => this.#call("barrier", ...args);
  split: Group["split"] = (...args) => this.#call("split", ...args);
  close: Group["close"] = () => this.#call("close");
  abort(reason: string): void {
    this.#call("abort", reason).catch(() => {});
  }
  /** The counts at the end of the last call. It also requests the current ones, for a caller that polls. */
  sent(): Sent {
    if (this.#ended) throw this.#ended;
    if (!this.#requesting) {
      this.#requesting = true;
      this.#call("sent").then(
        () => {
          this.#requesting = false;
        },
        (error: Error) => {
          this.#ended = error;
        },
      );
    }
    return this.#sent;
  }
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Waits for the connections of remote ranks, and opens worlds on them. */
export class RemoteRanks implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets: Socket[] = [];
  readonly #rendezvous: Awaited<ReturnType<typeof serveRendezvous>>[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => this.#sockets.push(socket.on("error", () => {})));
  }

  static async listen(): Promise<RemoteRanks> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    return new RemoteRanks(server);
  }

  /** The argument of remote-rank.ts. */
  get port(): string {
    return `${(this.#server.address() as { port: number }).port}`;
  }

  /** Waits for `size` ranks, in the order in which they connect. The result opens a world on them. */
  async connected(size: number): Promise<(engine: string) => Promise<Group[]>> {
    while (this.#sockets.length < size) await once(this.#server, "connection");
    const ranks = this.#sockets.map((socket) => new RemoteRank(socket));
    return async (engine) => {
      const server = await serveRendezvous({ size, token, deadlineSeconds });
      this.#rendezvous.push(server);
      const shared = { WORLD_SIZE: `${size}`, TERSE_TOKEN: token, TERSE_RENDEZVOUS: `${server.host}:${server.port}` };
      const join = (remote: RemoteRank, rank: number) =>
        remote.call(-1, "join", [{ engine, deadlineSeconds, env: { ...shared, RANK: `${rank}` } }], () => {});
      return (await Promise.all(ranks.map(join))) as Group[];
    };
  }

  /** Ends the connections; then the remote ranks' processes end by themselves. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.end();
    this.#server.close();
    await Promise.all(this.#rendezvous.map((server) => server.close()));
  }
}
