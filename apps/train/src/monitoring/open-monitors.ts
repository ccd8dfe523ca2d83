/**
 * What shows a run besides its terminal, on rank 0: each gets the lines of metrics.jsonl. What cannot be opened is
 * reported in a line, and the run goes on.
 */
import { sentence } from "../failure.ts";
import type { Run } from "../saves/run.ts";
import type { Line } from "./numbers-of.ts";
import { Prometheus } from "./prometheus.ts";
import { tensorboard } from "./tensorboard.ts";
import { Tracker, trackers } from "./tracker.ts";

export interface MonitorArguments {
  readonly tensorboard?: true | undefined;
  readonly prometheus?: { readonly host: string; readonly port: number } | undefined;
}

/** The monitors of a run. Without `ended` they take it for dead when they are disposed. */
export interface Monitors extends Disposable {
  ended(code: number): void;
}

/** Opens the monitors that the arguments ask for, until the result is disposed. `note` prints a line. Never rejects. */
export async function openMonitors(
  { tensorboard: writesEvents, prometheus: address }: MonitorArguments,
  run: Run,
  note: (text: string) => void,
): Promise<Monitors> {
  const opened: { name: string; show: (line: Line) => void }[] = [];
  const resources = new DisposableStack();
  const without = (name: string, why: string) => note(`${name}: ${why}; the run goes on without it`);
  if (writesEvents)
    try {
      const events = resources.use(tensorboard(run.folder, run.step, note));
      opened.push({ name: "tensorboard", show: events.show });
    } catch (error) {
      without("tensorboard", sentence(error));
    }
  if (address) {
    const server = new Prometheus();
    try {
      note(`numbers for Prometheus at ${await server.listen(address)}`);
      resources.use(server);
      opened.push({ name: "prometheus", show: (line) => server.show(line) });
    } catch (error) {
      const taken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
      without(
        "prometheus",
        taken ? `port ${address.port} is taken: choose another, --prometheus PORT` : sentence(error),
      );
    }
  }
  const tracking: Tracker[] = [];
  for (const name of trackers) {
    const to = run.recipe.track?.[name];
    if (to === undefined) continue;
    try {
      const tracker = resources.use(new Tracker(name, to, run, note));
      tracking.push(tracker);
      opened.push({ name: `track.${name}`, show: (line) => tracker.show(line) });
    } catch (error) {
      without(`track.${name}`, sentence(error));
    }
  }
  run.reader = (line) => {
    for (const each of [...opened])
      try {
        each.show(line);
      } catch (error) {
        without(each.name, sentence(error));
        opened.splice(opened.indexOf(each), 1);
      }
  };
  return {
    ended(code) {
      for (const each of tracking) each.ended(code);
    },
    [Symbol.dispose]: () => resources.dispose(),
  };
}
