// The Web API methods of the fake, with the checks and error codes of the real service (https://docs.slack.dev/reference/methods).
import { z } from "zod";
import { fileMethods } from "./file-methods.ts";
import { closedBecause, done, json, refused, type Method, type MethodResult } from "./results.ts";
import { notifiedBy, renderBlocks, renderMrkdwn, type Rendered } from "./rendering.ts";
import type { PostRate, SlackMessage, SlackState } from "./state.ts";

/** https://docs.slack.dev/apis/web-api/rate-limits: tier 3 is about 50 calls a minute, tier 4 about 100. */
const tier3: PostRate = { burst: 50, everyMs: 1_200 };
const tier4: PostRate = { burst: 100, everyMs: 600 };
export const tiers: Readonly<Record<string, PostRate>> = {
  "chat.update": tier3,
  "chat.delete": tier3,
  "reactions.add": tier3,
  "reactions.remove": tier3,
  "chat.postEphemeral": tier4,
  "users.info": tier4,
  "files.getUploadURLExternal": tier4,
  "files.completeUploadExternal": tier4,
};

/** The scope of the bot token that a method needs; others need none that could be missing here. */
export const scopes: Readonly<Record<string, string>> = {
  "chat.postMessage": "chat:write",
  "chat.postEphemeral": "chat:write",
  "chat.update": "chat:write",
  "chat.delete": "chat:write",
  "reactions.add": "reactions:write",
  "reactions.remove": "reactions:write",
  "users.info": "users:read",
  "files.getUploadURLExternal": "files:write",
  "files.completeUploadExternal": "files:write",
};

/** The longest `text` that this server accepts; Slack truncates a longer one. Edits have the limit of Slack. */
const maxText = 40_000;
const maxEditText = 4_000;
const maxMarkdownText = 12_000;

const Content = z.object({
  text: z.string().optional(),
  markdown_text: z.string().optional(),
  blocks: json(z.array(z.record(z.string(), z.unknown()))).optional(),
});
const Post = Content.extend({ channel: z.string(), thread_ts: z.string().optional(), user: z.string().optional() });
const Target = z.object({ channel: z.string(), ts: z.string() });
const Reaction = z.object({ channel: z.string(), timestamp: z.string(), name: z.string() });
const Status = z.object({ channel_id: z.string(), thread_ts: z.string(), status: z.string() });

type Body = Rendered & { fallback: string; blocks: readonly Record<string, unknown>[] };

function contentOf(given: z.infer<typeof Content>, longest: number): Body | MethodResult {
  const { text = "", markdown_text: markdown, blocks = [] } = given;
  if (markdown !== undefined) {
    if (text !== "" || blocks.length > 0) return refused("markdown_text_conflict");
    if (markdown.length > maxMarkdownText) return refused("msg_too_long");
    const rendered = renderBlocks([{ type: "markdown", text: markdown }]);
    return rendered === null ? refused("no_text") : { ...rendered, fallback: "", blocks: [] };
  }
  if (text.length > longest) return refused("msg_too_long");
  if (blocks.length > 0) {
    const rendered = renderBlocks(blocks);
    return rendered === null ? refused("invalid_blocks") : { ...rendered, fallback: text, blocks };
  }
  if (text.trim() === "") return refused("no_text");
  return { text: renderMrkdwn(text), buttons: [], notified: notifiedBy(text), fallback: text, blocks };
}

function post(parameters: Record<string, unknown>, state: SlackState, onlyFor: string | null): MethodResult {
  const given = Post.safeParse(parameters);
  if (!given.success) return refused("invalid_arguments");
  const { channel, thread_ts: threadTs } = given.data;
  const closed = closedBecause(channel, threadTs, state);
  if (closed !== null) return refused(closed);
  const content = contentOf(given.data, maxText);
  if ("ok" in content) return content;
  const message: SlackMessage = {
    channel,
    ts: state.nextTs(),
    threadTs: threadTs ?? null,
    ...content,
    files: [],
    onlyFor,
    postedText: content.text,
    edits: 0,
    deleted: false,
  };
  state.sent.push(message);
  state.changed();
  if (onlyFor !== null) return done({ message_ts: message.ts });
  return done({ channel, ts: message.ts, message: shownMessage(message, state) });
}

