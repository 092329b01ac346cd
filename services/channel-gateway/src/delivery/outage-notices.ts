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
    const reports = this.#states.reports(this.#isChannel);
    for (const { channel, account, state, reason } of reports) {
      const name = `${channel}:${account}`;
      try {
        if (isDown(state)) await this.#reportDown({ channel, account, state, reason: reason ?? state }, nowMs);
        else if (state === "connected") await this.#reportUp({ channel, account });
        else this.#down.delete(name);
      } catch (error) {
        // The next check repeats it.
        this.#log.debug({ err: error, account: name }, "outage not reported");
      }
    }
  }

  async #reportDown(
    of: { channel: string; account: string; state: DownState; reason: string },
    nowMs: number,
  ): Promise<void> {
    const { channel, account, state, reason } = of;
    const name = `${channel}:${account}`;
    this.#up.delete(name);
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

  /** Once per process and connection: another process may have reported the account as down. */
  async #reportUp({ channel, account }: { channel: string; account: string }): Promise<void> {
    const name = `${channel}:${account}`;
    this.#down.delete(name);
    if (this.#up.has(name)) return;
    const text = `The account ${name} works again.`;
    await this.#bus.request(store.accountOutage, { channel, account, isDown: false, text, expiresInMs });
    this.#up.add(name);
  }
}

type DownState = keyof OutageTimes["downForMs"];

function isDown(state: AccountState["state"]): state is DownState {
  return state === "disabled" || state === "failing";
}
