// `npm run check`: runs types, lint, format, dead code and the structure tests in parallel. Prints one line each, and the output of a failed check.

import { fileURLToPath } from "node:url";

import { run } from "./servers/process.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const bin = `${root}node_modules/.bin`;

const structureTests = ["language", "structure", "topology", "architecture", "seeds"].map(
  (name) => `test/${name}.test.ts`,
);

const checkCommands = [
  { name: "types", command: "tsc", args: ["--noEmit", "--project", "tsconfig.json"] },
  { name: "types of the console", command: "tsc", args: ["--noEmit", "--project", "packages/console/tsconfig.json"] },
  { name: "lint", command: "oxlint", args: ["--type-aware"] },
  { name: "format", command: "oxfmt", args: ["--check"] },
  { name: "dead code", command: "knip", args: [] },
  // Files of pure checks on the sources: words, sizes, folders, imports, and documents that name files and tests.
  { name: "structure", command: "node", args: ["--conditions=@parley/source", "--test", ...structureTests] },
];

const outcomes = await Promise.all(
  checkCommands.map(async ({ name, command, args }) => {
    const begun = performance.now();
    const outcome = await run(`${bin}/${command}`, args, { cwd: root, env: { ...process.env, NO_COLOR: "1" } });
    const seconds = ((performance.now() - begun) / 1000).toFixed(1);
    console.log(`${outcome.code === 0 ? "ok    " : "FAILED"} ${name} (${command}, ${seconds} s)`);
    return { name, outcome };
  }),
);

for (const { name, outcome } of outcomes.filter(({ outcome }) => outcome.code !== 0)) {
  console.log(`\n${name}:\n${outcome.stdout}${outcome.stderr}`.trimEnd());
  process.exitCode = 1;
}
