const said = new Set<string>();

/** Warns once a process, by Node's own way: on standard error, unless `--no-warnings` or somebody listens for "warning". */
export function warnOnce(message: string): void {
  if (said.has(message)) return;
  said.add(message);
  process.emitWarning(message, "TerseWarning");
}
