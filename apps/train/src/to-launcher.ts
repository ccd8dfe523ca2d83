/** The words of the command that goes on from the last save. */
export interface ResumeOffer {
  readonly run: string; // folder, as a word of a shell
  readonly start: readonly string[]; // flags that start the same ranks
  readonly flags: readonly string[];
}

/** What a rank tells the launcher that started it, if it was ours. */
export interface ToLauncher {
  /** It ends because of this error. */
  readonly failed?: { readonly name: string; readonly message: string };
  /** Rank 0 has opened the folder of its run. */
  readonly run?: string;
  /** The address of the page with its token, which the log of a rank must not have. */
  readonly page?: string;
  /** Rank 0 has saved the run, in this process. */
  readonly saved?: true;
  readonly resume?: ResumeOffer;
}

/** Whether our launcher listens. */
export const hasLauncher = () => process.send !== undefined && process.connected;

/** Returns whether it listens. */
export function tellLauncher(message: ToLauncher): boolean {
  if (hasLauncher()) process.send!(message);
  return hasLauncher();
}
