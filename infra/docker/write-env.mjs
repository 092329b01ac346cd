// Writes .env from .env.example: every empty password, the token and the key get random values. Nothing is overwritten.
//   node infra/docker/write-env.mjs

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
const token = randomBytes(24).toString("base64url");
const hash = createHash("sha256").update(token).digest("hex");

// A password begins with a letter, for NATS, and has no character that means something in a URL.
const text = readFileSync(new URL(".env.example", root), "utf8")
  .replace(/^PARLEY_TOKEN=$/m, `PARLEY_TOKEN=${token}`)
  .replace(/^PARLEY_TOKEN_SHA256=$/m, `PARLEY_TOKEN_SHA256=${hash}`)
  .replace(/^PARLEY_MCP_KEY=$/m, `PARLEY_MCP_KEY=${randomBytes(32).toString("base64url")}`)
  .replace(/_PASSWORD=$/gm, () => `_PASSWORD=p${randomBytes(20).toString("hex")}`);

const file = fileURLToPath(new URL(".env", root));
try {
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  console.error(`${file} is written; your token is PARLEY_TOKEN in it`);
} catch (error) {
  if (error.code !== "EEXIST") throw error;
  console.error(`${file} is there already and stays as it is`);
  process.exitCode = 1;
}
