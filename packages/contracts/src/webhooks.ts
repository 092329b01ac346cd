// How each sender of webhooks authenticates a delivery, and which headers contain the delivery's id. The gateway verifies deliveries by
// these schemes, and `parley webhooks test` signs by them.

/**
 * The value of the header.
 * `hmac_hex`: the hex HMAC-SHA256 with the secret as key, with or without `sha256=`. `hmac_base64`: a list of `v1,<base64>`.
 * `secret`: the secret itself. `bearer`: `Bearer <secret>`.
 */
type WebhookAuthentication = "hmac_hex" | "hmac_base64" | "secret" | "bearer";

export interface WebhookScheme {
  /** The name in texts for people. */
  title: string;
  authentication: WebhookAuthentication;
  /** The header that authenticates the delivery. */
  header: string;
  /** What an HMAC covers: the raw body, or `<id>.<timestamp>.<raw body>` with the first of `ids`. */
  signedContent: "body" | "id_timestamp_body";
  /** The header with the Unix time in seconds that is signed. */
  timestampHeader?: string;
  /** Headers that may contain the delivery's id; the first one present is used. If none is present, the id is derived from the body. */
  ids: readonly string[];
  /**
   * The sender never sends the same body for two events, because bodies contain times and ids. A repeated body is then a replay, although
   * its delivery id, which is not signed, may differ.
   */
  uniqueBodies?: boolean;
  /** Steps that set up the sender. `<url>` and `<secret>` are placeholders. */
  setUp: readonly string[];
}

export const webhookSigners = ["parley", "simple", "github", "gitlab", "sentry", "alertmanager", "standard"] as const;
export type WebhookSigner = (typeof webhookSigners)[number];

export const webhookSchemes: Readonly<Record<WebhookSigner, WebhookScheme>> = {
  parley: {
    title: "Parley",
    authentication: "hmac_hex",
    header: "x-parley-signature",
    signedContent: "id_timestamp_body",
    timestampHeader: "x-parley-timestamp",
    ids: ["x-parley-delivery"],
    setUp: [
      "Send POST requests to <url>, each with a new id of letters, digits, - and _ in X-Parley-Delivery and the Unix time in X-Parley-Timestamp.",
      "Set X-Parley-Signature to `sha256=` and the hex HMAC-SHA256 of `<id>.<timestamp>.<body>`, with <secret> as key.",
    ],
  },
  simple: {
    title: "a plain HMAC of the body",
    authentication: "hmac_hex",
    header: "x-webhook-signature",
    signedContent: "body",
    ids: ["x-webhook-id"],
    setUp: [
      "Send POST requests to <url>.",
      "Set X-Webhook-Signature to `sha256=` and the hex HMAC-SHA256 of the body, with <secret> as key. If your program has an id for the delivery that stays the same when it is sent again, set X-Webhook-Id to it.",
    ],
  },
  github: {
    title: "GitHub",
    authentication: "hmac_hex",
    header: "x-hub-signature-256",
    signedContent: "body",
    ids: ["x-github-delivery"],
    uniqueBodies: true,
    setUp: [
      "Open *Settings > Webhooks > Add webhook* of the repository or organization.",
      "Payload URL: <url>. Content type: application/json. Secret: <secret>.",
      "Choose the events and save. GitHub then sends a `ping`.",
    ],
  },
  gitlab: {
    title: "GitLab",
    authentication: "secret",
    header: "x-gitlab-token",
    signedContent: "body",
    ids: ["idempotency-key", "x-gitlab-event-uuid"],
    setUp: [
      "Open *Settings > Webhooks > Add new webhook* of the project or group.",
      "URL: <url>. Signing token, where your GitLab has one, otherwise secret token: <secret>.",
      "Choose the triggers, keep SSL verification enabled, and save.",
    ],
  },
  sentry: {
    title: "Sentry",
    authentication: "hmac_hex",
    header: "sentry-hook-signature",
    signedContent: "body",
    ids: ["request-id"],
    uniqueBodies: true,
    setUp: [
      "Open *Settings > Custom Integrations > Create New Integration > Internal Integration*.",
      "Webhook URL: <url>. Enable *Alert Rule Action*, and the webhooks that you want.",
      "Save, and copy the integration's *Client Secret*: Sentry chooses the secret of this webhook.",
    ],
  },
  alertmanager: {
    title: "Alertmanager",
    authentication: "bearer",
    header: "authorization",
    signedContent: "body",
    ids: [],
    setUp: [
      "Add a receiver to alertmanager.yml: `webhook_configs: [{ url: <url>, send_resolved: true, http_config: { authorization: { credentials: <secret> } } }]`.",
      "Name the receiver in a route and reload Alertmanager.",
    ],
  },
  standard: {
    title: "Standard Webhooks",
    authentication: "hmac_base64",
    header: "webhook-signature",
    signedContent: "id_timestamp_body",
    timestampHeader: "webhook-timestamp",
    ids: ["webhook-id"],
    setUp: ["Add an endpoint with the address <url> at the sender.", "Use <secret> as signing secret."],
  },
};

/**
 * What the agent receives: `event`: the relevant fields of a known sender's event, otherwise as `json`; `json`: the body as formatted JSON; `text`: the body
 * as it is.
 */
export const webhookFormats = ["event", "json", "text"] as const;
