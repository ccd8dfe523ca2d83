/** What the server sends (viewer.ts says what), and whether it does. */
import { RunData } from "./run-data.ts";

export interface Stream {
  readonly runs: RunData[];
}

/** `changed` is called after each change of the runs, `said` with what the reader should know of the connection. */
export async function follow(changed: () => void, said: (text: string) => void): Promise<Stream> {
  const runs: RunData[] = [];
  const known: string[] = []; // what the server has said of each run
  const refusal = await enter();
  if (refusal !== undefined) {
    said(refusal);
    return { runs };
  }
  const source = new EventSource("events");
  const on = (name: string, hear: (data: string) => void) =>
    source.addEventListener(name, ({ data }) => {
      hear(data as string);
      changed();
    });
  on("run", (data) => {
    const { run, of: _, ...about } = JSON.parse(data);
    // After a broken connection another page may listen at the same address: that of other runs, or of another recipe.
    if (known[run] !== undefined && known[run] !== data) location.reload();
    known[run] = data;
    runs[run] ??= new RunData(about);
  });
  on("lines", (data) => {
    const [run, ...lines] = data.split("\n");
    for (const line of lines) runs[Number(run)]!.add(line);
  });
  on("anew", (data) => runs[Number(data)]!.forget());
  on("state", (data) => {
    const { run, ...state } = JSON.parse(data);
    runs[run]!.state = { ...state, heard: performance.now() };
  });
  source.addEventListener("open", () => said(""));
  source.addEventListener("error", async () => {
    const allOver = runs.length > 0 && runs.every(({ state }) => state?.running === false);
    if (allOver) source.close();
    if (allOver)
      said("The run is over, and so is its page: this is the last that was seen. ./terse page RUN shows it again.");
    else if (source.readyState === EventSource.CLOSED)
      said((await enter()) ?? "The server has ended this page: load it again.");
    else said("No connection: this is the last that was seen. Trying again …");
    changed();
  });
  return { runs };
}

/**
 * Hands in the token of the address's fragment, and removes it from the address. Resolves to the reason where access is
 * refused.
 */
async function enter(): Promise<string | undefined> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token !== undefined) history.replaceState(null, "", location.pathname);
  try {
    const response = await fetch("enter", { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
    return response.ok ? undefined : await response.text();
  } catch {
    return "No connection to the page's server.";
  }
}
