// Node's HTTP module, loaded without its fetch client. An ES import of `node:http` reads each of its exports, and reading `WebSocket` loads
// undici, which takes 12 MiB in every process. Types are imported from `node:http` as usual.

export const http = process.getBuiltinModule("node:http");
