// Leased accounts of seven platforms, each with one person who writes to it.
import {
  startDiscordPeer,
  startIi,
  startInspIrcd,
  startMailPeer,
  startSignalPeer,
  startSlackPeer,
  startSynapse,
  startTelegramPeer,
  type Cleanup,
} from "@parley/testing";

export interface LeasedAccount {
  channel: string;
  name: string;
  /** Its table in the settings, without previews: then a message that the platform shows is an answer. */
  settings: string;
  env: Record<string, string>;
  /** Resolves when the platform has the message. */
  say: (text: string) => unknown;
  /** Resolves when a gateway receives what is written from now on. */
  connected: () => Promise<unknown>;
  /** The answers that the person has seen, in order; of an e-mail, the text of the message or the title of the command it answers. */
  sent: () => string[] | Promise<string[]>;
  /** The messages and the titles of the sessions that its person has asked for, in order. */
  written: string[];
  titles: string[];
  /** The shortest time between two messages, where the rate of answers is limited. */
  minWriteMs?: number;
}

/** Starts a person and an account of one platform. */
type StartAccount = (name: string, index: number) => Promise<Omit<LeasedAccount, "name" | "written" | "titles">>;

const platforms = { telegram, slack, discord, signal, irc, matrix, email };
const platformNames: readonly string[] = Object.keys(platforms);

/** Starts `count` accounts, as many on each of the platforms as on the others. `only`: names of platforms; default: all. */
export async function startAccounts(
  count: number,
  cleanup: Cleanup,
  only: readonly string[] = platformNames,
): Promise<LeasedAccount[]> {
  const starts: StartAccount[] = [];
  for (const [platform, open] of Object.entries(platforms))
    if (only.includes(platform)) starts.push(await open(cleanup));
  const starting = Array.from({ length: count }, async (_, index) => {
    const name = `bot${index}`;
    const start = starts[index % starts.length];
    if (start === undefined) throw new Error(`name at least one platform of ${platformNames.join(", ")}`);
    return { ...(await start(name, index)), name, written: [], titles: [] };
  });
  return Promise.all(starting);
}

function tableOf(channel: string, name: string, settings: object): string {
  const lines = Object.entries(settings).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
  return [`[channels.${channel}.${name}]`, "preview = false", ...lines, ""].join("\n");
}

const variableOf = (name: string) => `PARLEY_CHANNEL_${name.toUpperCase()}`;

function telegram(cleanup: Cleanup): StartAccount {
  return async (name, index) => {
    const peer = await startTelegramPeer({ token: `${7_000_001 + index}:AAStandInTokenOfAStandInBotForTests` });
    cleanup.add(() => peer.close());
    const settings = { token_env: variableOf(name), api_root: peer.url, owners: ["42"] };
    return {
      channel: "telegram",
      settings: tableOf("telegram", name, settings),
      env: { [variableOf(name)]: peer.token },
      say: (text) => peer.say(text),
      // Telegram keeps messages for a day.
      connected: () => Promise.resolve(),
      sent: () => peer.sent.map(({ text }) => text),
    };
  };
}

function slack(cleanup: Cleanup): StartAccount {
  return async (name) => {
    const peer = await startSlackPeer({ postRate: { burst: 1_000, everyMs: 1 } });
    cleanup.add(() => peer.close());
    const [bot, app] = [variableOf(name), `${variableOf(name)}_APP`];
    const settings = { token_env: bot, app_token_env: app, api_root: peer.url, owners: ["U0ANN"] };
    return {
      channel: "slack",
      settings: tableOf("slack", name, settings),
      env: { [bot]: peer.tokens.bot, [app]: peer.tokens.app },
      say: (text) => peer.say(text),
      connected: () => peer.untilConnected(),
      sent: () => peer.sent.map(({ text }) => text),
    };
  };
}

function discord(cleanup: Cleanup): StartAccount {
  return async (name) => {
    const peer = await startDiscordPeer();
    cleanup.add(() => peer.close());
    const settings = { token_env: variableOf(name), api_root: peer.url, owners: [peer.people.ann] };
    return {
      channel: "discord",
      settings: tableOf("discord", name, settings),
      env: { [variableOf(name)]: peer.token },
      say: (text) => peer.say(text),
      connected: () => peer.until("a session", () => (peer.gateway.connected > 0 ? true : null)),
      sent: () => peer.sent.map(({ content }) => content),
    };
  };
}

