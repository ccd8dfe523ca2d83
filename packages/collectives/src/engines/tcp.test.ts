import { afterAll, describe } from "vitest";
import { engineContract } from "../engine-contract.ts";
import { SocketWorlds } from "./socket-worlds.ts";

const worlds = new SocketWorlds();

describe("tcp", () => {
  afterAll(() => worlds[Symbol.asyncDispose]());
  engineContract("tcp", (size) => worlds.open("tcp", size));
});
