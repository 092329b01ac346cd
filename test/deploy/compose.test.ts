// The compose file, the Dockerfile and .env.example match each other, the code and the manifests. No engine is needed.

import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseEnv } from "node:util";

import { parseSettings, withSecretsFolder } from "@parley/chassis";
import { redisRules, roles, services } from "@parley/contracts";
import { Cleanup, temporaryFolder } from "@parley/testing";
import { parse } from "yaml";
import { z } from "zod";

import { withHashes } from "../../infra/docker/hashes.ts";
import { furtherFiles, secretsOf } from "../../infra/docker/secret-files.mjs";
import { publicKeyVariable, seedVariable } from "../../infra/nats/conf.ts";
import { listenHealth } from "../../packages/chassis/src/health.ts";
import { createMetrics } from "../../packages/chassis/src/metrics.ts";
import { healthPaths, isService, read, root, secretVariables, variablesOf, version } from "./support/repository.ts";

const Compose = z.looseObject({
  services: z.record(
    z.string(),
    z.looseObject({
      image: z.string(),
      build: z.looseObject({ target: z.string() }).optional(),
      environment: z.record(z.string(), z.string()).default({}),
      env_file: z.array(z.object({ path: z.string(), required: z.literal(false) })).default([]),
      group_add: z.array(z.string()).default([]),
      volumes: z
        .array(
          z.union([
            z.string(),
            z.strictObject({
              type: z.literal("bind"),
              source: z.string(),
              target: z.string(),
              read_only: z.literal(true),
              bind: z.strictObject({ create_host_path: z.literal(false) }),
            }),
          ]),
        )
        .default([]),
      networks: z.array(z.string()),
      configs: z.array(z.looseObject({ source: z.string() })).default([]),
      labels: z.record(z.string(), z.string()).default({}),
      ports: z.array(z.string()).default([]),
      read_only: z.boolean().optional(),
      user: z.string().optional(),
      restart: z.string().optional(),
      mem_limit: z.string().optional(),
      cpus: z.number().optional(),
      pids_limit: z.number().optional(),
      security_opt: z.array(z.string()).default([]),
      logging: z.looseObject({ driver: z.string(), options: z.record(z.string(), z.string()) }).optional(),
      cap_drop: z.array(z.string()).optional(),
      stop_grace_period: z.string().optional(),
      deploy: z.looseObject({ replicas: z.number() }).optional(),
    }),
  ),
  networks: z.record(z.string(), z.looseObject({ internal: z.boolean().optional() }).nullable()),
  configs: z.record(z.string(), z.looseObject({ file: z.string() })),
});

const text = read("docker-compose.yml");
const compose = Compose.parse(parse(text, { merge: true }));
const all = Object.entries(compose.services);
const dockerfile = read("Dockerfile");
const built = all.filter(([, { build }]) => build !== undefined);

test("builds one target for each service and the migration, with the images of the manifests", () => {
  assert.deepEqual(built.map(([name]) => name).sort(), [...services, "migrate"].sort());
  for (const [name, { image, build }] of built) {
    assert.equal(image, `parley/${name}:${version}`);
    assert.equal(build?.target, name);
    assert.match(dockerfile, new RegExp(`^FROM \\S+ AS ${name}$`, "m"));
  }
  for (const [, { image }] of all) assert.match(image, /:[^:]+$/, "an image without a tag");
});

test("runs two replicas of each service and publishes the gateway port on loopback only", () => {
  for (const service of services) assert.equal(compose.services[service]?.deploy?.replicas, 2);
  const published = all.flatMap(([name, { ports }]) => ports.map((port) => `${name} ${port}`));
  assert.deepEqual(published, ["front 127.0.0.1:${PARLEY_HTTP_PORT:-8787}:8787"]);
});

test("sets only variables that the service's code reads", () => {
  for (const [name, { environment }] of built) {
    const known = isService(name) ? variablesOf(name) : ["PARLEY_SECRETS_DIR"];
    for (const variable of Object.keys(environment)) {
      // A key of a model may be a file: packages/chassis/src/secret-files.ts.
      const read = [variable, variable.replace(/_API_KEY_FILE$/, "_API_KEY")];
      assert.ok(
        read.some((each) => known.includes(each)),
        `${name}: ${variable}`,
      );
    }
  }
});