/** Its daemon numbers events and repeats those that a killed gateway has not stored. */
function signal(cleanup: Cleanup): StartAccount {
  return async (name) => {
    const peer = await startSignalPeer({ numbersEvents: true });
    cleanup.add(() => peer.close());
    const settings = { number: peer.number, daemon_url: peer.url, owners: [peer.ann.uuid] };
    return {
      channel: "signal",
      settings: tableOf("signal", name, settings),
      env: {},
      say: (text) => peer.say(text),
      // The daemon fetches messages when somebody reads its events.
      connected: () => Promise.resolve(),
      sent: () => peer.sent.map(({ text }) => text),
    };
  };
}

/** One server; each account has a channel, whose history contains what was written while nobody was there. */
async function irc(cleanup: Cleanup): Promise<StartAccount> {
  const server = await startInspIrcd({ history: true });
  cleanup.add(() => server.stop());
  return async (name) => {
    const [group, nick] = [`#${name}`, `ann-${name}`];
    const ann = await startIi({ port: server.port, nick, channels: [group] });
    cleanup.add(() => ann.quit());
    const settings = { host: server.host, port: server.port, tls: false, nick: name, groups: [group], owners: [nick] };
    return {
      channel: "irc",
      settings: tableOf("irc", name, settings),
      env: {},
      say: (text) => ann.say(group, `${name}: ${text}`),
      connected: () =>
        ann.until(group, (lines) => lines.some(({ text }) => text.includes(`${name}(`) && /joined/.test(text))),
      // An answer begins with the nick of its addressee.
      sent: () => ann.lines(group).flatMap((line) => (line.nick === name ? [line.text.replace(`${nick}: `, "")] : [])),
    };
  };
}

/** One homeserver; each account has a room with its person. */
async function matrix(cleanup: Cleanup): Promise<StartAccount> {
  const synapse = await startSynapse();
  cleanup.add(async () => synapse[Symbol.asyncDispose]());
  return async (name) => {
    const [account, ann] = [await synapse.person(name), await synapse.person(`ann-${name}`)];
    const room = await ann.createRoom({ invite: [account.userId], direct: true });
    const settings = { homeserver: synapse.url, token_env: variableOf(name), owners: [ann.userId] };
    return {
      channel: "matrix",
      settings: tableOf("matrix", name, settings),
      env: { [variableOf(name)]: account.token },
      say: (text) => ann.say(room, text),
      connected: () => ann.untilJoined(room, account.userId),
      sent: async () => (await ann.messagesOf(room, account.userId)).map(({ content }) => String(content["body"])),
      // Answers are limited to one in 5 s.
      minWriteMs: 800,
    };
  };
}

/** A mail server and a mailbox for each account. */
function email(cleanup: Cleanup): StartAccount {
  return async (name) => {
    const peer = await startMailPeer();
    cleanup.add(async () => peer[Symbol.asyncDispose]());
    const settings = {
      consent: true,
      address: `agent@${peer.domain}`,
      username: "agent",
      authserv_id: peer.authservId,
      smtp_host: peer.host,
      smtp_port: peer.smtpPort,
      smtp_tls: "none",
      imap_host: peer.host,
      imap_port: peer.imapPort,
      imap_tls: "none",
      password_env: variableOf(name),
      owners: [`ann@${peer.domain}`],
    };
    const answer = new RegExp(`\\b(?:${name} \\d+|new-${name}-\\d+)\\b`);
    return {
      channel: "email",
      settings: tableOf("email", name, settings),
      env: { [variableOf(name)]: peer.password },
      say: (text) => peer.write({ subject: "", body: text }),
      // Its cursor tells: mail from before the first connection is not read.
      connected: () => Promise.resolve(),
      sent: () => peer.mails("ann").flatMap((mail) => answer.exec(mail)?.[0] ?? []),
      // One person gets ten answers, then one a minute.
      minWriteMs: 4_800,
    };
  };
}
