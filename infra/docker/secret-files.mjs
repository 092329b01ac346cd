// The folders of secrets that docker-compose.yml mounts: `.secrets/<service>` has a file per variable. They are written from .env and the files
// next to it, which no container reads. Without dependencies, because it runs before anything is installed.

import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";

/** The group of the files when root writes them; otherwise it is the user's own. */
const groupOfContainers = 10001;

/** The group that may read the files; the containers are members of it. */
export const secretsGroup = process.getuid?.() === 0 ? groupOfContainers : (process.getgid?.() ?? groupOfContainers);

/** The secrets of each container by the name of their file, from the variables of .env. Empty values get no file. */
export function secretsOf(env) {
  const database = (role, password) => (password ? `postgres://${role}:${password}@postgres:5432/parley` : "");
  return {
    store: {
      PARLEY_NATS_SEED: env.NATS_STORE_SEED,
      DATABASE_URL: database("parley_store", env.POSTGRES_STORE_PASSWORD),
    },
    migrate: { DATABASE_URL: database("parley_owner", env.POSTGRES_OWNER_PASSWORD) },
    "agent-core": {
      PARLEY_NATS_SEED: env.NATS_AGENT_CORE_SEED,
      REDIS_URL: env.REDIS_PASSWORD ? `redis://agent-core:${env.REDIS_PASSWORD}@redis:6379` : "",
      ANTHROPIC_API_KEY: env.ANTHROPIC_API_KEY,
      OPENAI_API_KEY: env.OPENAI_API_KEY,
    },
    "channel-gateway": {
      PARLEY_NATS_SEED: env.NATS_CHANNEL_GATEWAY_SEED,
      PARLEY_TOKEN_SHA256: env.PARLEY_TOKEN_SHA256,
    },
    postgres: {
      POSTGRES_PASSWORD: env.POSTGRES_PASSWORD,
      POSTGRES_OWNER_PASSWORD: env.POSTGRES_OWNER_PASSWORD,
      POSTGRES_STORE_PASSWORD: env.POSTGRES_STORE_PASSWORD,
    },
    redis: { REDIS_PASSWORD: env.REDIS_PASSWORD },
    grafana: { GRAFANA_PASSWORD: env.GRAFANA_PASSWORD },
  };
}

/** Files with further variables, next to .env. */
export const furtherFiles = { store: ".env.bucket", "agent-core": ".env.agent", "channel-gateway": ".env.channels" };

/** The variables in a file; none when it does not exist. */
function variablesIn(path) {
  /** @type {Record<string, string>} */
  const variables = existsSync(path) ? parseEnv(readFileSync(path, "utf8")) : {};
  return variables;
}

/** Writes `.secrets` next to `.env` in a folder, and removes the files of secrets that are gone. A changed file is replaced atomically. */
export function writeSecretFiles(folder) {
  const top = join(folder, ".secrets");
  mkdirSync(top, { recursive: true, mode: 0o700 });
  for (const [service, own] of Object.entries(secretsOf(variablesIn(join(folder, ".env"))))) {
    const further = furtherFiles[service] === undefined ? {} : variablesIn(join(folder, furtherFiles[service]));
    // The service's own secrets take precedence, as the `environment` of a container does.
    const files = Object.entries({ ...further, ...own }).filter(([, value]) => value);
    const target = join(top, service);
    mkdirSync(target, { recursive: true });
    share(target, 0o750);
    for (const [name, value] of files) writeFile(target, name, value);
    const kept = new Set(files.map(([name]) => name));
    for (const name of readdirSync(target)) if (!kept.has(name)) rmSync(join(target, name), { recursive: true });
  }
}

function writeFile(folder, name, value) {
  const path = join(folder, name);
  if (!existsSync(path) || readFileSync(path, "utf8") !== value) {
    const temporary = `${path}.new`;
    writeFileSync(temporary, value, { mode: 0o600 });
    share(temporary, 0o640);
    renameSync(temporary, path);
  } else share(path, 0o640);
}

/** Only the owner and the group of the containers may read a path. */
function share(path, mode) {
  if (process.getuid?.() === 0) chownSync(path, 0, secretsGroup);
  chmodSync(path, mode);
}
