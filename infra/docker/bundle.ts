// Builds the bundles of the four services (bundle.config.ts), for the images, the bench and the tests. As a program it prints their scripts
// as JSON, with `--cli` also those of the CLI.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const repository = fileURLToPath(new URL("../../", import.meta.url));

export interface Bundles {
  store: string;
  "agent-core": string;
  "tool-runner": string;
  "channel-gateway": string;
}

/** Builds all bundles at the same time and returns their scripts. Rejects with the output of a build that fails. */
export async function buildBundles(): Promise<Bundles> {
  const [store, agentCore, toolRunner, channelGateway] = await Promise.all([
    build("store"),
    build("agent-core"),
    build("tool-runner"),
    build("channel-gateway"),
  ]);
  return { store, "agent-core": agentCore, "tool-runner": toolRunner, "channel-gateway": channelGateway };
}

/** Builds the bundle of the CLI, for tests: its two executables, which find the repository's files where the sources do. */
async function buildCliBundle(): Promise<{ parley: string; "parley-sdk": string }> {
  const parley = await build("cli", "packages");
  return { parley, "parley-sdk": parley.replace("main.js", "parley-sdk.js") };
}

async function build(name: string, group: "services" | "packages" = "services"): Promise<string> {
  const vite = `${repository}packages/console/node_modules/vite/bin/vite.js`;
  const config = `${repository}infra/docker/bundle.config.ts`;
  await run(process.execPath, [vite, "build", "--config", config, "--mode", name], { cwd: repository });
  return `${repository}${group}/${name}/bundle/main.js`;
}

if (import.meta.main) {
  const [services, cli] = await Promise.all([buildBundles(), process.argv.includes("--cli") ? buildCliBundle() : {}]);
  process.stdout.write(`${JSON.stringify({ ...services, ...cli })}\n`);
}
