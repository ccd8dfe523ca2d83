/**
 * The program of a process that renders chat templates. Others wrote them: one that runs for ever, or fills the memory,
 * ends this process and not the run.
 */
import { compileChat, type Message, type Render, type Rendering, type RenderOptions } from "./render-chat.ts";

/** The template comes first. Each of the others is answered, one after the other. */
export type RenderMessage = (RenderOptions & { readonly template: string }) | RenderRequest;

export interface RenderRequest {
  readonly messages: readonly Message[];
  readonly tools?: unknown;
  /** Rendered besides: the first messages alone, with `prompt` followed by what asks for an answer. */
  readonly beginnings: readonly { readonly count: number; readonly prompt: boolean }[];
}

export type Rendered = Rendering & { readonly beginnings: readonly string[] };
export type RenderAnswer = Rendered | { readonly problem: string };

let render: () => Render;

function answerTo({ messages, tools, beginnings }: RenderRequest): Rendered {
  const chat = render();
  return {
    ...chat(messages, { prompt: false, tools }),
    beginnings: beginnings.map(({ count, prompt }) => chat(messages.slice(0, count), { prompt, tools }).text),
  };
}

process.on("message", (message: RenderMessage) => {
  if ("template" in message) {
    let compiled: Render | undefined;
    render = () => (compiled ??= compileChat(message.template, message));
    return;
  }
  let answer: RenderAnswer;
  try {
    answer = answerTo(message);
  } catch (error) {
    answer = { problem: error instanceof Error ? error.message : String(error) };
  }
  process.send!(answer);
});
// An interrupt ends the run, and the run ends this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
process.on("disconnect", () => process.exit());
