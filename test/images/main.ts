// npm run test:images: builds the images twice and tests that both builds are equal, and what runs in them: sizes, users, missing programs, health,
// and that commands in the tool-runner's container cannot read its secrets. Then it starts docker-compose.yml and checks it from inside its containers.
// It uses the Docker engine of the machine, or starts one (root on Linux with apt).
// npm run test:images -- --compose: builds the images and makes only the checks of docker-compose.yml.
// npm run test:images -- --scenes [NAME…] [--rate MESSAGES] [--duration-seconds SECONDS]: instead plays the scenes of `npm run chaos` in containers.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sharedCacheDir } from "@parley/local";
import { secretsGroup, writeSecretFiles } from "../../infra/docker/secret-files.mjs";
import { ensureBaseImage } from "./base-image.ts";
import { imageOf, repository } from "./compose-cluster.ts";
import { contentsOf, copySources, differences } from "./contents.ts";
import { openEngine, type Engine } from "./engine.ts";
import { ensureCompose, ensureServerImages } from "./server-images.ts";

const baseImage = "node:24-bookworm-slim";
const targets = ["store", "migrate", "agent-core", "tool-runner", "channel-gateway"] as const;
type Target = (typeof targets)[number];

/** Above the base image, in millions of bytes. */
const maxMegabytes = (target: Target): number => (target === "tool-runner" ? 80 : 60);
/** How long a process may take to open its health listener, or to end. */
const waitMs = 60_000;

const say = (line: string): void => console.error(line);

/** As in docker-compose.yml and k8s/base. */
const hardened = ["--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none"];
const folders = ["/tmp", "/workspace", "/checkpoints", "/state", "/.workspace-mcp"].flatMap((path) => [
  "--tmpfs",
  `${path}:uid=10001,gid=10001`,
]);
const seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
/** Servers that never answer: a service waits for them. */
const natsUrl = ["--env", "PARLEY_NATS_URL=nats://127.0.0.1:1"];

/** The secrets of a container as in docker-compose.yml: files, but for the tool-runner, whose commands could read them. */
function secretsOf(target: Target, folder: string): string[] {
  if (target === "tool-runner") return ["--env", `PARLEY_NATS_SEED=${seed}`];
  const mounted = "/run/secrets/parley";
  return [
    `--group-add=${secretsGroup}`,
    `--env=PARLEY_SECRETS_DIR=${mounted}`,
    `--env=PARLEY_NATS_SEED_FILE=${mounted}/PARLEY_NATS_SEED`,
    `--volume=${join(folder, ".secrets", target)}:${mounted}:ro`,
  ];
}

/** The content of .env: logins for servers that nobody runs. */
const dotEnv = [
  ...["STORE", "AGENT_CORE", "CHANNEL_GATEWAY"].map((name) => `NATS_${name}_SEED=${seed}`),
  "POSTGRES_STORE_PASSWORD=x",
  "POSTGRES_OWNER_PASSWORD=x",
  "REDIS_PASSWORD=x",
  `PARLEY_TOKEN_SHA256=${"0".repeat(64)}`,
].join("\n");

async function build({ docker }: Engine, target: Target, sources = repository, name = imageOf(target)): Promise<void> {
  const npmrc = join(homedir(), ".npmrc");
  const secret = existsSync(npmrc) ? ["--secret", `id=npmrc,src=${npmrc}`] : [];
  // Without a digest: the base may have been made here, and then no registry has it.
  const base = ["--build-arg", `NODE_IMAGE=${baseImage}`];
  await docker("build", "--network", "host", ...base, ...secret, "--target", target, "--tag", name, sources);
}

/** Builds every image from a copy of the sources, without the compiled files of the first build, and compares all files. */
async function checkReproducible(engine: Engine): Promise<void> {
  const sources = mkdtempSync(join(tmpdir(), "parley-again-"));
  const different: string[] = [];
  try {
    copySources(repository, sources);
    for (const target of targets) {
      const again = `${imageOf(target)}-again`;
      await build(engine, target, sources, again);
      const [one, other] = [await contentsOf(engine, imageOf(target)), await contentsOf(engine, again)];
      assert.ok(one.size > 1_000, `${target}: ${one.size} files`);
      const paths = differences(one, other);
      for (const path of paths) different.push(`${target}: ${path}`);
      if (paths.length === 0) say(`${target}: ${one.size} files, equal in a second build`);
    }
    assert.deepEqual(different, [], "two builds of one tree differ");
  } finally {
    rmSync(sources, { recursive: true });
  }
}

