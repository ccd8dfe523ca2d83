/** Compares texts by code points, as Python does. By code units an emoji would come before "ﬀ". */
export function byCodePoint(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    if (a[i] === b[i]) continue;
    return a.codePointAt(i)! - b.codePointAt(i)!;
  }
  return a.length - b.length;
}
