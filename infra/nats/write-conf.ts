// Writes nats.conf in this folder, the rights of agent-core in infra/redis, and the hashes of the servers' configuration files in
// docker-compose.yml. Argument: the namespace, if it differs from the default of PARLEY_NAMESPACE. With `--passwords`, nats.conf also admits
// the users with passwords of older versions; do not commit that.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { redisRules } from "@parley/contracts";

import { withHashes } from "../docker/hashes.ts";
import { natsConf } from "./conf.ts";

const root = new URL("../../", import.meta.url);
const { values, positionals } = parseArgs({ options: { passwords: { type: "boolean" } }, allowPositionals: true });
const [namespace = "parley"] = positionals;
writeFileSync(
  fileURLToPath(new URL("nats.conf", import.meta.url)),
  natsConf(namespace, { passwords: values.passwords === true }),
);
writeFileSync(new URL("infra/redis/agent-core.acl", root), `${redisRules(namespace).join(" ")}\n`);

const compose = new URL("docker-compose.yml", root);
writeFileSync(
  compose,
  withHashes(readFileSync(compose, "utf8"), (path) => readFileSync(new URL(path, root))),
);
