// The people of the fake workspace: what they write, press and change, and the events that the app gets about it.
import { randomUUID } from "node:crypto";
import type { Deliveries, Delivery } from "./deliveries.ts";
import { shownMessage } from "./methods.ts";
import type { SlackState } from "./state.ts";

export interface MessageOptions {
  /** Default `U0ANN`. */
  from?: string;
  /** `D…` a direct conversation, `C…` a channel, `G…` a group of people. Default: the direct conversation with `from`. */
  channel?: string;
  threadTs?: string;
  /** Fields of the message that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

/** What the app is told of a message of a person, and the message's id. */
export interface SaidMessage {
  channel: string;
  ts: string;
  deliveries: readonly Delivery[];
}

export interface PersonsFile {
  name: string;
  mediaType: string;
  comment?: string;
  /** Fields of the file that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

const kinds: Readonly<Record<string, string>> = { D: "im", C: "channel", G: "mpim" };

export class People {
  readonly #state: SlackState;
  readonly #deliveries: Deliveries;
  readonly #root: string;
  readonly #without: ReadonlySet<string>;

  constructor(state: SlackState, deliveries: Deliveries, root: string, without: ReadonlySet<string>) {
    this.#state = state;
    this.#deliveries = deliveries;
    this.#root = root;
    this.#without = without;
  }

  /** Writes a message. A mention in a channel is two events, as in the service: `message` and `app_mention`. */
  say(
    text: string,
    { from = "U0ANN", channel = directWith(from), threadTs, fields }: MessageOptions = {},
  ): SaidMessage {
    const ts = this.#state.nextTs();
    this.#state.written.push({ channel, ts, user: from, text, threadTs: threadTs ?? null });
    const parent = threadTs === undefined ? undefined : this.#authorOf(channel, threadTs);
    const message = {
      user: from,
      type: "message",
      ts,
      client_msg_id: randomUUID(),
      text,
      team: this.#state.teamId,
      channel,
      event_ts: ts,
      ...(threadTs === undefined ? {} : { thread_ts: threadTs, parent_user_id: parent }),
      ...fields,
    };
    const kind = kinds[channel.charAt(0)] ?? "channel";
    const pushed = [this.push({ ...message, channel_type: kind })];
    if (kind !== "im" && text.includes(`<@${this.#state.bot.userId}>`)) {
      const { client_msg_id: _, ...mention } = message;
      pushed.push(this.push({ ...mention, type: "app_mention" }));
    }
    return { channel, ts, deliveries: pushed.filter((delivery) => delivery !== null) };
  }

  /** Shares a file, with or without a text. */
  sendFile(
    content: Buffer,
    { name, mediaType, comment = "", fields }: PersonsFile,
    options: MessageOptions = {},
  ): SaidMessage {
    const id = `F${String(this.#state.files.size).padStart(8, "0")}`;
    this.#state.files.set(id, { name, content });
    const url = `${this.#root}/files-pri/${id}/${encodeURIComponent(name)}`;
    const file = {
      id,
      name,
      title: name,
      mimetype: mediaType,
      size: content.length,
      mode: "hosted",
      file_access: "visible",
      url_private: url,
      url_private_download: `${url}?download`,
      ...fields,
    };
    return this.say(comment, {
      ...options,
      fields: { subtype: "file_share", files: [file], upload: false, ...options.fields },
    });
  }

