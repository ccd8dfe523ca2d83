import { StepFailed } from "../remedy.ts";

export interface Platform {
  os: string;
  cpu: string;
  libc: string;
}

/** The platform of this process, in the words of package.json's os, cpu and libc. */
export function thisPlatform(): Platform {
  Object.assign(process.report, { excludeNetwork: true }); // otherwise the report queries DNS
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return { os: process.platform, cpu: process.arch, libc: header.glibcVersionRuntime ? "glibc" : "musl" };
}

/** Throws `StepFailed` where there is no libtorch for the C library, as on Alpine. */
export function requireGlibc({ libc } = thisPlatform()): void {
  if (libc === "glibc") return;
  throw new StepFailed(
    `PyTorch's libtorch needs glibc, and this system has ${libc}, as Alpine has: use Debian, Ubuntu or another system with glibc, or a container (see Containerfile).`,
  );
}

/**
 * The packages of a pnpm lockfile that are for this platform and no other: "@rolldown/binding-linux-x64-gnu@1.2.19".
 * They are optional dependencies, which pnpm skips silently when it cannot install them.
 */
export function platformPackages(lockfile: string, platform: Platform): string[] {
  const section = /^packages:\n([\s\S]*?)(?=^\S|$(?![\s\S]))/m.exec(lockfile)?.[1] ?? "";
  const found: string[] = [];
  for (const [, name, fields] of section.matchAll(/^ {2}'?([^\s':][^':]*)'?:\n((?: {4}.*\n|\n)*)/gm)) {
    const allows = (field: keyof Platform) => {
      const list = new RegExp(`^ {4}${field}: \\[([^\\]]*)\\]$`, "m").exec(fields!)?.[1];
      return list === undefined || list.split(",").some((item) => item.trim() === platform[field]);
    };
    const isForOne = /^ {4}(os|cpu): \[/m.test(fields!);
    if (isForOne && allows("os") && allows("cpu") && allows("libc")) found.push(name!);
  }
  return found;
}
