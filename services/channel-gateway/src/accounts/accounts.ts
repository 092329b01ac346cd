// The channel accounts of this replica: each adapter with its access policy, its lease if it needs one, and its delivery.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { errorMessage, slashCommands, store, WireError, type PeoplePolicy } from "@parley/contracts";
import type { AccountState, AccountStates } from "../delivery/account-states.ts";
import {
  AccountRejectedError,
  type ChannelAdapter,
  type ChannelHost,
  type LeaseRef,
  type Position,
} from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import { FileFetcher } from "../ingress/file-fetcher.ts";
import type { AccessPolicy } from "../ingress/authorize.ts";
import type { InboundHandler } from "../ingress/inbound.ts";
import { keepListening } from "./listening.ts";
import type { LeasePool } from "../delivery/lease-pool.ts";
import type { Lease } from "../delivery/leases.ts";
import { Outbound } from "../delivery/outbound.ts";
import { Previews } from "../delivery/previews.ts";
import { TurnIndicators } from "../delivery/turn-indicators.ts";

/** An adapter and its access policy. */
export interface ChannelAccount {
  adapter: ChannelAdapter;
  people: PeoplePolicy;
}

export interface AccountDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  inbound: InboundHandler;
  owner: { replica: string; incarnation: string };
  states: AccountStates;
  leases: LeasePool;
  /** The largest file that is fetched. */
  maxFileBytes: number;
  /** People are sent what the model writes, and not only what it sends with the tool `message`. */
  showsAnswers: boolean;
}

/** How long the cursor of ignored input waits for further input. */
const checkpointDelayMs = 1_000;

export interface HostedAdapter {
  adapter: ChannelAdapter;
  host: ChannelHost;
}

export class Accounts {
  readonly hosted: readonly HostedAdapter[];
  readonly #deps: AccountDeps;
  readonly #leases = new Map<ChannelAdapter, Lease[]>();
  readonly #outbound = new Map<ChannelAdapter, Outbound>();
  readonly #previews = new Map<ChannelAdapter, Previews>();
  readonly #indicators: TurnIndicators[] = [];
  readonly #listening: Promise<void>[] = [];
  readonly #stop = new AbortController();
  readonly #files: FileFetcher;

