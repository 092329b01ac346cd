#!/usr/bin/env node
// The executable for Claude Agent SDKs: `parley sdk` as a single file, because an SDK starts a path without arguments of its own.

process.argv.splice(2, 0, "sdk");
await import("./parley.mjs");
