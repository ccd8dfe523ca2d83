import { defineConfig } from "tsup";
import { library } from "../../tsup.config.base.ts";

export default defineConfig({ ...library, entry: ["src/index.ts", "src/browser.ts"] });
