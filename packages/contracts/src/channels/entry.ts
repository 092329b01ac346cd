// The type of a channel's entry, which describes the channel: settings, secrets, capabilities, limits and set-up. Configuration, checks,
// documentation and the gateway's delivery read the entries; no code branches on a channel's name.
import { z } from "zod";

/** How the host renders an answer before an adapter sends it. */
export type TextFormat =
  /** Markdown source, for platforms that render it themselves. */
  | "markdown"
  /** HTML with blocks: paragraphs, lists, tables. */
  | "html"
  /** HTML tags of ranges only; blocks are separated by line breaks. */
  | "inline_html"
  /** Plain text and the positions of styled ranges. */
  | "ranges"
  /** `*bold* _italic_ ~strike~`, links as `<url|label>`, `&<>` escaped. */
  | "mrkdwn"
  /** `*bold* _italic_ ~strike~`, links as text. */
  | "single_asterisk"
  /** Message Styling of XMPP (XEP-0393): `*bold* _italic_ ~strike~`, only where its rules see a span; links as text. */
  | "message_styling"
  | "plain";

/** `sms_segments`: messages of GSM 03.38, which a provider charges for. */
export type LengthUnit = "utf16" | "bytes" | "code_points" | "sms_segments";

/** The text of one platform message. */
export interface TextLimits {
  format: TextFormat;
  /** The longest text of one message. */
  maxLength: number;
  lengthUnit: LengthUnit;
  /** false: the platform parses the markup before it counts. */
  lengthCountsMarkup: boolean;
  /** Every message is one line: longer texts become several messages. */
  singleLine?: true;
}

/** A limit of sends: a burst, then one per interval. */
export interface SendRate {
  burst: number;
  everyMs: number;
}

/** The rates of an account, shared by all replicas. */
export interface SendRates {
  account?: SendRate;
  /** For each conversation whose id matches the pattern (a regular expression); the first match applies. */
  conversations?: readonly (SendRate & { pattern: string })[];
}

/** What a platform can do. */
export interface ChannelCapabilities {
  text: TextLimits;
  rates?: SendRates;
  /** The platform drops a second send with the same key, so a send with an unknown outcome may be repeated. */
  supportsIdempotentSend: boolean;
  /** The platform has a typing indicator. */
  typing: boolean;
  /** How often the typing indicator is repeated while a turn runs; omitted: every 4.5 s. */
  typingEveryMs?: number;
  /** How long a send of a text may take; omitted: 10 s. At most 20 s, so that its outcome is stored before the claim ends. */
  sendTimeoutMs?: number;
  /** The adapter sends files; otherwise a text names the file. */
  files: boolean;
  /** Files of an answer are sent with the last message of its text (`OutboundPart.files`); omitted: each in a message of its own. */
  filesWithText?: true;
  /** After this many messages of a text the rest waits until somebody asks for it with the command `more`. Omitted: all are sent. */
  messagesPerPage?: number;
  /** Messages may have buttons; otherwise people answer by text. */
  actions: boolean;
  /** The adapter edits messages: an answer is shown while it is written, and edited at most this often. Omitted: only the whole answer is sent. */
  preview?: { everyMs: number };
  /** A reaction that the platform accepts; it marks a received message while its turn runs. Omitted: no reactions. */
  acknowledgement?: string;
  /** What a command begins with, in addition to `/`, because clients of this platform keep `/` for themselves. */
  commandPrefix?: string;
}

/** A secret of an account: a setting that names the environment variable with its value. */
export interface ChannelSecret {
  /** The setting, for example `token_env`. */
  setting: string;
  /** What it is, for people who set the account up. */
  purpose: string;
  /** The account needs it always, or if another setting has this value; omitted: optional. */
  required?: true | { setting: string; value: string };
}

/** A setting that has no usable default and contains no secret: the set-up asks for it. */
export interface SettingQuestion {
  /** The setting, for example `homeserver`. */
  setting: string;
  /** What it is, for people who set the account up. */
  purpose: string;
  /** Asked only if another setting has this value. Omitted: always. */
  onlyIf?: { setting: string; value: string };
}

