#!/usr/bin/env node
// `parley` in a checkout: plain JavaScript, so that any installed Node can run it. The bootstrap installs missing dependencies, finds a Node
// that runs TypeScript directly, and starts src/main.ts.

import { fileURLToPath } from "node:url";

const bootstrap = new URL("../../../infra/local/bootstrap.mjs", import.meta.url);
const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

process.argv.splice(1, 1, fileURLToPath(bootstrap), main);
await import(bootstrap.href);
