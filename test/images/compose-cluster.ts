// The deployment of docker-compose.yml, with the images that were just built, in a folder and under a project name of its own.
import { execFileSync } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { services } from "@parley/contracts";
import { freePort } from "@parley/local";
import { temporaryFolder, type Cleanup } from "@parley/testing";
import { stringify } from "yaml";
import { z } from "zod";
import { copySources } from "./contents.ts";
import type { Docker } from "./engine.ts";

export const repository = fileURLToPath(new URL("../../", import.meta.url));
const project = "parley-test";
/** The images of the tests, so that those of a user with the names of docker-compose.yml are not replaced. */
export const imageOf = (target: string): string => `parley-test/${target}`;

const Inspected = z.array(
  z.looseObject({
    Id: z.string(),
    Name: z.string(),
    State: z.looseObject({
      Running: z.boolean(),
      Pid: z.number(),
      StartedAt: z.string(),
      Health: z.looseObject({ Status: z.string() }).optional(),
    }),
    Config: z.looseObject({ Labels: z.record(z.string(), z.string()), Env: z.array(z.string()) }),
    HostConfig: z.looseObject({
      Memory: z.number(),
      NanoCpus: z.number(),
      PidsLimit: z.number().nullish(),
      LogConfig: z.looseObject({ Type: z.string(), Config: z.record(z.string(), z.string()) }),
      PortBindings: z.record(z.string(), z.array(z.looseObject({ HostIp: z.string() }))).nullish(),
    }),
    NetworkSettings: z.looseObject({
      Networks: z.record(z.string(), z.looseObject({ IPAddress: z.string(), Gateway: z.string() })),
    }),
    Mounts: z.array(z.looseObject({ Type: z.string(), Destination: z.string(), RW: z.boolean() })),
  }),
);

/** A running container of the deployment, as the engine describes it. */
export type Container = z.infer<typeof Inspected>[number] & { service: string };

export interface ComposeCluster extends Docker {
  /** The address of the published port, and the owner's token. */
  url: string;
  token: string;
  /** Runs a command of Compose for this deployment. */
  compose(...args: string[]): Promise<string>;
  /** Starts what is missing or changed, and resolves when all containers are healthy. `files`: further files of Compose. */
  up(options?: readonly string[], files?: readonly string[]): Promise<void>;
  /** The running containers, in the order of their names. */
  containers(service?: string): Promise<Container[]>;
  exec(container: Pick<Container, "Id">, ...command: string[]): Promise<string>;
}

export interface ComposeOptions {
  /** Instead of infra/docker/parley.toml. */
  settings?: string;
  /** Additions to the services of docker-compose.yml, and to its networks. */
  services?: Record<string, Record<string, unknown>>;
  networks?: Record<string, unknown>;
}

/** Starts the deployment; it ends with the cleanup, and its volumes with it. */
export async function startCompose(
  cleanup: Cleanup,
  { docker }: Docker,
  options: ComposeOptions = {},
): Promise<ComposeCluster> {
  const folder = await temporaryFolder(cleanup);
  copySources(repository, folder);
  const env = join(folder, ".env");
  execFileSync(process.execPath, [join(folder, "infra/docker/write-env.mjs"), env], { stdio: "ignore" });
  const port = await freePort();
  appendFileSync(env, `PARLEY_HTTP_PORT=${port}\n`);
  if (options.settings !== undefined) writeFileSync(join(folder, "infra/docker/parley.toml"), options.settings);
  const built = [...services, "migrate"].map((name) => [name, { image: imageOf(name) }] as const);
  const changed: Record<string, Record<string, unknown>> = { ...Object.fromEntries(built), ...options.services };
  const override = { services: changed, networks: options.networks ?? {} };
  writeFileSync(join(folder, "compose.test.yml"), stringify(override));
  const compose = (files: readonly string[], ...args: string[]) => {
    const read = ["docker-compose.yml", "compose.test.yml", ...files].flatMap((file) => ["--file", join(folder, file)]);
    return docker("compose", "--project-name", project, "--project-directory", folder, ...read, ...args);
  };
  let running: readonly string[] = [];
  const cluster: ComposeCluster = {
    docker,
    url: `http://127.0.0.1:${port}`,
    token: /^PARLEY_TOKEN=(.+)$/m.exec(readFileSync(env, "utf8"))?.[1] ?? "",
    compose: (...args) => compose([], ...args),
    async up(more = [], files = []) {
      running = files;
      await compose(files, "up", "--detach", "--wait", "--no-build", ...more);
    },
    async containers(service) {
      const ids = await docker("ps", "--quiet", "--filter", `label=com.docker.compose.project=${project}`);
      if (ids === "") return [];
      return Inspected.parse(JSON.parse(await docker("inspect", ...ids.split("\n"))))
        .map((each) => ({ ...each, service: each.Config.Labels["com.docker.compose.service"] ?? "" }))
        .filter((each) => service === undefined || each.service === service)
        .toSorted((one, other) => one.Name.localeCompare(other.Name));
    },
    exec: ({ Id }, ...command) => docker("exec", Id, ...command),
  };
  const remove = async () => {
    await compose(running, "down", "--volumes", "--timeout", "5");
  };
  // A run that was killed has left its volumes, with other passwords.
  await remove();
  cleanup.add(remove);
  try {
    await cluster.up();
  } catch (error) {
    throw new Error(`the deployment did not start:\n${await cluster.compose("logs", "--tail", "20")}`, {
      cause: error,
    });
  }
  return cluster;
}
