import { paint } from "../steps.ts";
import { toolchain } from "../toolchain.ts";
import { examine, type Finding, type State, setUp } from "./findings.ts";
import { shortened } from "./shortened.ts";

/**
 * Prints what is installed, what is missing and the command that installs it; changes nothing. Exit code 1 if the user
 * must act.
 */
export async function doctor(asJson: boolean): Promise<void> {
  const findings = await examine();
  const ready = findings.every((finding) => finding.state !== "missing");
  if (asJson) process.stdout.write(`${JSON.stringify({ ready, toolchain, findings }, null, 2)}\n`);
  else process.stdout.write(report(findings));
  if (!ready) process.exitCode = 1;
}

const marks = { ok: ["green", "✓"], later: ["yellow", "○"], without: ["dim", "–"], missing: ["red", "✗"] } as const;

/** One line for each finding, with the command that installs it below; then a summary. */
export function report(findings: readonly Finding[]): string {
  const out = process.stdout;
  const width = Math.max(...findings.map((finding) => finding.name.length)) + 2;
  const lines = findings.flatMap(({ name, state, version, path, note, remedy }) => {
    const [colour, mark] = marks[state];
    const installs = remedy === setUp ? `${setUp} installs it` : undefined;
    const absent = state === "missing" && version === undefined ? "missing" : undefined;
    const words = [
      absent,
      version,
      path && shortened(path),
      ...[note, installs].map((text) => text && paint(out, "dim", text)),
    ];
    const line = `  ${paint(out, colour, mark)} ${name.padEnd(width)}${words.filter(Boolean).join("  ")}`;
    return remedy && !installs ? [line, `    ${" ".repeat(width)}${paint(out, "dim", "→")} ${remedy}`] : [line];
  });
  return `${lines.join("\n")}\n\n${verdict(findings)}\n`;
}

function verdict(findings: readonly Finding[]): string {
  const named = (state: State) => findings.filter((finding) => finding.state === state).map((finding) => finding.name);
  const [missing, later] = [named("missing"), named("later")];
  if (missing.length > 0) return `Missing: ${missing.join(", ")}. The lines with → say how to install them.`;
  if (later.length > 0) return `${setUp} installs what is missing: ${later.join(", ")}.`;
  return "Everything is installed.";
}
