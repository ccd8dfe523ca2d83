import { homedir } from "node:os";
import { expect, it, vi } from "vitest";
import { shortened } from "./commands/shortened.ts";
import { findBrowser } from "./dependencies/browser.ts";

vi.mock("node:os", async (actual) => ({ ...(await actual<typeof import("node:os")>()), homedir: vi.fn() }));

it("the doctor looks and prints without a home folder", () => {
  vi.stubEnv("TERSE_BROWSER", "");
  vi.mocked(homedir).mockReturnValue("/home/somebody");
  expect(shortened("/home/somebody/terse")).toBe("~/terse");
  vi.mocked(homedir).mockReturnValue(""); // HOME=
  expect(shortened("/usr/bin/c++")).toBe("/usr/bin/c++");
  vi.mocked(homedir).mockImplementation(() => {
    throw new Error("uv_os_homedir returned ENOENT");
  });
  expect(shortened("/usr/bin/c++")).toBe("/usr/bin/c++");
  expect(() => findBrowser()).not.toThrow();
  vi.unstubAllEnvs();
});
