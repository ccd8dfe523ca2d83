import { type Group, linkText } from "@terse/collectives";

/** The emulated link, which every time must name: this network itself is faster. */
export function emulatedLinkText({ size, emulatedLink }: Group): string | undefined {
  return size > 1 && emulatedLink ? linkText(emulatedLink) : undefined;
}
