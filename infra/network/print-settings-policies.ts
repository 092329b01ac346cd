// npm run policies -- [--web] parley.toml: prints the network policies for the servers that the file names; --web for an overlay with that component.
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { parseSettings } from "@parley/chassis";
import { openings, settingsPolicies } from "./settings-policies.ts";

const { values, positionals } = parseArgs({ options: { web: { type: "boolean" } }, allowPositionals: true });
const [path] = positionals;
if (path === undefined) {
  process.stderr.write("name a file: npm run policies -- parley.toml\n");
  process.exit(2);
}
const { text, unknown } = settingsPolicies(
  openings(parseSettings(readFileSync(path, "utf8"), path)),
  values.web === true,
);
process.stdout.write(text);
for (const { setting, from, host, port } of unknown)
  process.stderr.write(`${setting}: write a policy from ${from} to the address of ${host}, port ${port}\n`);
