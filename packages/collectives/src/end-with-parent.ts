import { collectives } from "@terse/native-collectives";

/** For a rank: from now on it ends, by SIGKILL, when the launcher that started it has ended, however that was. */
export function endWithParent(): void {
  collectives().endWithParent();
}
