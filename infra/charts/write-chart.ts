// Writes charts/parley from the kustomize files; values.yaml and values.schema.json are written by hand.

import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { chartFiles } from "./chart.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const { version } = JSON.parse(read("package.json")) as { version: string };
const chart = join(root, "charts/parley");
rmSync(join(chart, "templates"), { recursive: true, force: true });
for (const [path, text] of chartFiles(read, version)) {
  mkdirSync(dirname(join(chart, path)), { recursive: true });
  writeFileSync(join(chart, path), text);
}
