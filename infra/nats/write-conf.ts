// Writes nats.conf in this folder, the rights of agent-core in infra/redis, and the hashes of the servers' configuration files in docker-compose.yml. Argument: the namespace, if
// it differs from the default of PARLEY_NAMESPACE.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { redisRules } from "@parley/contracts";

import { withHashes } from "../docker/hashes.ts";
import { natsConf } from "./conf.ts";

const root = new URL("../../", import.meta.url);
const [namespace = "parley"] = process.argv.slice(2);
writeFileSync(fileURLToPath(new URL("nats.conf", import.meta.url)), natsConf(namespace));
writeFileSync(new URL("infra/redis/agent-core.acl", root), `${redisRules(namespace).join(" ")}\n`);

const compose = new URL("docker-compose.yml", root);
writeFileSync(
  compose,
  withHashes(readFileSync(compose, "utf8"), (path) => readFileSync(new URL(path, root))),
);