  constructor(deps: AccountDeps, accounts: readonly ChannelAccount[]) {
    this.#deps = deps;
    const { bus, log, maxFileBytes } = deps;
    this.#files = new FileFetcher(
      { bus, log, maxBytes: maxFileBytes },
      accounts.map(({ adapter }) => adapter),
    );
    for (const { adapter } of accounts) {
      deps.states.set(nameOf(adapter), { state: adapter.connect === undefined ? "listening" : "standby" });
    }
    this.hosted = accounts.map((account) => ({ adapter: account.adapter, host: this.#hostOf(account) }));
  }

  /** The names of the leases that this replica holds. */
  get leasesHeld(): string[] {
    return [...this.#leases.values()].flat().flatMap(({ held }) => (held === null ? [] : [held.name]));
  }

  /** Starts connecting and sending. */
  open(): void {
    const { bus, log, events, owner } = this.#deps;
    this.#files.open();
    for (const { adapter, host } of this.hosted) {
      const lease = {
        held: () => this.#sendingLease(adapter),
        fenced: (lost: LeaseRef) => this.#fenced(adapter, lost),
      };
      const outbound = new Outbound({ bus, log, events, owner }, adapter, lease, this.#previews.get(adapter));
      this.#outbound.set(adapter, outbound);
      if (adapter.listen !== undefined) {
        const failed = (error: unknown) => this.#deps.states.set(nameOf(adapter), failureOf(error));
        this.#listening.push(keepListening(adapter, host, this.#stop.signal, failed));
      }
      if (adapter.connect === undefined) continue;
      const name = nameOf(adapter);
      const slots = adapter.slots ?? 1;
      const added = Array.from({ length: slots }, (_, slot) =>
        this.#deps.leases.add({
          name: slots === 1 ? name : `${name}#${slot}`,
          slot,
          connect: async (held) => adapter.connect?.(host, held),
          onHeld: () => outbound.wake(),
          failed: (error) => this.#deps.states.set(name, failureOf(error)),
          released: () => {
            if (this.#heldBy(adapter) === null) this.#deps.states.set(name, { state: "standby" });
          },
        }),
      );
      this.#leases.set(adapter, added);
    }
  }

  /** A lease of the account that this replica holds. */
  #heldBy(adapter: ChannelAdapter): LeaseRef | null {
    return this.#leases.get(adapter)?.find((lease) => lease.held !== null)?.held ?? null;
  }

  #fenced(adapter: ChannelAdapter, held: LeaseRef): void {
    for (const lease of this.#leases.get(adapter) ?? []) lease.fenced(held);
  }

  /** Finishes the sends in flight; the connections are closed by the pool of leases. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("draining"));
    for (const each of this.#indicators) each.close();
    await Promise.all(this.#listening);
    await Promise.all([...this.#previews.values()].map((each) => each.close()));
    await Promise.all([...this.#outbound.values()].map((each) => each.close()));
    await this.#files.close();
  }

  /** The lease that sends need; null while it is not held, undefined when they need none. */
  #sendingLease(adapter: ChannelAdapter): LeaseRef | null | undefined {
    if (!adapter.ownedConnection || adapter.sendsWithoutConnection === true) return undefined;
    return this.#heldBy(adapter);
  }

  /** What a conversation shows while a turn runs; undefined: nothing. */
  #indicatorsOf(adapter: ChannelAdapter, { preview, acknowledge = false }: PeoplePolicy): TurnIndicators | undefined {
    const { bus, log, owner, showsAnswers } = this.#deps;
    if (adapter.capabilities.preview !== undefined && preview !== false && showsAnswers) {
      const lease = () => this.#sendingLease(adapter);
      const wake = () => this.#outbound.get(adapter)?.wake();
      this.#previews.set(adapter, new Previews({ bus, log, owner, adapter, lease, wake }));
    }
    if (!adapter.capabilities.typing && !acknowledge && !this.#previews.has(adapter)) return undefined;
    const indicators = new TurnIndicators(adapter, { previews: this.#previews.get(adapter), acknowledge });
    this.#indicators.push(indicators);
    return indicators;
  }

  #hostOf({ adapter, people }: ChannelAccount): ChannelHost {
    const { bus, inbound, log } = this.#deps;
    const { channel, account } = adapter;
    const { commandPrefix } = adapter.capabilities;
    const policy: AccessPolicy = {
      channel,
      account,
      people,
      commandPrefix,
      fetchFiles: (inboxId, files) => this.#files.start({ channel, account, inboxId, files }),
      indicators: this.#indicatorsOf(adapter, people),
    };
    const advance = ({ lease, cursor }: Position) => {
      for (const each of this.#leases.get(adapter) ?? []) each.advance(lease, cursor);
    };
    const fenced = async <T>(work: Promise<T>, position: Position | undefined): Promise<T> => {
      try {
        return await work;
      } catch (error) {
        if (position !== undefined && WireError.is(error, "FENCED")) this.#fenced(adapter, position.lease);
        throw error;
      }
    };
    const checkpoint = async (position: Position): Promise<void> => {
      const { lease, cursor } = position;
      await fenced(bus.request(store.leaseCheckpoint, { name: lease.name, fence: lease.fence, cursor }), position);
      advance(position);
    };
    const later = new Map<string, NodeJS.Timeout>();
    // A busy group has many messages that are not for the agent: their cursor is saved once for all of them.
    const saveLater = (position: Position): void => {
      saved(position);
      const timer = setTimeout(() => void checkpoint(position).catch(() => undefined), checkpointDelayMs);
      later.set(position.lease.name, timer.unref());
    };
    const saved = ({ lease }: Position): void => clearTimeout(later.get(lease.name));
    return {
      accept: async (draft, position) => {
        const result = await fenced(inbound.accept(policy, draft, position), position);
        if (position === undefined) return result;
        if (result === "ignored") {
          saveLater(position);
          return result;
        }
        saved(position);
        // A message saves the cursor in its own commit.
        if (result === "executed") await checkpoint(position);
        else advance(position);
        return result;
      },
      act: async (action, position) => {
        const result = await fenced(inbound.act(policy, action, position), position);
        if (position === undefined) return result;
        saved(position);
        await checkpoint(position);
        return result;
      },
      change: async (change, position) => {
        const result = await fenced(inbound.change(policy, change, position), position);
        if (position === undefined) return;
        if (result === "ignored") saveLater(position);
        else advance(position);
      },
      commands: slashCommands,
      checkpoint,
      report: (state) => this.#deps.states.set(nameOf(adapter), state),
      log: log.child({ channel, account }),
      fetch: globalThis.fetch,
    };
  }
}

function nameOf({ channel, account }: ChannelAdapter): string {
  return `${channel}:${account}`;
}

/** The account state after a failed connection. */
function failureOf(error: unknown): AccountState {
  const reason = errorMessage(error);
  return error instanceof AccountRejectedError
    ? { state: "disabled", reason: `${reason}; retried every 5 minutes` }
    : { state: "failing", reason };
}
