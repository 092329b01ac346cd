// Builds the bundles of the four services (bundle.config.ts), for the images, the bench and the tests. As a program it prints their scripts
// as JSON.
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

async function build(service: string): Promise<string> {
  const vite = `${repository}packages/console/node_modules/vite/bin/vite.js`;
  const config = `${repository}infra/docker/bundle.config.ts`;
  await run(process.execPath, [vite, "build", "--config", config, "--mode", service], { cwd: repository });
  return `${repository}services/${service}/bundle/main.js`;
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(await buildBundles())}\n`);
