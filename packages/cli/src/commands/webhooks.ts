// The commands `parley webhooks …`: adds a webhook to parley.toml, lists webhooks, and sends a signed test delivery to the gateway.

import { randomBytes, randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

import { ConfigError, parseSettingsFile } from "@parley/chassis/settings";
import {
  channelNamed,
  errorMessage,
  exampleAddress,
  webhookSchemes,
  webhookSigners,
  type WebhookAccount,
  type WebhookSigner,
} from "@parley/contracts";
import { signWebhook } from "@parley/kit";

import { asTyped } from "../io/command-name.ts";
import { findSettings, readSettings, tomlLines } from "../cluster/settings.ts";
import { findTarget, homePath } from "../cluster/target.ts";
import { CliError, exitCodes, painter, print, printJson, UsageError } from "../io/io.ts";
import { homeOption, jsonOption, targetOptions, text } from "../io/options.ts";
import { webhooksTable } from "../tables/webhooks.ts";
import { operand, type Call, type CommandSpec } from "./command.ts";

const nameWebhook = "Name a webhook; `parley webhooks list` shows them.";

function signerOf(given: string | undefined): WebhookSigner {
  return webhookSigners.find((signer) => signer === given) ?? "parley";
}

/** A new secret in the form that the sender accepts; null: the sender chooses it. */
function newSecret(signer: WebhookSigner): string | null {
  if (signer === "sentry") return null;
  if (signer === "standard" || signer === "gitlab") return `whsec_${randomBytes(32).toString("base64")}`;
  return randomBytes(32).toString("base64url");
}

function replyAddress(given: string | undefined) {
  if (given === undefined) return undefined;
  const [channel = "", account = "", ...conversation] = given.split(":");
  if (channelNamed(channel) === undefined) {
    throw new UsageError(
      `--reply-to: there is no channel "${channel}".`,
      `It has the form <channel>:<account>:<conversation>, for example ${exampleAddress}`,
    );
  }
  if (channel === "" || account === "" || conversation.length === 0) {
    throw new UsageError(
      "--reply-to has the form <channel>:<account>:<conversation>.",
      `For example ${exampleAddress}`,
    );
  }
  return { channel, account, conversation: conversation.join(":") };
}

/** Appends a table to parley.toml, after it has checked the result. */
async function add({ values, positionals, io }: Call): Promise<number> {
  const id = operand(positionals, "Name the webhook: parley webhooks add build --from github");
  const signer = signerOf(values.text("from"));
  const file = findSettings(undefined, values, io) ?? join(homePath(values, io), "parley.toml");
  const before = existsSync(file) ? readFileSync(file, "utf8") : "";
  const variable = `PARLEY_CHANNEL_HOOK_${id.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
  const table = {
    secret_env: variable,
    signer,
    format: values.text("format"),
    target: values.text("target"),
    reply_to: replyAddress(values.text("reply-to")),
  };
  const added = `${before === "" || before.endsWith("\n") ? "" : "\n"}\n${tomlOf(id, table)}\n`;
  try {
    if (parseSettingsFile(before, file).webhooks[id] !== undefined) {
      throw new CliError(`${file} already has [webhooks.${id}].`, { fix: "Choose another name, or edit the file." });
    }
    parseSettingsFile(before + added, file);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  appendFileSync(file, added);
  const secret = newSecret(signer);
  if (values.has("json")) {
    printJson(io, { file, id, secretEnv: variable, secret, path: `/hooks/${id}` });
    return exitCodes.ok;
  }
  const fill = (step: string) =>
    step.replaceAll("<url>", `https://<your host>/hooks/${id}`).replaceAll("<secret>", secret ?? "its secret");
  const atSender = webhookSchemes[signer].setUp.map(fill);
  const here = [
    `Set the secret where the gateway runs: export ${variable}='${secret ?? "<the secret that the sender shows>"}'`,
    "Restart Parley, so that it reads the settings.",
  ];
  // A sender that chooses the secret comes first: without it there is nothing to set.
  const steps = [
    ...(secret === null ? [...atSender, ...here] : [...here, ...atSender]),
    asTyped(`Send a test delivery: parley webhooks test ${id}`),
  ];
  print(io, `Added [webhooks.${id}] to ${file}. What is left to do:\n`);
  print(io, steps.map((step, index) => `${index + 1}. ${step}`).join("\n"));
  return exitCodes.ok;
}

function tomlOf(id: string, { reply_to: address, ...rest }: object & { reply_to: object | undefined }): string {
  const inline = Object.entries(address ?? {}).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  const reply = address === undefined ? [] : [`reply_to = { ${inline.join(", ")} }`];
  return [`[webhooks.${id}]`, ...tomlLines(rest), ...reply].join("\n");
}

function settingsOf({ values, io }: Call): Record<string, WebhookAccount> {
  try {
    return readSettings(findSettings(undefined, values, io), values, io).settings.webhooks;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new CliError(error.message);
  }
}

async function list(call: Call): Promise<number> {
  const { values, io } = call;
  const webhooks = Object.entries(settingsOf(call)).map(([id, { secret_env: variable, ...settings }]) => ({
    id,
    ...settings,
    secretEnv: variable,
    secretIsSet: Boolean(io.env[variable]),
    path: `/hooks/${id}`,
  }));
  if (values.has("json")) printJson(io, { webhooks });
  else print(io, webhooksTable(webhooks, painter(io.stdout, io.env)));
  return exitCodes.ok;
}

/** A small event of each sender, and the headers that name its kind. */
function sample(signer: WebhookSigner, id: string): { body: object; headers?: Record<string, string> } {
  const message = "Test delivery of `parley webhooks test`";
  const at = new Date().toISOString();
  switch (signer) {
    case "github":
      return {
        body: { zen: message, hook: { updated_at: at }, repository: { full_name: "test" } },
        headers: { "x-github-event": "ping" },
      };
    case "gitlab":
      return { body: { object_kind: "note", object_attributes: { note: message } } };
    case "sentry":
      return {
        body: { action: "created", data: { issue: { title: message, lastSeen: at } } },
        headers: { "sentry-hook-resource": "issue" },
      };
    case "alertmanager": {
      const alert = { status: "firing", labels: { alertname: "Test" }, annotations: { summary: message } };
      return { body: { status: "firing", alerts: [{ ...alert, startsAt: at, fingerprint: id }] } };
    }
    case "standard":
      return { body: { type: "parley.test", timestamp: at, data: { message } } };
    default:
      return { body: { message, at } };
  }
}

async function test(call: Call): Promise<number> {
  const { values, positionals, io } = call;
  const id = operand(positionals, nameWebhook);
  const webhook = settingsOf(call)[id];
  if (webhook === undefined) throw new CliError(`There is no webhook ${id} in the settings.`, { fix: nameWebhook });
  const secret = io.env[webhook.secret_env];
  if (!secret) {
    throw new CliError(`${webhook.secret_env} is not set here, so the delivery cannot be signed.`, {
      fix: `Set it to the secret with which the gateway runs: export ${webhook.secret_env}=…`,
    });
  }
  const deliveryId = `test-${randomUUID()}`;
  const given = sample(webhook.signer, deliveryId);
  const body = values.text("body") ?? JSON.stringify(given.body);
  const signed = signWebhook(webhookSchemes[webhook.signer], secret, { id: deliveryId, body, atMs: Date.now() });
  const [url = ""] = findTarget(values, io).urls();
  const address = `${url}/hooks/${id}`;
  let response: Response;
  try {
    const headers = { "content-type": "application/json", ...given.headers, ...signed };
    response = await fetch(address, { method: "POST", headers, body });
  } catch (error) {
    throw new CliError(`${address} could not be reached: ${errorMessage(error)}`, {
      fix: "Is Parley running? parley status",
    });
  }
  const answer = (await response.json()) as {
    messageId?: string;
    sessionId?: string;
    error?: { code: string; message: string };
  };
  if (values.has("json")) printJson(io, { status: response.status, ...answer });
  else if (response.status === 202) {
    print(io, `${answer.messageId ?? ""}  stored in session ${answer.sessionId ?? ""}`);
  }
  if (response.status === 202) return exitCodes.ok;
  if (values.has("json")) return exitCodes.error;
  throw new CliError(`${address} refused the delivery with ${response.status}: ${answer.error?.message ?? ""}`, {
    fix: "The gateway reads settings and secrets at its start: restart it after a change.",
  });
}

export const webhookCommands: readonly CommandSpec[] = [
  {
    name: "webhooks add",
    summary: "add a webhook to parley.toml and show what is left to do",
    operands: ["<name>"],
    options: {
      ...homeOption,
      ...jsonOption,
      from: text("<sender>", "who sends; default: parley", [...webhookSigners]),
      target: text("<target>", "main, own, new (a conversation for each delivery) or session:<key>"),
      "reply-to": text("<address>", `where the answers go, such as ${exampleAddress}`),
      format: text("<format>", "what the agent reads; default: event", ["event", "json", "text"]),
    },
    details: "A webhook is the table [webhooks.<name>]; docs/webhooks.md explains it.",
    examples: [
      "parley webhooks add build --from github",
      `parley webhooks add alerts --from alertmanager --reply-to ${exampleAddress}`,
    ],
    run: add,
  },
  {
    name: "webhooks list",
    summary: "list the webhooks of the settings",
    options: { ...homeOption, ...jsonOption },
    examples: ["parley webhooks list"],
    run: list,
  },
  {
    name: "webhooks test",
    summary: "send a signed test delivery to the running gateway",
    operands: ["<name>"],
    options: {
      ...targetOptions,
      ...jsonOption,
      body: text("<text>", "the body instead of a small event of the sender"),
    },
    details: "The agent reads the delivery like any other. The variable with the secret must be set here.",
    examples: ["parley webhooks test build"],
    run: test,
  },
];
