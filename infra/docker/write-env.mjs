// Writes .env from .env.example with random passwords, token and key. It never overwrites an existing file.
//   node infra/docker/write-env.mjs

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
const token = randomBytes(24).toString("base64url");
const hash = createHash("sha256").update(token).digest("hex");

// A password begins with a letter, because NATS reads a leading digit as a number. It has no character that URLs reserve.
const text = readFileSync(new URL(".env.example", root), "utf8")
  .replace(/^PARLEY_TOKEN=$/m, `PARLEY_TOKEN=${token}`)
  .replace(/^PARLEY_TOKEN_SHA256=$/m, `PARLEY_TOKEN_SHA256=${hash}`)
  .replace(/^PARLEY_MCP_KEY=$/m, `PARLEY_MCP_KEY=${randomBytes(32).toString("base64url")}`)
  .replace(/_PASSWORD=$/gm, () => `_PASSWORD=p${randomBytes(20).toString("hex")}`);

const file = fileURLToPath(new URL(".env", root));
try {
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  console.error(`${file} written. Your token is its PARLEY_TOKEN.`);
} catch (error) {
  if (error.code !== "EEXIST") throw error;
  console.error(`${file} already exists and was not changed. Delete it first to create new passwords.`);
  process.exitCode = 1;
}
