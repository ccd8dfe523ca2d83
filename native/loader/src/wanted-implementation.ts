/** The implementation that the environment variable TERSE_IMPLEMENTATION names; undefined where it names none. */
export const wantedImplementation = (): string | undefined => process.env["TERSE_IMPLEMENTATION"];
