/**
 * A program or thread in a file of its own, for the module at `url`: in the sources it is beside that module, in the
 * published package beside the bundle.
 */
export const programBeside = (url: string, name: string): URL =>
  new URL(`./${name}.${url.endsWith(".ts") ? "ts" : "js"}`, url);
