// Writes .env from .env.example: every empty password and the token get random values. Nothing is overwritten.
//   node infra/docker/write-env.mjs

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = new URL("../../", import.meta.url);
const token = randomBytes(24).toString("base64url");
const known = { PARLEY_TOKEN: token, PARLEY_TOKEN_SHA256: createHash("sha256").update(token).digest("hex") };

const text = readFileSync(new URL(".env.example", root), "utf8").replace(/^([A-Z0-9_]+)=$/gm, (line, name) => {
  if (name in known) return `${name}=${known[name]}`;
  // Begins with a letter, for NATS; no character that means something in a URL.
  return name.endsWith("_PASSWORD") ? `${name}=p${randomBytes(20).toString("hex")}` : line;
});

const file = fileURLToPath(new URL(".env", root));
try {
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  console.error(`${file} is written; your token is PARLEY_TOKEN in it`);
} catch (error) {
  if (error.code !== "EEXIST") throw error;
  console.error(`${file} is there already and stays as it is`);
  process.exitCode = 1;
}
