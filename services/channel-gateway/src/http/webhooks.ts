// Webhooks: a signed body becomes a message in the hook's own session, or in the owner's thread. The response 202 is sent only after the store's commit; a
// redelivery is the same message.
import { ReplyAddressSchema, type WebhookAccount, type ParleySettings } from "@parley/contracts";
import { oneLine } from "@parley/kit";
import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { Disabled } from "../delivery/account-states.ts";
import { joinsMain } from "../ingress/route.ts";
import { MessageTooLargeError, type AuthorizedInput } from "../ingress/authorized-input.ts";
import type { StoredMessage } from "../live/follow-turn.ts";
import { OperationError } from "../operations/operation.ts";
import type { HttpDeps } from "./deps.ts";
import type { Endpoints } from "./endpoint.ts";
import { HttpError } from "./errors.ts";
import { verifyDelivery, type SignatureCheck } from "../webhooks/signature-check.ts";
import { messageText } from "../webhooks/message-text.ts";

const maxBodyBytes = 256 * 1024;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

interface Hook {
  settings: WebhookAccount;
  /** Null when the environment variable is not set; the hook is then disabled. */
  secret: string | null;
}

export function webhookRoutes(app: FastifyInstance, endpoints: Endpoints, deps: HttpDeps): void {
  const hooks = webhooksOf(deps.settings, deps.channelSecrets);
  endpoints.document({
    method: "POST",
    url: "/hooks/:id",
    summary: "A signed webhook, one per [webhooks.<id>] in parley.toml",
    description:
      "The hook's `signer` selects the signature scheme of its sender; docs/webhooks.md lists them. A signed timestamp may differ from the current time by at most 5 minutes; a repeated id is the same delivery. The body may have at most 256 KiB.",
    open: true,
    params: z.object({ id: z.string() }),
    answers: {
      202: {
        description: "Stored durably",
        schema: z.object({ messageId: z.string(), sessionId: z.string(), duplicate: z.boolean() }),
      },
    },
  });
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer", bodyLimit: maxBodyBytes }, (_request, body, done) =>
      done(null, body),
    );
    scope.route<{ Params: { id: string } }>({
      method: methods,
      url: "/hooks/:id",
      bodyLimit: maxBodyBytes,
      config: { open: true },
      handler: async (request, reply) => {
        const { id } = request.params;
        const hook = hooks.get(id);
        if (hook === undefined) throw new HttpError(404, "no_such_hook", `there is no hook "${id}"`);
        if (request.method !== "POST") {
          throw new HttpError(405, "method_not_allowed", "webhooks accept only POST", { headers: { allow: "POST" } });
        }
        if (hook.secret === null) {
          throw new HttpError(503, "hook_disabled", `the hook "${id}" is disabled: its secret is not configured`);
        }
        const header = (name: string) => single(request.headers[name]);
        const rawBody = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
        const verdict = verifyDelivery(hook.settings.signer, hook.secret, { rawBody, header }, Date.now());
        if (!verdict.genuine) {
          deps.events.hook(id, "refused", verdict.reason);
          throw new HttpError(401, "bad_signature", verdict.reason);
        }
        requireReplyAccount(deps, id, hook.settings);
        const body = rawBody.toString("utf8");
        const texts = [messageText(hook.settings, body, header), body];
        const kept = await keepDelivery(deps, id, hook.settings, verdict, texts);
        deps.events.hook(id, kept.duplicate ? "duplicate" : "stored");
        reply.code(202);
        return { messageId: kept.inboxId, sessionId: kept.sessionId, duplicate: kept.duplicate };
      },
    });
  });
}

/**
 * Throws when `reply_to` names an account that does not exist: the answer would wait for nobody. Accounts may be added at any time, so the
 * start does not check it. An account that is disabled may come back, so its answers wait.
 */