/** A message of the app as events and answers contain it. */
export function shownMessage(message: SlackMessage, state: SlackState): Record<string, unknown> {
  return {
    type: "message",
    subtype: "bot_message",
    user: state.bot.userId,
    bot_id: state.bot.botId,
    app_id: state.appId,
    team: state.teamId,
    ts: message.ts,
    text: message.fallback,
    blocks: message.blocks,
    ...(message.threadTs === null ? {} : { thread_ts: message.threadTs }),
  };
}

export const methods: Readonly<Record<string, Method>> = {
  "api.test": () => done(),
  "auth.test": (_, { teamId, bot }) =>
    done({
      url: "https://standin.slack.com/",
      team: "Stand-in",
      user: bot.name,
      team_id: teamId,
      user_id: bot.userId,
      bot_id: bot.botId,
    }),
  "users.info": ({ user }, state) => {
    if (typeof user !== "string" || !/^[UWB][A-Z0-9]+$/.test(user)) return refused("user_not_found");
    const name = state.names.get(user) ?? user.toLowerCase();
    return done({ user: { id: user, team_id: state.teamId, name, real_name: name, profile: { display_name: name } } });
  },
  "chat.postMessage": (parameters, state) => post(parameters, state, null),
  "chat.postEphemeral": (parameters, state) => {
    const { user } = parameters;
    return typeof user === "string" ? post(parameters, state, user) : refused("invalid_arguments");
  },
  "chat.update": (parameters, state) => {
    const given = Target.extend(Content.shape).safeParse(parameters);
    if (!given.success) return refused("invalid_arguments");
    const message = state.messageAt(given.data.channel, given.data.ts);
    if (message === undefined || message.deleted) return refused("message_not_found");
    const content = contentOf(given.data, maxEditText);
    if ("ok" in content) return content;
    Object.assign(message, content, { edits: message.edits + 1 });
    state.changed();
    return done({ channel: message.channel, ts: message.ts, text: content.fallback });
  },
  "chat.delete": (parameters, state) => {
    const given = Target.safeParse(parameters);
    const message = given.success ? state.messageAt(given.data.channel, given.data.ts) : undefined;
    if (message === undefined || message.deleted) return refused("message_not_found");
    message.deleted = true;
    state.changed();
    return done({ channel: message.channel, ts: message.ts });
  },
  "reactions.add": (parameters, state) => {
    const { key, error } = reactionOf(parameters, state);
    if (error !== null) return refused(error);
    if (state.reactions.has(key)) return refused("already_reacted");
    state.reactions.add(key);
    state.changed();
    return done();
  },
  "reactions.remove": (parameters, state) => {
    const { key, error } = reactionOf(parameters, state);
    if (error !== null) return refused(error);
    if (!state.reactions.delete(key)) return refused("no_reaction");
    state.changed();
    return done();
  },
  "assistant.threads.setStatus": (parameters, state) => {
    const given = Status.safeParse(parameters);
    if (!given.success) return refused("invalid_arguments");
    const { channel_id: channel, thread_ts: threadTs, status } = given.data;
    const closed = closedBecause(channel, threadTs, state);
    if (closed !== null) return refused(closed);
    state.statuses.push({ channel, threadTs, status });
    state.changed();
    return done();
  },
  ...fileMethods,
};

function reactionOf(parameters: Record<string, unknown>, state: SlackState): { key: string; error: string | null } {
  const given = Reaction.safeParse(parameters);
  if (!given.success) return { key: "", error: "invalid_arguments" };
  const { channel, timestamp: ts, name } = given.data;
  const key = `${channel}:${ts}:${name}`;
  if (!/^[a-z0-9_+'-]{1,100}$/.test(name)) return { key, error: "invalid_name" };
  return { key, error: state.exists(channel, ts) ? null : "message_not_found" };
}
