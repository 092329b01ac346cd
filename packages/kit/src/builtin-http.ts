// Node's HTTP module, loaded without its fetch client. An ES import of `node:http` reads each of its exports, and reading `WebSocket` loads
// undici: 12 MiB while it loads, and up to 3 MiB permanently. Types are imported from `node:http` as usual.

export const http = process.getBuiltinModule("node:http");
