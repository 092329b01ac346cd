// Writes .env from .env.example with random passwords, keys and a token, and the files of secrets that the containers mount. An existing .env
// keeps its lines and gets those that it lacks, so that it can be run again after an upgrade, and after a change of .env.
//   node infra/docker/write-env.mjs [file]

import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";

import { createUserKey } from "../nats/nkeys.mjs";
import { secretsGroup, writeSecretFiles } from "./secret-files.mjs";

const root = new URL("../../", import.meta.url);
const file = process.argv[2] ?? fileURLToPath(new URL(".env", root));

/** The variables that have a value or are named in a text, by name. */
function variablesIn(text) {
  return new Map([...text.matchAll(/^([A-Z0-9_]+)=(.*)$/gm)].map(([, name, value]) => [name, value]));
}

/** @param {string} token */
function hashOf(token) {
  /** @type {string} */
  const hex = createHash("sha256").update(token).digest("hex");
  return hex;
}

/** New values of secrets that are set together: a seed with its public key, a token with its hash. `present`: the values that exist. */
function newValues(names, present) {
  const values = new Map();
  const token = present.PARLEY_TOKEN || randomBytes(24).toString("base64url");
  // Without the token that belongs to a hash, the hash may stay alone.
  if (!present.PARLEY_TOKEN_SHA256) values.set("PARLEY_TOKEN", token);
  values.set("PARLEY_TOKEN_SHA256", hashOf(token));
  values.set("PARLEY_SECRETS_GID", String(secretsGroup));
  values.set("PARLEY_MCP_KEY", randomBytes(32).toString("base64url"));
  for (const name of names) {
    // No character that a URL reserves.
    if (name.endsWith("_PASSWORD")) values.set(name, `p${randomBytes(20).toString("hex")}`);
    if (!name.endsWith("_SEED")) continue;
    const { seed, publicKey } = createUserKey();
    values.set(name, seed);
    values.set(name.replace(/_SEED$/, "_PUBLIC_KEY"), publicKey);
  }
  return values;
}

/** Exits when the gateway would refuse the token and still accept the one that the hash belongs to. */
function requireMatchingHash({ PARLEY_TOKEN: token, PARLEY_TOKEN_SHA256: hashes = "" }) {
  if (!token || hashes.toLowerCase().includes(hashOf(token))) return;
  console.error(
    `${file}: PARLEY_TOKEN_SHA256 does not belong to PARLEY_TOKEN, so the gateway would refuse this token and accept an earlier one. Write PARLEY_TOKEN_SHA256=${hashOf(token)}, or leave PARLEY_TOKEN empty.`,
  );
  process.exit(1);
}

/** @type {Record<string, string>} */
const current = existsSync(file) ? parseEnv(readFileSync(file, "utf8")) : {};
const example = readFileSync(new URL(".env.example", root), "utf8");
const fresh = newValues(variablesIn(example).keys(), current);
if (!existsSync(file)) {
  const text = example.replace(/^([A-Z0-9_]+)=$/gm, (line, name) => `${line}${fresh.get(name) ?? ""}`);
  writeFileSync(file, text, { mode: 0o600, flag: "wx" });
  console.error(`${file} written. Your token is its PARLEY_TOKEN.`);
} else {
  const text = readFileSync(file, "utf8");
  const present = variablesIn(text);
  const missing = [...fresh.keys()].filter((name) => !present.has(name));
  if (missing.length === 0) {
    console.error(`${file} is complete and was not changed. Delete it first to create new passwords.`);
  } else {
    const lines = missing.map((name) => `${name}=${fresh.get(name)}`);
    writeFileSync(file, `${text.replace(/\n*$/, "\n")}${lines.join("\n")}\n`, { mode: 0o600 });
    console.error(`${file}: added ${missing.join(", ")}. The other lines were not changed.`);
  }
}
requireMatchingHash(parseEnv(readFileSync(file, "utf8")));
writeSecretFiles(dirname(file));
