// Tells the owner, on another channel, that an account cannot work for a while, and that it works again. The store tells them once,
// however many gateways report it.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { store } from "@parley/contracts";
import type { AccountState, AccountStates } from "./account-states.ts";

export interface OutageTimes {
  checkEveryMs: number;
  /** How long an account is down before the owner is told, by its state. */
  downForMs: { disabled: number; failing: number };
}

/** Refused credentials do not heal by themselves; a broken connection may. */
const usualTimes: OutageTimes = { checkEveryMs: 15_000, downForMs: { disabled: 60_000, failing: 180_000 } };
const expiresInMs = 24 * 3_600_000;
const maxReasonChars = 500;

interface Outage {
  sinceMs: number;
  told: boolean;
}

export class OutageNotices {
  readonly #bus: Bus;
  readonly #log: Logger;
  readonly #states: AccountStates;
  readonly #isChannel: (channel: string) => boolean;
  readonly #times: OutageTimes;
  readonly #timer: NodeJS.Timeout;
  readonly #down = new Map<string, Outage>();
  /** Accounts that this process has reported as working since they were down. */
  readonly #up = new Set<string>();

  constructor(
    { bus, log, states }: { bus: Bus; log: Logger; states: AccountStates },
    isChannel: (channel: string) => boolean,
    times = usualTimes,
  ) {
    this.#bus = bus;
    this.#log = log;
    this.#states = states;
    this.#isChannel = isChannel;
    this.#times = times;
    this.#timer = setInterval(() => void this.#check(performance.now()), times.checkEveryMs).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Reports what has changed, without a request when nothing has. */
  async #check(nowMs: number): Promise<void> {
    const connected: Account[] = [];
    try {
      for (const { channel, account, state, reason } of this.#states.reports(this.#isChannel)) {
        if (isDown(state)) await this.#reportDown({ channel, account, state, reason: reason ?? state }, nowMs);
        else this.#down.delete(nameOf({ channel, account }));
        if (state === "connected") connected.push({ channel, account });
        else this.#up.delete(nameOf({ channel, account }));
      }
      await this.#reportUp(connected);
    } catch (error) {
      // The next check repeats it.
      this.#log.debug({ err: error }, "outages not reported");
    }
  }

  async #reportDown(of: Account & { state: DownState; reason: string }, nowMs: number): Promise<void> {
    const { channel, account, state, reason } = of;
    const name = nameOf(of);
    const outage = this.#down.get(name) ?? { sinceMs: nowMs, told: false };
    this.#down.set(name, outage);
    if (outage.told || nowMs - outage.sinceMs < this.#times.downForMs[state]) return;
    const text = `The account ${name} cannot receive or send messages: ${reason.slice(0, maxReasonChars).toWellFormed()}. See: npx parley channels test ${name}`;
    const { told } = await this.#bus.request(store.accountOutage, {
      channel,
      account,
      isDown: true,
      text,
      expiresInMs,
    });
    outage.told = told;
  }

  /** Another process may have reported an account as down that this one has connected: asked once for each connection. */
  async #reportUp(connected: readonly Account[]): Promise<void> {
    const isKnown = (account: Account) => this.#up.has(nameOf(account));
    if (connected.every(isKnown)) return;
    const { accounts: reported } = await this.#bus.request(store.accountOutages, {});
    const wasDown = new Set(reported.map(nameOf));
    for (const account of connected) {
      const name = nameOf(account);
      const text = `The account ${name} works again.`;
      if (wasDown.has(name))
        await this.#bus.request(store.accountOutage, { ...account, isDown: false, text, expiresInMs });
      this.#up.add(name);
    }
  }
}

interface Account {
  channel: string;
  account: string;
}

function nameOf({ channel, account }: Account): string {
  return `${channel}:${account}`;
}

type DownState = keyof OutageTimes["downForMs"];

function isDown(state: AccountState["state"]): state is DownState {
  return state === "disabled" || state === "failing";
}
