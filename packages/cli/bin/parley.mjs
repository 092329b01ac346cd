#!/usr/bin/env node
// `parley` in a checkout: plain JavaScript for whatever Node is there. The bootstrap installs what is missing, finds a Node that runs
// TypeScript as it is, and hands over to src/main.ts.

import { fileURLToPath } from "node:url";

const bootstrap = new URL("../../../infra/local/bootstrap.mjs", import.meta.url);
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

process.argv.splice(1, 1, fileURLToPath(bootstrap), main);
await import(bootstrap.href);