/** Settings of every account: who may write to the agent, and what they see while it answers. */
export const peopleSettings = {
  /** Platform ids of the owner's accounts: they share the owner's thread. */
  owners: z.array(z.string()).default([]),
  /** Platform ids of people who may talk to the agent. Empty: only the owners and people admitted by pairing. */
  allow_from: z.array(z.string()).default([]),
  dm_policy: z.enum(["pairing", "allowlist", "open", "disabled"]).default("pairing"),
  /** Groups the agent takes part in; `*`: every group it is added to. Empty: none. */
  groups: z.array(z.string()).default([]),
  /** In a group, answer only when mentioned. */
  require_mention: z.boolean().default(true),
  /**
   * Show the agent what people wrote in a group since its last turn there, with the next message that mentions it: at most the last 50
   * messages of one day and 16 KB. What others than the sender wrote is untrusted. Needs `require_mention`. Omitted: false.
   */
  group_context: z.boolean().optional(),
  /**
   * Which edits of a message reach the agent after it has read the message: none (`queued`: only waiting messages change), those while it
   * works on the message (default), or all, each of which it answers.
   */
  edits: z.enum(["queued", "running", "always"]).optional(),
  /**
   * What else reaches the agent as a message of the person, and is answered: a `reaction` to a message of the agent, or that somebody `added`
   * the agent to a group it may take part in. Omitted: nothing.
   */
  events: z.array(z.enum(["reaction", "added"])).optional(),
  /** The profile that answers here instead of the agent itself; each conversation then has a session of its own. Applies to new sessions. */
  profile: z.string().optional(),
  /** Show an answer while it is written, where the platform can edit messages. Omitted: true. */
  preview: z.boolean().optional(),
  /** React to a message while its turn runs, where the platform has reactions. Omitted: false. */
  acknowledge: z.boolean().optional(),
};

export const PeoplePolicySchema = z.object(peopleSettings);
/** The part of an account's settings that decides access. */
export type PeoplePolicy = z.infer<typeof PeoplePolicySchema>;

/** `listed`: the settings let the person in. `if_paired`: they are let in only as a stored contact. `never`: not at all. */
export const admissions = ["listed", "if_paired", "never"] as const;
export type Admission = (typeof admissions)[number];

/** What an account's settings say about a person who was let in before. `direct`: the conversation is with them alone. */
export function admissionOf(
  { owners, allow_from, dm_policy }: Pick<PeoplePolicy, "owners" | "allow_from" | "dm_policy">,
  { contactId, direct }: { contactId: string; direct: boolean },
): Admission {
  if (owners.includes(contactId)) return "listed";
  if (direct && dm_policy === "disabled") return "never";
  return allow_from.includes(contactId) ? "listed" : "if_paired";
}

/** The name of an environment variable that contains a secret. */
export const secretVariable = z
  .string()
  .regex(/^PARLEY_CHANNEL_[A-Z0-9_]+$/, "must be the name of an environment variable that begins with PARLEY_CHANNEL_");

/** One kind of platform. */
export interface ChannelEntry<S extends z.ZodType<PeoplePolicy> = z.ZodType<PeoplePolicy>> {
  /** The name in settings and addresses, and of the adapter's folder. */
  name: string;
  /** The name in texts for people. */
  title: string;
  /** The settings of one account. */
  settings: S;
  secrets: readonly ChannelSecret[];
  /** The settings that the set-up asks for, in order; at least those that the schema requires. Omitted: none. */
  questions?: readonly SettingQuestion[];
  capabilities: ChannelCapabilities;
  /**
   * `leased`: the gateway opens one connection per account, and only the replica that holds its lease does. `called`: the platform sends
   * HTTP requests to the gateway. Otherwise the value `leased` of the setting means the former.
   */
  connection: "leased" | "called" | { setting: string; leased: string };
  /** The TCP ports of the platform that the gateway connects to; deployments allow them. Omitted: 443. */
  ports?: readonly number[];
  /** The id of a person is also the id of the private conversation with them. Omitted: conversations have ids of their own. */
  contactIdIsConversationId?: true;
  /** An address on it, for examples. */
  exampleAddress: string;
  /** How an account is created, in order. */
  setUp: readonly string[];
  /** What the account must be allowed to do on the platform. */
  permissions: readonly string[];
}

/** Defines a channel; its settings keep their type. */
export function defineChannel<S extends z.ZodType<PeoplePolicy>>(entry: ChannelEntry<S>): ChannelEntry<S> {
  return entry;
}