/** Megabytes above the base image. */
async function checkImage({ docker }: Engine, target: Target): Promise<number> {
  const sizeOf = async (image: string) => Number(await docker("image", "inspect", "--format", "{{.Size}}", image));
  const megabytes = Math.round(((await sizeOf(imageOf(target))) - (await sizeOf(baseImage))) / 1e6);
  assert.ok(megabytes <= maxMegabytes(target), `${target}: ${megabytes} MB above the base image`);
  assert.equal(await docker("image", "inspect", "--format", "{{.Config.User}}", imageOf(target)), "10001:10001");
  const look = ["run", "--rm", ...hardened, "--entrypoint", "sh", imageOf(target), "-c"];
  assert.equal(await docker(...look, "command -v npm npx corepack yarn || echo none"), "none", target);
  assert.equal(await docker(...look, "touch /written 2>/dev/null && echo written || echo refused"), "refused", target);
  return megabytes;
}

/** Runs a service without its servers: it lives, says what it waits for, and ends on SIGTERM. */
async function checkService(engine: Engine, target: Exclude<Target, "migrate">): Promise<string> {
  const { docker } = engine;
  const secrets = mkdtempSync(join(tmpdir(), "parley-images-"));
  writeFileSync(join(secrets, ".env"), dotEnv);
  writeSecretFiles(secrets);
  const given = [...natsUrl, ...secretsOf(target, secrets)];
  const container = await docker("run", "--detach", ...hardened, ...folders, ...given, imageOf(target));
  try {
    const get = (path: string) =>
      docker(
        "exec",
        container,
        "node",
        "--eval",
        `fetch("http://127.0.0.1:8080${path}").then(async (r) => console.log(r.status, await r.text()))`,
      );
    const deadline = Date.now() + waitMs;
    let alive = "";
    while (!alive.startsWith("200") && Date.now() < deadline) {
      alive = await get("/livez").catch(() => "");
      await delay(500);
    }
    assert.match(alive, /^200/, `${target}: ${await docker("logs", container)}`);
    const waiting = await get("/startupz");
    assert.match(waiting, /^503 .*(?:NATS|bus|127\.0\.0\.1:1)/s, target);
    if (target === "tool-runner") await checkSecrets(engine, container);
    await docker("stop", "--time", "30", container);
    assert.equal(await docker("inspect", "--format", "{{.State.ExitCode}}", container), "0", target);
    return waiting.trim();
  } finally {
    await docker("rm", "--force", container);
    rmSync(secrets, { recursive: true });
  }
}

/** What a command in the container, which runs as the service's user, reads of the other processes. */
async function checkSecrets({ docker }: Engine, container: string): Promise<void> {
  const script = `
    for process in /proc/[0-9]*; do
      name=$(cat $process/comm)
      case $name in tini|node|MainThread)
        kill -USR1 \${process#/proc/} 2>/dev/null
        if cat $process/environ >/dev/null 2>&1; then echo "$name readable"; else echo "$name hidden"; fi ;;
      esac
    done
    sleep 1
    grep -q ":240D " /proc/net/tcp /proc/net/tcp6 && echo debugger
    if cat /usr/local/bin/health-shell >/dev/null 2>&1; then echo "health-shell readable"; else echo "health-shell hidden"; fi`;
  const lines = (await docker("exec", container, "sh", "-c", script)).split("\n").toSorted();
  assert.equal(lines.filter((line) => line.endsWith("hidden")).length, lines.length, lines.join(", "));
  assert.equal(lines.length, 3, lines.join(", "));
}

/** Runs the checks of docker-compose.yml, or the scenes, where the engine's networks are. */
async function checkCompose(engine: Engine): Promise<void> {
  const servers = [
    ...readFileSync(join(repository, "docker-compose.yml"), "utf8").matchAll(/^ +image: (?!parley\/)(\S+)$/gm),
  ];
  await ensureServerImages(
    engine,
    servers.map(([, image = ""]) => image),
    folder,
    say,
  );
  await ensureCompose(engine, folder, say);
  const inside = await engine.isolate();
  const launcher = [process.execPath, "infra/local/bootstrap.mjs", "test/images/compose-main.ts"];
  const [program = "", ...args] = [...inside, ...launcher, ...process.argv.slice(2)];
  const env = { ...process.env, ...engine.environment };
  const checks = spawn(program, args, { cwd: repository, env, stdio: "inherit" });
  const [code] = (await once(checks, "exit")) as [number | null];
  if (code !== 0) process.exitCode = 1;
}

const onlyCompose = process.argv.includes("--compose") || process.argv.includes("--scenes");
const folder = join(sharedCacheDir, "docker");
mkdirSync(folder, { recursive: true });
const engine = await openEngine(folder, say);
try {
  say(`base image: ${await ensureBaseImage(engine, baseImage, folder, say)}`);
  for (const target of targets) {
    const begin = performance.now();
    await build(engine, target);
    if (onlyCompose) continue;
    const megabytes = await checkImage(engine, target);
    const waits = target === "migrate" ? "" : `; ${await checkService(engine, target)}`;
    say(
      `${target}: ${megabytes} MB above the base image, ${Math.round((performance.now() - begin) / 1_000)} s${waits}`,
    );
  }
  if (!onlyCompose) await checkReproducible(engine);
  await checkCompose(engine);
} finally {
  await engine.close();
}