test("checks the health endpoint and sets only variables that the code reads in the Dockerfile", () => {
  const asked = [...dockerfile.matchAll(/'GET (\/[a-z]+) HTTP/g)].map((match) => match[1] ?? "");
  assert.equal(asked.length, 1);
  for (const path of asked) assert.ok(healthPaths.includes(path));
  const known = new Set(services.flatMap(variablesOf));
  for (const [, variable = ""] of dockerfile.matchAll(/\b(PARLEY_[A-Z_]+)=/g)) assert.ok(known.has(variable), variable);
  assert.match(read("infra/docker/haproxy.cfg"), /httpchk GET \/readyz/);
});

test("removes the package managers of the base image, before the user changes", () => {
  const runtime = dockerfile.slice(dockerfile.indexOf(" AS runtime"), dockerfile.indexOf(" AS store"));
  const removed = /rm -rf ([^&]*?)\n\w/.exec(runtime)?.[1]?.split(/[\s\\]+/) ?? [];
  for (const path of ["lib/node_modules", "bin/npm", "bin/npx", "bin/corepack", "bin/yarn"])
    assert.ok(removed.includes(`/usr/local/${path}`), path);
  assert.ok(runtime.indexOf("rm -rf") < runtime.indexOf("USER 10001"));
});

test("hides the secrets in environments from commands that run as the same user", () => {
  // A process is hidden when its program file is unreadable; services/tool-runner/test/hide-process.test.ts tries both.
  assert.match(dockerfile, /install --mode=0711 \/bin\/bash \/usr\/local\/bin\/health-shell/);
  assert.deepEqual(
    [...dockerfile.matchAll(/^HEALTHCHECK --.*\n +CMD \["([^"]+)"/gm)].map(([, name]) => name),
    ["health-shell"],
  );
  const runner = dockerfile.slice(dockerfile.indexOf(" AS tool-runner"));
  assert.match(runner, /chmod 0711 \/usr\/bin\/tini/);
  assert.match(runner, /^ENTRYPOINT \["\/usr\/bin\/tini", "--"\]$/m);
  assert.match(runner, /^CMD \["node", "--max-semi-space-size=4", "--disable-sigusr1", "bundle\/main\.js"\]$/m);
});

describe("health check of the images", () => {
  const [program = "", ...args] = z
    .array(z.string())
    .parse(JSON.parse(/^HEALTHCHECK [^\n]*\\\n +CMD (\[.*\])$/m.exec(dockerfile)?.[1] ?? ""));
  /** The exit code of the check: 0 = healthy. */
  const asks = (port: number) =>
    new Promise<number | null>((resolve, reject) => {
      const env = { PATH: process.env["PATH"] ?? "", PARLEY_HEALTH_PORT: String(port) };
      // The image's health-shell is a copy of bash.
      spawn(program.replace("health-shell", "bash"), args, { env, stdio: "ignore" })
        .once("error", reject)
        .once("exit", resolve);
    });
  const listener = (unready: () => string | null) =>
    listenHealth({
      host: "127.0.0.1",
      port: 0,
      metrics: createMetrics("store").registry,
      startup: () => null,
      unready,
    });

  test("is healthy only when the service is ready", async () => {
    let problem: string | null = null;
    const health = await listener(() => problem);
    try {
      assert.equal(await asks(health.port), 0);
      problem = "draining";
      assert.equal(await asks(health.port), 1);
    } finally {
      await health.close();
    }
  });

  test("is unhealthy when nothing listens on the port", async () => {
    const health = await listener(() => null);
    await health.close();
    assert.equal(await asks(health.port), 1);
  });
});

test("gives a container more time to stop than its service takes to drain", () => {
  for (const service of services) {
    const { environment, stop_grace_period: grace = "10s" } = compose.services[service] ?? {};
    const drainMs = Number(environment?.["PARLEY_DRAIN_MS"]);
    assert.ok(drainMs > 0 && Number.parseInt(grace, 10) * 1000 > drainMs, service);
  }
});

test("runs every container without capabilities, on a read-only system, as a user other than root", () => {
  // The images of these run as a user of their own.
  const ownUser = new Set([...built.map(([name]) => name), "front"]);
  for (const [name, service] of all) {
    assert.equal(service.read_only, true, name);
    assert.deepEqual(service.cap_drop, ["ALL"], name);
    assert.deepEqual(service.security_opt, ["no-new-privileges:true"], name);
    if (!ownUser.has(name)) assert.match(service.user ?? "", /^[1-9]\d*:[1-9]\d*$/, name);
  }
  const users = [...dockerfile.matchAll(/^USER (\S+)$/gm)].map((match) => match[1]);
  assert.equal(users.at(-1), "10001:10001");
});

test("limits the memory, processors, processes and log of every container", () => {
  const kept = new Set<number>();
  for (const [name, service] of all) {
    assert.match(service.mem_limit ?? "", /^\d+[mg]$/, name);
    assert.ok(Number(service.cpus) > 0, name);
    assert.ok((service.pids_limit ?? 0) > 0, name);
    assert.equal(service.logging?.driver, "json-file", name);
    const { "max-size": size = "", "max-file": files } = service.logging.options;
    assert.match(size, /^\d+m$/, name);
    kept.add(Number.parseInt(size) * Number(files));
  }
  assert.deepEqual([...kept], [Number(/Each container keeps (\d+) MB of log/.exec(read("docs/deploy.md"))?.[1])]);
});

test("keeps a queue in a Redis that is full or restarts", () => {
  const lines = read("infra/redis/redis.conf").split("\n");
  assert.deepEqual(
    ["appendonly yes", "maxmemory-policy noeviction"].filter((line) => !lines.includes(line)),
    [],
  );
});

describe("secrets", () => {
  const example = read(".env.example");
  const named = [...example.matchAll(/^([A-Z0-9_]+)=(.*)$/gm)].map((match) => ({
    name: match[1] ?? "",
    value: match[2] ?? "",
  }));
  /** The variables of .env that are in the environment of a container. */
  const given = (name: string) =>
    Object.values(compose.services[name]?.environment ?? {}).flatMap((value) =>
      [...value.matchAll(/\$\{([A-Z0-9_]+)/g)].map((match) => match[1] ?? ""),
    );
  /** The folder of secrets of a container: where it comes from, and where it is mounted. */
  const mountsOf = (name: string) =>
    (compose.services[name]?.volumes ?? []).flatMap((volume) =>
      typeof volume === "string" ? [] : [[volume.source, volume.target]],
    );
  const complete = Object.fromEntries(named.map(({ name }) => [name, `the ${name}`]));
  const files = secretsOf(complete);

  test("names every variable and contains no value in .env.example", () => {
    for (const { name, value } of named) assert.equal(value, "", name);
    const used = [
      ...`${text}${read("infra/docker/web.yml")}${read("infra/docker/observability.yml")}`.matchAll(
        /\$\{([A-Z0-9_]+)/g,
      ),
    ].map((match) => match[1] ?? "");
    const inFiles = named.filter(({ name }) => new RegExp(`the ${name}\\b`).test(JSON.stringify(files)));
    // The token and the login of the operator are for people: no container receives them.
    assert.deepEqual(
      [...new Set([...used, ...inFiles.map(({ name }) => name), "PARLEY_TOKEN", seedVariable("operator")])].sort(),
      named.map(({ name }) => name).sort(),
    );
    assert.ok(read(".gitignore").split("\n").includes(".env"));
    assert.ok(read(".dockerignore").split("\n").includes("**/.env"));
  });

  test("mounts the secrets as files, but for the tool-runner", () => {
    for (const [name, { environment, group_add, env_file }] of all) {
      if (name === "tool-runner") {
        // Commands run as its user and could read files.
        assert.deepEqual([mountsOf(name), env_file.map(({ path }) => path)], [[], [".env.tools"]]);
        continue;
      }
      for (const [variable, value] of Object.entries(environment))
        if (/_FILE$|_DIR$/.test(variable)) assert.match(value, /^\/run\/secrets\/parley(?:\/|$)|^\/blobs$/, variable);
        else
          assert.doesNotMatch(variable, /(?:_PASSWORD|(?<!_PUBLIC)_KEY|_SEED|_SHA256|DATABASE_URL|REDIS_URL)$/, name);
      assert.deepEqual(env_file, [], name);
      const mounted = files[name] === undefined ? [] : [[`./.secrets/${name}`, "/run/secrets/parley"]];
      assert.deepEqual(mountsOf(name), mounted, name);
      assert.equal(group_add.length, mounted.length, name);
      for (const group of group_add) assert.match(group, /^\$\{PARLEY_SECRETS_GID:\?/);
    }
    for (const path of [".secrets/", ...Object.values(furtherFiles), ".env.tools"])
      assert.ok(read(".gitignore").split("\n").includes(path), path);
    assert.ok(!read(".dockerignore").includes(".secrets"), "only what it names goes to the engine");
  });

  test("gives each service its own secrets and no others", () => {
    for (const [name, { environment }] of built) {
      for (const variable of [...Object.keys(environment), ...Object.keys(files[name] ?? {})]) {
        const owners = secretVariables[variable];
        if (owners !== undefined) assert.ok(owners.includes(name), `${name} must not get ${variable}`);
      }
      const nats = isService(name) ? [seedVariable(name)] : [];
      const server =
        { store: ["POSTGRES_STORE_PASSWORD"], migrate: ["POSTGRES_OWNER_PASSWORD"], "agent-core": ["REDIS_PASSWORD"] }[
          name
        ] ?? [];
      const contents = Object.values(files[name] ?? {}).join(" ");
      const inFiles = [...contents.matchAll(/the (\w+_(?:PASSWORD|SEED))\b/g)].map(([, variable = ""]) => variable);
      const passwords = [...given(name).filter((variable) => /_(?:PASSWORD|SEED)$/.test(variable)), ...inFiles];
      assert.deepEqual(passwords.toSorted(), [...nats, ...server].toSorted(), name);
    }
    assert.deepEqual(given("nats"), roles.map(publicKeyVariable), "the server of the bus knows no secret");
  });

  test("writes .env once, and later adds only what it lacks", async () => {
    await using cleanup = new Cleanup();
    const file = join(await temporaryFolder(cleanup), ".env");
    const write = () => {
      execFileSync(process.execPath, [join(root, "infra/docker/write-env.mjs"), file], { stdio: "ignore" });
      return readFileSync(file, "utf8");
    };
    const first = write();
    assert.doesNotMatch(first, /^\w+_(?:PASSWORD|SEED|PUBLIC_KEY)=$/m);
    assert.equal(statSync(file).mode & 0o077, 0);
    assert.equal(write(), first);
    // As of a version whose services logged in with passwords.
    const older = first.replace(/^NATS_STORE_.*\n/gm, "").replace(/^PARLEY_LOG_LEVEL=.*/m, "PARLEY_LOG_LEVEL=debug");
    writeFileSync(file, older);
    const again = write();
    assert.ok(again.startsWith(older));
    assert.match(again, /^NATS_STORE_SEED=SU\w{56}\nNATS_STORE_PUBLIC_KEY=U\w{55}$/m);
  });

  test("keeps the token and its hash together", async () => {
    await using cleanup = new Cleanup();
    const file = join(await temporaryFolder(cleanup), ".env");
    const hashOf = (token: string) => createHash("sha256").update(token).digest("hex");
    const write = () => {
      const { status, stderr } = spawnSync(process.execPath, [join(root, "infra/docker/write-env.mjs"), file]);
      return { status, said: String(stderr), env: parseEnv(readFileSync(file, "utf8")) };
    };
    const first = write().env;
    // A changed token with the hash of the earlier one: the gateway would accept the earlier one only.
    const changed = readFileSync(file, "utf8").replace(/^PARLEY_TOKEN=.*$/m, "PARLEY_TOKEN=another-token");
    writeFileSync(file, changed);
    const refused = write();
    assert.equal(refused.status, 1);
    assert.match(refused.said, new RegExp(`PARLEY_TOKEN_SHA256=${hashOf("another-token")}`));
    writeFileSync(file, changed.replace(/^PARLEY_TOKEN_SHA256=.*\n/m, ""));
    assert.equal(write().env["PARLEY_TOKEN_SHA256"], hashOf("another-token"));
    writeFileSync(file, changed.replace(/^PARLEY_TOKEN=.*\n/m, ""));
    const kept = write();
    assert.deepEqual(
      [kept.status, kept.env["PARLEY_TOKEN"], kept.env["PARLEY_TOKEN_SHA256"]],
      [0, undefined, first["PARLEY_TOKEN_SHA256"]],
    );
  });

  test("writes the files that the services read, for their owner and one group only", async () => {
    await using cleanup = new Cleanup();
    const folder = await temporaryFolder(cleanup);
    const write = () =>
      execFileSync(process.execPath, [join(root, "infra/docker/write-env.mjs"), join(folder, ".env")], {
        stdio: "ignore",
      });
    const inService = (name: string) => withSecretsFolder({ PARLEY_SECRETS_DIR: join(folder, ".secrets", name) });
    writeFileSync(join(folder, ".env.agent"), 'PARLEY_AGENT_EMBEDDER="an embedder\'s key"\nREDIS_URL=redis://other\n');
    writeFileSync(join(folder, ".env.channels"), "PARLEY_CHANNEL_TELEGRAM=first\n");
    write();
    assert.match(inService("store")["DATABASE_URL"] ?? "", /^postgres:\/\/parley_store:p\w{40}@postgres:5432\/parley$/);
    assert.match(inService("agent-core")["PARLEY_NATS_SEED"] ?? "", /^SU\w{56}$/);
    assert.match(inService("agent-core")["REDIS_URL"] ?? "", /^redis:\/\/agent-core:p/);
    assert.equal(inService("agent-core")["PARLEY_AGENT_EMBEDDER"], "an embedder's key");
    assert.equal(inService("agent-core")["ANTHROPIC_API_KEY"], undefined, "an empty value has no file");
    const group = Number(/^PARLEY_SECRETS_GID=(\d+)$/m.exec(readFileSync(join(folder, ".env"), "utf8"))?.[1]);
    for (const name of Object.keys(files)) {
      const path = join(folder, ".secrets", name);
      assert.deepEqual([statSync(path).mode & 0o777, statSync(path).gid], [0o750, group], name);
      for (const file of readdirSync(path))
        assert.deepEqual([statSync(join(path, file)).mode & 0o777, statSync(join(path, file)).gid], [0o640, group]);
    }
    assert.equal(statSync(join(folder, ".secrets")).mode & 0o077, 0);

    writeFileSync(join(folder, ".env.channels"), "PARLEY_CHANNEL_MATRIX=second\n");
    write();
    const channels = readdirSync(join(folder, ".secrets/channel-gateway")).filter((each) => /CHANNEL/.test(each));
    assert.deepEqual(channels, ["PARLEY_CHANNEL_MATRIX"], "a secret that is gone has no file");
  });
});

test("gives only the store the key and network of a bucket when one is configured", () => {
  const Bucket = z.strictObject({
    services: z.strictObject({
      store: z.strictObject({
        environment: z.record(z.string(), z.string()),
        networks: z.array(z.string()),
      }),
    }),
    networks: z.strictObject({ bucket: z.null() }),
  });
  const { store } = Bucket.parse(parse(read("infra/docker/bucket.yml"))).services;
  assert.deepEqual(store.networks, ["bucket"]);
  assert.equal(furtherFiles["store"], ".env.bucket", "write-env.mjs writes its variables to the store's files");
  assert.ok(Object.keys(store.environment).every((variable) => variablesOf("store").includes(variable)));
});

test("connects each service only to the servers that it owns", () => {
  const on = (network: string) =>
    all
      .filter(([, { networks }]) => networks.includes(network))
      .map(([name]) => name)
      .sort();
  assert.deepEqual(on("postgres"), ["migrate", "postgres", "store"]);
  assert.deepEqual(on("redis"), ["agent-core", "redis"]);
  for (const service of services) assert.deepEqual(on(`bus-${service}`), ["nats", service].sort());
  assert.deepEqual(on("model"), ["agent-core"]);
  assert.deepEqual(on("edge"), ["channel-gateway", "front"]);
  assert.deepEqual(compose.services["tool-runner"]?.networks, ["bus-tool-runner"]);
  for (const network of ["postgres", "redis", ...services.map((service) => `bus-${service}`)])
    assert.deepEqual(
      compose.networks[network],
      // Without the option, a container reaches everything on the machine that listens on all addresses.
      { internal: true, driver_opts: { "com.docker.network.bridge.inhibit_ipv4": "true" } },
      network,
    );
  assert.equal(compose.services["tool-runner"]?.environment["PARLEY_HEALTH_HOST"], "127.0.0.1");
});

test("recreates a server when its file changed, because its label is the file's hash", () => {
  assert.equal(
    withHashes(text, (path) => readFileSync(join(root, path))),
    text,
    "`npm run docs` writes the hashes",
  );
  const ours = new Set<string>([...services, "postgres"]);
  for (const [name, { configs, labels }] of all) {
    // Services are recreated with their image; PostgreSQL's script runs once.
    if (configs.length === 0 || ours.has(name)) continue;
    const hashed = Object.entries(labels).map(
      ([label, hash]) => new RegExp(`${label.replace(".", "\\.")}: "${hash}" # (\\S+)`).exec(text)?.[1],
    );
    assert.deepEqual(
      configs.map(({ source }) => compose.configs[source]?.file),
      hashed,
      name,
    );
  }
});

test("mounts existing files with valid settings", () => {
  for (const { file } of Object.values(compose.configs)) assert.ok(existsSync(join(root, file)), file);
  assert.doesNotThrow(() => parseSettings(read("infra/docker/parley.toml"), "infra/docker/parley.toml"));
  assert.equal(read("infra/redis/agent-core.acl"), `${redisRules("parley").join(" ")}\n`, "`npm run docs` writes it");
});
