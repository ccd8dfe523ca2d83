import { defineConfig } from "tsup";
import { library } from "../../tsup.config.base.ts";

// yaml is CommonJS, which esbuild cannot put into an ES module for Node. What needs it is in a file of its own, which
// bundlers leave out where nobody parses YAML; options-error.ts is what it shares with the rest.
export default defineConfig({
  ...library,
  entry: ["src/index.ts", "src/options-error.ts", "src/yaml.ts"],
  splitting: true,
});
