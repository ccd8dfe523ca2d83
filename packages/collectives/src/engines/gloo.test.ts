import { collectives } from "@terse/native-collectives";
import { afterAll, describe } from "vitest";
import { engineContract } from "../engine-contract.ts";
import { SocketWorlds } from "./socket-worlds.ts";

const worlds = new SocketWorlds();

describe.skipIf(!collectives().hasGloo)("gloo (skipped where the build found none)", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("gloo", (size) => worlds.open("gloo", size));
});