function requireReplyAccount({ directory }: HttpDeps, id: string, { reply_to: address }: WebhookAccount): void {
  if (address === undefined) return;
  try {
    directory.require(address);
  } catch (error) {
    if (!(error instanceof OperationError)) throw error;
    if (error.code !== "no_such_account") return;
    throw new HttpError(503, "hook_disabled", `the hook "${id}" is disabled: reply_to: ${error.message}`);
  }
}

/** Stores the first of the texts that is not too large. */
async function keepDelivery(
  deps: HttpDeps,
  id: string,
  settings: WebhookAccount,
  delivery: Extract<SignatureCheck, { genuine: true }>,
  [text = "", ...shorter]: readonly string[],
): Promise<StoredMessage> {
  const { deliveryId: externalId, content } = delivery;
  const input: AuthorizedInput = {
    channel: "hook",
    account: id,
    externalId,
    text: `[webhook:${id}] ${text}`,
    contact: { id: `hook:${id}` },
    role: "user",
    origin: "webhook",
    replyTo: settings.reply_to === undefined ? null : ReplyAddressSchema.parse(settings.reply_to),
    ...placeOf(deps.settings.session, id, settings, externalId),
    ...(content === undefined ? {} : { content }),
    // An error would only make the sender of the webhook retry.
    keyed: false,
  };
  try {
    const kept = await deps.inbound.store(input);
    if (settings.note && input.thread !== "main") await storeNote(deps, input, text, kept.sessionId);
    return kept;
  } catch (error) {
    // The indentation may have made the message too large.
    if (!(error instanceof MessageTooLargeError) || shorter.length === 0) throw error;
    return keepDelivery(deps, id, settings, delivery, shorter);
  }
}

const maxNoteChars = 300;

/** Stores a note in the owner's thread, once for each delivery. When that fails, the sender repeats the delivery. */
async function storeNote(deps: HttpDeps, input: AuthorizedInput, text: string, sessionId: string): Promise<void> {
  await deps.inbound.store({
    ...input,
    externalId: `note:${input.externalId}`,
    content: input.content && { ...input.content, id: `note:${input.content.id}` },
    text: `[note: webhook:${input.account} is handled in session ${sessionId}] ${oneLine(text, maxNoteChars)}`,
    replyTo: null,
    thread: "main",
    route: undefined,
    profile: undefined,
    mode: "queue",
  });
}

/** The conversation of a delivery, by the webhook's `target` and profile. */
function placeOf(
  session: ParleySettings["session"],
  id: string,
  { target, profile }: WebhookAccount,
  externalId: string,
): Pick<AuthorizedInput, "conversation" | "thread" | "route" | "profile" | "mode"> {
  const conversation = target === "new" ? `${id}/${externalId}` : id;
  if (target?.startsWith("session:") === true) {
    return { conversation, route: target.slice("session:".length), mode: "queue" };
  }
  const isMain = profile === undefined && joinsMain(session, target);
  return { conversation, thread: isMain ? "main" : "named", profile, ...(isMain ? { mode: "queue" } : {}) };
}

function single(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** Returns the configured hooks with their secrets. */
export function webhooksOf(settings: ParleySettings, secrets: ReadonlyMap<string, string>): Map<string, Hook> {
  const hooks = new Map<string, Hook>();
  for (const [id, hook] of Object.entries(settings.webhooks)) {
    hooks.set(id, { settings: hook, secret: secrets.get(hook.secret_env) ?? null });
  }
  return hooks;
}

/** Returns the hooks that are disabled because their secret is missing. */
export function disabledWebhooks(settings: ParleySettings, secrets: ReadonlyMap<string, string>): Disabled[] {
  return Object.entries(settings.webhooks)
    .filter(([, hook]) => !secrets.has(hook.secret_env))
    .map(([id, { secret_env: name }]) => ({
      name: `hook:${id}`,
      reason: `[webhooks.${id}] secret_env: the environment variable ${name} is not set; set it to the secret`,
    }));
}
