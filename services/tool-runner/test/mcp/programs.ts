// The MCP programs from npm that tests run, as files for this Node.
import { fileURLToPath } from "node:url";

const file = (url: string) => fileURLToPath(url);

export const everything = file(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
export const filesystem = file(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"));
export const memory = file(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"));
export const conformance = file(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
