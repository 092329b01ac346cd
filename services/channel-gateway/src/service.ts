// Assembles the gateway from its parts at start and closes them at the end.
import { openChassis, serveHealthReport, type RunningService, type StartContext } from "@parley/chassis";
import { accountLogs, accountReports, channelEntries } from "@parley/contracts";
import { AccountLog } from "./delivery/account-log.ts";
import { AccountStates } from "./delivery/account-states.ts";
import { Accounts } from "./accounts/accounts.ts";
import { AccountDirectory } from "./accounts/directory.ts";
import type { ChannelAccount } from "./accounts/hosted-account.ts";
import { ChannelSecrets } from "./accounts/secrets.ts";
import type { GatewayConfig } from "./config.ts";
import { createEvents } from "./events.ts";
import { unavailable } from "./http/errors.ts";
import { disabledWebhooks } from "./http/webhooks.ts";
import { listenHttp } from "./http/server.ts";
import { OpenRequests } from "./http/open-requests.ts";
import { InboundHandler } from "./ingress/inbound.ts";
import { EventHub } from "./live/event-hub.ts";
import { OutageNotices, type OutageTimes } from "./delivery/outage-notices.ts";
import { LeasePool } from "./delivery/lease-pool.ts";
import { createObservers, openObservers } from "./delivery/observers.ts";
import { SessionStreams } from "./live/session-stream.ts";
import { SessionDirectory } from "./live/session-directory.ts";

/** Replacements for tests. */
export interface GatewayOverrides {
  /** Replaces the configured accounts. */
  accounts?: readonly ChannelAccount[];
  outageTimes?: OutageTimes;
  /** Resources that the process opened before the start. */
  context?: StartContext;
}

/** Reserved from the drain for the last responses, the leases of accounts and the bus. */
const closeMs = 4_000;

/** How long requests that wait for a turn may continue after the drain has started. */
const graceMs = (drainMs: number) => drainMs - Math.min(closeMs, drainMs / 2);
/** How long connections may continue: until half of the time that is left after the grace. */
const cutMs = (drainMs: number) => (graceMs(drainMs) + drainMs) / 2;

/** Starts a replica, which is ready when the promise resolves. Throws ConfigError. */
export async function start(config: GatewayConfig, overrides: GatewayOverrides = {}): Promise<RunningService> {
  const secrets = new ChannelSecrets(config.channelSecrets, config.secretsDir);
  const channelSecrets = secrets.all();
  const toObserve = createObservers(config.settings.observers, channelSecrets);
  const disabled = [...disabledWebhooks(config.settings, channelSecrets), ...toObserve.disabled];
  const accountLog = new AccountLog();
  const { bus, log, metrics } = await openChassis(config, {
    // The list grows with secrets that are read from files.
    secrets: secrets.values,
    onLine: (line) => accountLog.add(line),
    context: overrides.context,
  });
  const events = createEvents({ metrics, log });
  const live = new EventHub(bus);
  const sessions = new SessionDirectory(bus);
  const streams = new SessionStreams({ bus, live });
  const states = new AccountStates(log);
  const { settings, originOf } = config;
  const checkSettings = () => [...config.checkSettings(), ...disabled.map(({ name, reason }) => `${name}: ${reason}`)];
  const directory = new AccountDirectory({ bus, log, settings, secrets, states });
  const inbound = new InboundHandler({
    bus,
    log,
    live,
    sessions,
    events,
    settings,
    channels: directory,
    originOf,
    checkSettings,
  });
  const waiters = new OpenRequests();
  const watchers = new OpenRequests();
  const owner = { replica: config.replica, incarnation: config.incarnation };
  for (const id of Object.keys(config.settings.webhooks)) states.set(`hook:${id}`, { state: "listening" });
  for (const { name, reason } of disabled) states.set(name, { state: "disabled", reason });
  metrics.collect("parley_channel_states", () => {
    metrics.forget("parley_channel_states");
    for (const { accounts: number, ...labels } of states.counts()) metrics.set("parley_channel_states", labels, number);
  });
  const leases = new LeasePool({ bus, log, events, owner: `${owner.replica}/${owner.incarnation}` });
  const accounts = new Accounts({
    bus,
    log,
    events,
    inbound,
    owner,
    states,
    leases,
    maxFileBytes: settings.attachments.max_bytes,
    showsAnswers: settings.output.mode !== "message_tool",
  });
  await directory.start(accounts, overrides.accounts);
  const state = { draining: false };
  const ready = () => bus.connected && !state.draining;

  const listener = await listenHttp({
    bus,
    log,
    http: config.http,
    settings,
    channelSecrets,
    inbound,
    live,
    sessions,
    streams,
    waiters,
    watchers,
    events,
    accounts,
    directory,
  }).catch(async (error: unknown) => {
    live.close();
    await bus.drain();
    throw error;
  });
  accounts.open();
  openObservers({ bus, metrics, states, leases }, toObserve.observers);
  leases.open();
  directory.open();
  const names = new Set([...channelEntries.map(({ name }) => name), ...directory.list().map(({ channel }) => channel)]);
  const isChannel = (channel: string) => names.has(channel);
  bus.serve(accountReports, async () => ({ accounts: states.reports(isChannel) }));
  const notices = new OutageNotices({ bus, log, states }, isChannel, overrides.outageTimes);
  bus.serve(accountLogs, async (of) => ({ lines: accountLog.of(of) }));
  serveHealthReport(bus, config, () => ({
    role: "active",
    epoch: null,
    ready: ready(),
    details: {
      httpPort: listener.port,
      leases: accounts.leasesHeld.join(", "),
      webSocketClients: listener.webSockets,
      watchedSessions: live.watched,
      eventStreams: watchers.count,
      waitingRequests: waiters.count,
      ...states.details(),
    },
  }));
  await bus.verifyPermissions();

  return {
    httpPort: listener.port,
    unready: () => bus.problem,
    metrics,
    log,
    ended: bus.closed,
    async close() {
      state.draining = true;
      notices.close();
      const closedHttp = listener.close(cutMs(config.drainMs));
      watchers.end(new Error("this replica is shutting down"));
      const grace = setTimeout(
        () =>
          waiters.end(
            unavailable(
              "this replica is shutting down; the message is stored and will be answered: repeat the request",
            ),
          ),
        graceMs(config.drainMs),
      );
      await directory.close();
      await Promise.all([closedHttp, accounts.close().then(() => leases.close())]);
      clearTimeout(grace);
      live.close();
      await bus.drain();
    },
  };
}