  /** Presses a button of the app's message. */
  press(ts: string, label: string, from = "U0ANN"): Delivery {
    const message = this.#state.sent.find((one) => one.ts === ts);
    const button = message?.buttons.find((one) => one.label === label);
    if (message === undefined || button === undefined) throw new Error(`message ${ts} has no button ${label}`);
    const trigger = `${randomUUID()}.trigger`;
    return this.#deliveries.push("interactive", trigger, {
      type: "block_actions",
      user: { id: from, username: from.toLowerCase(), name: from.toLowerCase(), team_id: this.#state.teamId },
      api_app_id: this.#state.appId,
      token: "unused",
      container: {
        type: "message",
        message_ts: ts,
        channel_id: message.channel,
        is_ephemeral: message.onlyFor !== null,
      },
      trigger_id: trigger,
      team: { id: this.#state.teamId, domain: "standin" },
      channel: { id: message.channel, name: message.channel.startsWith("D") ? "directmessage" : "general" },
      message: shownMessage(message, this.#state),
      response_url: `${this.#root}/response/${trigger}`,
      actions: [
        {
          type: "button",
          action_id: button.actionId,
          block_id: button.blockId,
          value: button.value,
          text: { type: "plain_text", text: label, emoji: true },
          action_ts: this.#state.nextTs(),
        },
      ],
    });
  }

  /** Types a slash command of the app, such as `/parley`. */
  command(
    command: string,
    text: string,
    { from = "U0ANN", channel = directWith(from) }: MessageOptions = {},
  ): Delivery {
    const trigger = `${randomUUID()}.trigger`;
    return this.#deliveries.push("slash_commands", trigger, {
      token: "unused",
      team_id: this.#state.teamId,
      team_domain: "standin",
      channel_id: channel,
      channel_name: channel.startsWith("D") ? "directmessage" : "general",
      user_id: from,
      user_name: from.toLowerCase(),
      command,
      text,
      api_app_id: this.#state.appId,
      is_enterprise_install: "false",
      response_url: `${this.#root}/response/${trigger}`,
      trigger_id: trigger,
    });
  }

  /** Changes a message that a person wrote. */
  edit(ts: string, text: string): Delivery | null {
    const message = this.#writtenAt(ts);
    const { channel, user, threadTs } = message;
    const body = (content: string) => ({
      type: "message",
      user,
      ts,
      text: content,
      ...(threadTs === null ? {} : { thread_ts: threadTs }),
    });
    const editedTs = this.#state.nextTs();
    const before = message.text;
    message.text = text;
    return this.push({
      type: "message",
      subtype: "message_changed",
      channel,
      channel_type: kinds[channel.charAt(0)],
      hidden: true,
      ts: editedTs,
      event_ts: editedTs,
      message: { ...body(text), edited: { user, ts: editedTs } },
      previous_message: body(before),
    });
  }

  /** Deletes a message that a person wrote. */
  erase(ts: string): Delivery | null {
    const { channel, user, text, threadTs } = this.#writtenAt(ts);
    const erasedTs = this.#state.nextTs();
    return this.push({
      type: "message",
      subtype: "message_deleted",
      channel,
      channel_type: kinds[channel.charAt(0)],
      hidden: true,
      ts: erasedTs,
      event_ts: erasedTs,
      deleted_ts: ts,
      previous_message: { type: "message", user, ts, text, ...(threadTs === null ? {} : { thread_ts: threadTs }) },
    });
  }

  /** Reacts to a message of anybody. */
  react(channel: string, ts: string, reaction: string, from = "U0ANN"): Delivery | null {
    return this.push({
      type: "reaction_added",
      user: from,
      reaction,
      item: { type: "message", channel, ts },
      item_user: this.#authorOf(channel, ts),
      event_ts: this.#state.nextTs(),
    });
  }

  /** Delivers any event, unless the app has not subscribed to it. */
  push(event: Record<string, unknown>): Delivery | null {
    if (typeof event["type"] === "string" && this.#without.has(event["type"])) return null;
    const id = `Ev${randomUUID().replaceAll("-", "").slice(0, 9).toUpperCase()}`;
    const { teamId, appId, bot } = this.#state;
    return this.#deliveries.push("events_api", id, {
      token: "unused",
      team_id: teamId,
      api_app_id: appId,
      event,
      type: "event_callback",
      event_id: id,
      event_time: Math.floor(Date.now() / 1_000),
      authorizations: [{ enterprise_id: null, team_id: teamId, user_id: bot.userId, is_bot: true }],
      is_ext_shared_channel: false,
    });
  }

  #writtenAt(ts: string) {
    const found = this.#state.written.find((message) => message.ts === ts);
    if (found === undefined) throw new Error(`nobody wrote ${ts}`);
    return found;
  }

  #authorOf(channel: string, ts: string): string | undefined {
    if (this.#state.messageAt(channel, ts) !== undefined) return this.#state.bot.userId;
    return this.#state.written.find((message) => message.channel === channel && message.ts === ts)?.user;
  }
}

function directWith(person: string): string {
  return `D${person.slice(1)}`;
}
