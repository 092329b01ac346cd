// Paths of the MCP programs from npm that tests run.
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import type { Cleanup } from "@parley/testing";

const file = (url: string) => fileURLToPath(url);

export const everything = file(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
export const filesystem = file(import.meta.resolve("@modelcontextprotocol/server-filesystem/dist/index.js"));
export const memory = file(import.meta.resolve("@modelcontextprotocol/server-memory/dist/index.js"));
export const conformance = file(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
/** The path of a test server in ./servers. */
export const ownServer = (name: string) => file(new URL(`servers/${name}.ts`, import.meta.url).href);

/** Starts server-everything over HTTP; resolves with its URL. */
export async function startEverything(
  cleanup: Cleanup,
  mode: "streamableHttp" | "sse" = "streamableHttp",
): Promise<string> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const child = spawn(process.execPath, [everything, mode], {
    env: { PATH: process.env["PATH"] ?? "", PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  cleanup.add(async () => {
    child.kill("SIGKILL");
  });
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Buffer) =>
      /listening|running on port/.test(String(chunk)) ? resolve() : undefined,
    );
    child.once("exit", () => reject(new Error("it ended")));
  });
  return `http://127.0.0.1:${port}/${mode === "sse" ? "sse" : "mcp"}`;
}
