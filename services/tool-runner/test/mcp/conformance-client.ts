// The tool-runner's MCP client for the conformance suite: connects to the given URL and calls every tool.
// Follows a consent link like a browser of a person who agrees.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLogger } from "@parley/chassis";
import { ParleySettingsSchema, publicKeyInState, sealedCodeContext } from "@parley/contracts";
import { seal } from "@parley/kit";
import { z } from "zod";
import { callTool } from "../../src/mcp/call-tool.ts";
import { finish } from "../../src/mcp/oauth/authorize.ts";
import { TokenStore } from "../../src/mcp/oauth/token-store.ts";
import { mcpConfig, restartTimes } from "../../src/mcp/server-config.ts";
import { McpServers } from "../../src/mcp/servers.ts";
import type { PersonPrompt } from "../../src/tool/requests.ts";

const Context = z.object({
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  private_key_pem: z.string().optional(),
  idp_client_id: z.string().optional(),
  idp_id_token: z.string().optional(),
  idp_token_endpoint: z.string().optional(),
});

interface ConformanceRun {
  url: string;
  scenario: string;
  /** What the suite gives the client for the scenario, as JSON. */
  context: string | undefined;
}

/** How many consents the client gives before it calls tools. */
const maxConsents = 3;

/** A person who accepts the defaults of every form. */
const person: PersonPrompt = { ask: async () => ({ kind: "said", text: "done" }) };

/** Runs the client once; rejects when the server did not become ready. */
export async function runConformanceClient(run: ConformanceRun): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "parley-conformance-"));
  try {
    await useServer(run, folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function useServer(run: ConformanceRun, folder: string): Promise<void> {
  const config = await configOf(run, folder);
  const vault = new TokenStore(join(folder, "vault"), config.key ?? "");
  const log = createLogger({ service: "test", replica: "test", level: "warn" });
  const times = { ...restartTimes, aliveMs: 5_000 };
  const signal = AbortSignal.timeout(200_000);
  const agree = async (link: string): Promise<void> => {
    const response = await fetch(link, { redirect: "manual" });
    const { searchParams } = new URL(response.headers.get("location") ?? "", link);
    const target = { server: "server", state: searchParams.get("state") ?? "" };
    const [code, publicKey] = [searchParams.get("code"), publicKeyInState(target.state)];
    await finish(
      { plans: config.plans, vault, log },
      {
        ...target,
        sealedCode: code === null ? null : seal(code, publicKey ?? "", sealedCodeContext(target)),
        error: searchParams.get("error"),
        issuer: searchParams.get("iss"),
      },
    );
  };
  const servers = new McpServers(config, { version: "1", log, times, vault, changed: () => undefined });
  servers.start();
  try {
    await servers.settled(120_000);
    const server = servers.server("server");
    for (let agreed = 0; agreed < maxConsents; agreed++) {
      const link = (await server?.consentLink(signal)) ?? null;
      if (link === null) break;
      await agree(link);
      server?.retry();
      await servers.settled(120_000);
    }
    for (const { name, inputSchema } of servers.descriptors) {
      const { properties = {} } = z
        .looseObject({ properties: z.record(z.string(), z.unknown()).optional() })
        .parse(inputSchema);
      const args = Object.fromEntries(Object.keys(properties).map((argument, index) => [argument, index + 2]));
      const output = await call(servers, name, args, signal);
      const consent = /open this link, then try again: (\S+)/.exec(output)?.[1];
      if (consent === undefined) continue;
      await agree(consent);
      server?.retry();
      await call(servers, name, args, signal);
    }
    const [status] = servers.statuses;
    if (status?.state !== "ready")
      throw new Error(`the server is ${status?.state ?? "gone"}: ${status?.problem ?? ""}`);
  } finally {
    await servers.close();
  }
}

async function configOf({ url, scenario, context: given = "{}" }: ConformanceRun, folder: string) {
  const context = Context.parse(JSON.parse(given));
  const client = {
    ...(context.client_id === undefined ? {} : { client_id: context.client_id }),
    ...(context.client_secret === undefined ? {} : { client_secret_env: "SECRET" }),
    ...(context.private_key_pem === undefined ? {} : { private_key_env: "KEY" }),
  };
  // The redirect URL that the suite's authorization server knows; nothing listens there.
  const metadata =
    scenario === "auth/basic-cimd" ? { metadata_url: "https://conformance-test.local/client-metadata.json" } : {};
  // An authorization server whose issuer differs from its URL must be configured.
  const issuer =
    scenario === "auth/2025-03-26-oauth-metadata-backcompat" ? { issuer: new URL("/oauth", url).href } : {};
  const tokenFile = join(folder, "id-token");
  await writeFile(tokenFile, `${context.idp_id_token ?? ""}\n`);
  const { idp_token_endpoint: idp, idp_client_id: atIdp } = context;
  const identity = idp === undefined ? {} : { identity: { token_url: idp, client_id: atIdp, token_file: tokenFile } };
  const grant = grantOf(scenario);
  const oauth = scenario.startsWith("auth/")
    ? { oauth: { ...client, ...metadata, ...issuer, ...identity, grant } }
    : {};
  const settings = ParleySettingsSchema.shape.mcp.parse({
    public_url: "http://127.0.0.1:8787",
    servers: { server: { url, era: "legacy", ...oauth } },
  });
  const env = { PARLEY_MCP_KEY: "a key for this run", SECRET: context.client_secret, KEY: context.private_key_pem };
  return mcpConfig(settings, env, { workspace: folder, programFolder: "/", searchPath: "" });
}

function grantOf(scenario: string): string {
  if (scenario.includes("client-credentials")) return "client_credentials";
  return scenario.includes("cross-app-access") ? "cross_app_access" : "authorization_code";
}

async function call(
  servers: McpServers,
  name: string,
  args: Record<string, unknown>,
  signal: AbortSignal,
): Promise<string> {
  const server = servers.server("server");
  const tool = server?.tools.find((each) => name.endsWith(each.name));
  if (server === undefined || tool === undefined) throw new Error(`no tool ${name}`);
  return (await callTool(server, tool, args, { signal, askPerson: person })).content;
}
