// parley.toml: the settings a deployment shares. Secrets never stand in it, only the names of environment variables.
import { z } from "zod";

const SessionSettings = z
  .strictObject({
    /** `singleton`: the owner's conversations on all channels are one thread. `per_conversation`: each chat is its own. */
    policy: z.enum(["singleton", "per_conversation"]).default("singleton"),
  })
  .prefault({});

const AgentSettings = z
  .strictObject({
    /** Said to the model before everything else. */
    system_prompt: z.string().optional(),
    /** `rehearsal`, or a model id of Anthropic's API. PARLEY_MODEL wins over it. */
    model: z.string().optional(),
    max_concurrent_turns: z.number().int().min(1).max(1024).default(64),
    max_output_tokens: z.number().int().min(1).max(128_000).default(16_384),
    /** Model calls in one turn; 0 = no limit. */
    max_iterations: z.number().int().min(0).default(50),
    /** Tool calls in one turn; 0 = no limit. */
    max_tool_calls: z.number().int().min(0).default(200),
    /** Wall time of one turn in seconds; 0 = no limit. */
    max_turn_seconds: z.number().int().min(0).default(7_200),
    thinking: z.enum(["off", "adaptive"]).default("adaptive"),
  })
  .prefault({});

const ToolSettings = z
  .strictObject({
    /** Calls one tool-runner replica works on at the same time. */
    max_concurrent_calls: z.number().int().min(1).max(256).default(16),
    exec: z
      .strictObject({
        /** `auto`: bubblewrap where it works, else `exec` is refused. `container`: the pod is the sandbox. `none`: no isolation, said so. `off`: no `exec`. */
        isolation: z.enum(["auto", "bubblewrap", "container", "none", "off"]).default("auto"),
        timeout_seconds: z.number().int().min(1).max(3_600).default(120),
      })
      .prefault({}),
  })
  .prefault({});

const dmPolicy = z.enum(["pairing", "allowlist", "open", "disabled"]).default("pairing");
const envName = z
  .string()
  .regex(/^PARLEY_CHANNEL_[A-Z0-9_]+$/, "must be the name of an environment variable that begins with PARLEY_CHANNEL_");

const people = {
  /** Platform ids of the owner's accounts: they share the owner's thread. */
  owners: z.array(z.string()).default([]),
  /** Platform ids of people who may talk to the agent. Empty means nobody but the owners and those let in by pairing. */
  allow_from: z.array(z.string()).default([]),
  dm_policy: dmPolicy,
  /** Groups the agent takes part in. Empty means none. */
  groups: z.array(z.string()).default([]),
  /** In a group, answer only when addressed. */
  require_mention: z.boolean().default(true),
};

const TelegramSettings = z.strictObject({
  ...people,
  token_env: envName,
  mode: z.enum(["poll", "webhook"]).default("poll"),
  /** Holds the secret Telegram sends back with each update; required for `webhook`. */
  webhook_secret_env: envName.optional(),
  api_root: z.url().default("https://api.telegram.org"),
});
export type TelegramAccount = z.infer<typeof TelegramSettings>;

const IrcSettings = z.strictObject({
  ...people,
  host: z.string(),
  port: z.number().int().min(1).max(65_535).default(6697),
  tls: z.boolean().default(true),
  nick: z.string().regex(/^[A-Za-z[\]\\`_^{|}][A-Za-z0-9[\]\\`_^{|}-]{0,29}$/),
  password_env: envName.optional(),
});
export type IrcAccount = z.infer<typeof IrcSettings>;

const HookSettings = z.strictObject({
  /** Holds the shared secret of the signature. */
  secret_env: envName,
  /** Who sends: decides how the signature and the delivery id are read. `parley`: X-Parley-Signature over `id.timestamp.body`. */
  signer: z.enum(["parley", "github", "standard"]).default("parley"),
  /** Where the agent's answer goes; none = it stays in the session. */
  reply_to: z.strictObject({ channel: z.string(), account: z.string(), conversation: z.string() }).optional(),
});
export type HookAccount = z.infer<typeof HookSettings>;

const accountName = z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/);

export const ParleySettingsSchema = z.strictObject({
  session: SessionSettings,
  agent: AgentSettings,
  tools: ToolSettings,
  channels: z
    .strictObject({
      telegram: z.record(accountName, TelegramSettings).default({}),
      irc: z.record(accountName, IrcSettings).default({}),
    })
    .prefault({}),
  hooks: z.record(accountName, HookSettings).default({}),
});
export type ParleySettings = z.infer<typeof ParleySettingsSchema>;
