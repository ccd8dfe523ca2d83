/** The numbers of a run for TensorBoard: event files in the run's folder `tensorboard`, a new one for each process. */
import { appendFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { makeFolder } from "@terse/checkpoint";
import { AppendedFile } from "../appended-file.ts";
import { restartRecord, scalarsRecord, versionRecord } from "./event-file.ts";
import { type Line, namedNumbers } from "./numbers-of.ts";

/** Returns what writes a line. `step`: the first one of this process. Throws where the file cannot be written. */
export function tensorboard(
  folder: string,
  step: number,
  note: (text: string) => void,
): { show: (line: Line) => void } & Disposable {
  const events = join(folder, "tensorboard");
  makeFolder(events);
  const now = () => Date.now() / 1000;
  const file = join(events, `events.out.tfevents.${Math.floor(now())}.${hostname()}.${process.pid}`);
  appendFileSync(file, versionRecord(now()));
  if (step > 0) appendFileSync(file, restartRecord(now(), step));
  const appended = new AppendedFile({ path: file, piece: "record", say: note });
  const show = (line: Line) => {
    const scalars = namedNumbers(line);
    if (scalars.length > 0) appended.append(scalarsRecord(now(), line.step, scalars));
  };
  return { show, [Symbol.dispose]: () => appended[Symbol.dispose]() };
}
