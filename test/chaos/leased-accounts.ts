// Accounts of seven platforms whose connections gateways lease, each with one person who writes to it.
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
  /** The account's table in the settings. It turns previews off, so that each message of the account is an answer. */
  settings: string;
  env: Record<string, string>;
  /** Sends a message as the person. Resolves when the platform has it. */
  say: (text: string) => unknown;
  /** Resolves when a gateway will receive all messages that the person sends from now on. */
  connected: () => Promise<unknown>;
  /** The answers that the person has received, in order. For e-mail: only the answered text or session title of each. */
  answers: () => string[] | Promise<string[]>;
  /** The texts that the person has requested as answers, in order. */
  requested: string[];
  /** The titles of the sessions that the person has begun, in order. */
  titles: string[];
  /** Minimum time between two messages of the person; omitted if the platform does not limit answers. */
  minWriteMs?: number;
}

/** Creates an account of one platform and a person who writes to it. */
type StartAccount = (name: string, index: number) => Promise<Omit<LeasedAccount, "name" | "requested" | "titles">>;

const platforms = { telegram, slack, discord, signal, irc, matrix, email };
const platformNames: readonly string[] = Object.keys(platforms);

/** Starts `count` accounts, in turn on each platform. `only`: the names of the platforms; default: all. */
export async function startAccounts(
  count: number,
  cleanup: Cleanup,
  only: readonly string[] = platformNames,
): Promise<LeasedAccount[]> {
  const starters: StartAccount[] = [];
  for (const [platform, createStarter] of Object.entries(platforms))
    if (only.includes(platform)) starters.push(await createStarter(cleanup));
  const accounts = Array.from({ length: count }, async (_, index) => {
    const name = `bot${index}`;
    const start = starters[index % starters.length];
    if (start === undefined) throw new Error(`name at least one platform of ${platformNames.join(", ")}`);
    return { ...(await start(name, index)), name, requested: [], titles: [] };
  });
  return Promise.all(accounts);
}

function settingsTable(channel: string, name: string, settings: object): string {
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
      settings: settingsTable("telegram", name, settings),
      env: { [variableOf(name)]: peer.token },
      say: (text) => peer.say(text),
      // Telegram delivers messages of the last day, so no connection is needed.
      connected: () => Promise.resolve(),
      answers: () => peer.sent.map(({ text }) => text),
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
      settings: settingsTable("slack", name, settings),
      env: { [bot]: peer.tokens.bot, [app]: peer.tokens.app },
      say: (text) => peer.say(text),
      connected: () => peer.untilConnected(),
      answers: () => peer.sent.map(({ text }) => text),
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
      settings: settingsTable("discord", name, settings),
      env: { [variableOf(name)]: peer.token },
      say: (text) => peer.say(text),
      connected: () => peer.until("a session", () => (peer.gateway.connected > 0 ? true : null)),
      answers: () => peer.sent.map(({ content }) => content),
    };
  };
}

/** Signal's daemon numbers its events and repeats those that a killed gateway has not stored. */
function signal(cleanup: Cleanup): StartAccount {
  return async (name) => {
    const peer = await startSignalPeer({ numbersEvents: true });
    cleanup.add(() => peer.close());
    const settings = { number: peer.number, daemon_url: peer.url, owners: [peer.ann.uuid] };
    return {
      channel: "signal",
      settings: settingsTable("signal", name, settings),
      env: {},
      say: (text) => peer.say(text),
      // The daemon keeps messages until a gateway reads its events, so no connection is needed.
      connected: () => Promise.resolve(),
      answers: () => peer.sent.map(({ text }) => text),
    };
  };
}

/** One server for all accounts. Each account has a channel, whose history has the messages sent while no gateway was connected. */
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
      settings: settingsTable("irc", name, settings),
      env: {},
      say: (text) => ann.say(group, `${name}: ${text}`),
      connected: () =>
        ann.until(group, (lines) => lines.some(({ text }) => text.includes(`${name}(`) && /joined/.test(text))),
      // An answer begins with the nick of its addressee.
      answers: () =>
        ann.lines(group).flatMap((line) => (line.nick === name ? [line.text.replace(`${nick}: `, "")] : [])),
    };
  };
}

/** One homeserver for all accounts. Each account has a room with its person. */
async function matrix(cleanup: Cleanup): Promise<StartAccount> {
  const synapse = await startSynapse();
  cleanup.add(async () => synapse[Symbol.asyncDispose]());
  return async (name) => {
    const [account, ann] = [await synapse.person(name), await synapse.person(`ann-${name}`)];
    const room = await ann.createRoom({ invite: [account.userId], direct: true });
    const settings = { homeserver: synapse.url, token_env: variableOf(name), owners: [ann.userId] };
    return {
      channel: "matrix",
      settings: settingsTable("matrix", name, settings),
      env: { [variableOf(name)]: account.token },
      say: (text) => ann.say(room, text),
      connected: () => ann.untilJoined(room, account.userId),
      answers: async () => (await ann.messagesOf(room, account.userId)).map(({ content }) => String(content["body"])),
      // The account sends one answer in 5 s.
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
    const answerText = new RegExp(`\\b(?:${name} \\d+|new-${name}-\\d+)\\b`);
    return {
      channel: "email",
      settings: settingsTable("email", name, settings),
      env: { [variableOf(name)]: peer.password },
      say: (text) => peer.write({ subject: "", body: text }),
      // `leases.ts` waits for the stored cursor instead: mail from before the first connection is not read.
      connected: () => Promise.resolve(),
      answers: () => peer.mails("ann").flatMap((mail) => answerText.exec(mail)?.[0] ?? []),
      // The account sends ten answers to one person, then one per minute.
      minWriteMs: 4_800,
    };
  };
}
