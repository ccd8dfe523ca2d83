/** A rank that runs the calls that a test sends over a socket; see remote-groups.ts. Argument: the port. */
import { connect } from "node:net";
import { type CollectiveError, type Group, joinWorld, type RankLostError, type TypedArray } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { messageChannel } from "../message-channel.ts";
import type { Answer, RemoteError } from "../remote-groups.ts";

interface Call {
  readonly call: number;
  readonly group: number;
  readonly method: string;
  readonly args: readonly unknown[];
  readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
}
type Message = Call | { readonly forget: number } | { readonly abort: number; readonly reason: string };

const buffers = new Map<number, ArrayBuffer>();
const controllers = new Map<number, AbortController>();
const groups: Group[] = [];
const errors: Error[] = [];
const nothing = { bytes: 0, messages: 0, headerBytes: 0 };

const controllerOf = (id: number) => {
  const controller = controllers.get(id) ?? new AbortController();
  controllers.set(id, controller);
  return controller;
};

/** The arguments of a call in this process; `used` and `signal` are the buffers and the signal among them. */
class Arguments {
  readonly used = new Set<number>();
  signal: AbortSignal | undefined;

  decode = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(this.decode);
    if (typeof value !== "object" || value === null) return value;
    if ("view" in value) {
      const [id, type, offset, length] = value.view as [number, string, number, number];
      this.used.add(id);
      const View = (globalThis as never)[type] as new (...from: unknown[]) => TypedArray;
      return new View(buffers.get(id), offset, length);
    }
    if ("signal" in value && typeof value.signal === "number") return this.#take(value.signal);
    const here = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.decode(each)]));
    return "array" in here ? { ...here, pointer: collectives().addressOf(here["array"] as TypedArray) } : here;
  };

  #take(id: number): AbortSignal {
    this.signal = controllerOf(id).signal;
    return this.signal;
  }
}

const send = messageChannel<Message>(connect(Number(process.argv[2]), "127.0.0.1"), (message) => {
  if ("forget" in message) return void buffers.delete(message.forget);
  // A reason that is an Error arrives as its message, and one that is a text as this text.
  if ("abort" in message) return controllerOf(message.abort).abort(message.reason);
  void answer(message);
});

async function answer({ call, group, method, args, contents }: Call): Promise<void> {
  for (const [id, bytes] of contents) buffers.set(id, new Uint8Array(bytes).buffer);
  const local = new Arguments();
  const decoded = args.map(local.decode);
  const reply: { -readonly [key in keyof Answer]: Answer[key] } = { call, sent: nothing, contents: [] };
  try {
    const on = groups[group] as unknown as Record<string, (...decoded: unknown[]) => unknown>;
    const result = await (method === "join" ? joinWorld(decoded[0] as never) : on[method]!(...decoded));
    if (typeof result === "object" && result !== null && "allReduce" in result) {
      const opened = result as Group;
      reply.group = { id: groups.push(opened) - 1, rank: opened.rank, size: opened.size, engine: opened.engine };
    } else {
      reply.result = result;
    }
  } catch (error) {
    reply.error =
      local.signal?.aborted && error === local.signal.reason ? { ofSignal: true } : encodeError(error as Error, local);
  }
  reply.sent = groups[reply.group?.id ?? group]?.sent() ?? nothing;
  reply.contents = [...local.used].map((id) => [id, new Uint8Array(buffers.get(id)!)]);
  send(reply);
}

function encodeError(error: Error, { signal }: Arguments): RemoteError {
  const known = errors.indexOf(error);
  const id = known < 0 ? errors.push(error) - 1 : known;
  const { name, message, reason, rank } = error as CollectiveError & RankLostError;
  const causeIsOfSignal = signal?.aborted === true && error.cause === signal.reason;
  return { id, name, message, reason, rank, causeIsOfSignal };
}
