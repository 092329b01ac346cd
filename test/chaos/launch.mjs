// Starts a replica from the source tree that its file names, so that a restart may change its version: `PARLEY_CHAOS_TREES` is a folder
// with one file for each replica, which contains the path of the tree.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { PARLEY_CHAOS_TREES: folder = "", PARLEY_REPLICA: replica = "" } = process.env;
const tree = readFileSync(join(folder, replica), "utf8");
const service = replica.replace(/-\d+$/, "");
await import(pathToFileURL(join(tree, "services", service, "src/main.ts")).href);
