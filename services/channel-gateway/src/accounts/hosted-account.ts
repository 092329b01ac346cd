// One channel account of this replica: its adapter with its access policy, its leases if it needs any, and its delivery.
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
  type SendingAdapter,
} from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import type { FileFetcher } from "../ingress/file-fetcher.ts";
import type { AccessPolicy } from "../ingress/authorize.ts";
import type { InboundHandler } from "../ingress/inbound.ts";
import { checkCredentials } from "./credentials.ts";
import { keepListening } from "./listening.ts";
import type { LeasePool } from "../delivery/lease-pool.ts";
import type { Lease } from "../delivery/leases.ts";
import { Outbound, type OutboundDeps } from "../delivery/outbound.ts";
import type { OutboxPoll } from "../delivery/outbox-poll.ts";
import { Previews } from "../delivery/previews.ts";
import { SendPauses } from "../delivery/send-pauses.ts";
import { TurnIndicators } from "../delivery/turn-indicators.ts";

/** An adapter and its access policy. */
export interface ChannelAccount {
  adapter: ChannelAdapter;
  people: PeoplePolicy;
}

export interface HostedAccountDeps {
  bus: Bus;
  log: Logger;
  events: GatewayEvents;
  inbound: InboundHandler;
  owner: { replica: string; incarnation: string };
  /** Of all accounts of this process; see `OutboundDeps`. */
  unsettled: OutboundDeps["unsettled"];
  states: AccountStates;
  leases: LeasePool;
  files: FileFetcher;
  outboxPoll: OutboxPoll;
  /** People are sent what the model writes, and not only what it sends with the tool `message`. */
  showsAnswers: boolean;
}

/** How long the cursor of ignored input waits for further input. */
const checkpointDelayMs = 1_000;

export class HostedAccount {
  readonly name: string;
  readonly adapter: ChannelAdapter;
  readonly host: ChannelHost;
  readonly #deps: HostedAccountDeps;
  readonly #pauses: SendPauses;
  /** The adapter for everything that sends: it keeps the pauses. */
  readonly #sending: SendingAdapter;
  readonly #previews: Previews | undefined;
  readonly #indicators: TurnIndicators | undefined;
  readonly #stop = new AbortController();
  #leases: readonly Lease[] = [];
  #outbound: Outbound | undefined;
  /** The listener or the check of the credentials, if it has one. */
  #running: Promise<void> | undefined;

  constructor(deps: HostedAccountDeps, { adapter, people }: ChannelAccount) {
    this.#deps = deps;
    this.adapter = adapter;
    this.name = `${adapter.channel}:${adapter.account}`;
    this.#pauses = new SendPauses(deps.bus, adapter);
    this.#sending = this.#pauses.guard(adapter);
    this.#previews = this.#previewsOf(people);
    this.#indicators = this.#indicatorsOf(people);
    this.host = this.#hostOf(people);
    deps.states.set(this.name, { state: adapter.connect === undefined ? "listening" : "standby" });
  }

  /** The names of the leases that this replica holds. */
  get leasesHeld(): string[] {
    return this.#leases.flatMap(({ held }) => (held === null ? [] : [held.name]));
  }

  /** Starts connecting and sending. */
  open(): void {
    const { bus, log, events, owner, unsettled, states, leases } = this.#deps;
    const { adapter, host, name } = this;
    this.#deps.files.add(adapter);
    const lease = { held: () => this.#sendingLease(), fenced: (lost: LeaseRef) => this.#fenced(lost) };
    const outbound = new Outbound({ bus, log, events, owner, unsettled }, this.#sending, lease, this.#previews);
    this.#outbound = outbound;
    this.#deps.outboxPoll.add(name, () => outbound.wake());
    const failed = (error: unknown) => states.set(name, failureOf(error));
    const { signal } = this.#stop;
    if (adapter.listen !== undefined) this.#running = keepListening(adapter, host, signal, failed);
    else if (adapter.connect === undefined) this.#running = checkCredentials(adapter, host, signal, failed);
    if (adapter.connect === undefined) return;
    const slots = adapter.slots ?? 1;
    this.#leases = Array.from({ length: slots }, (_, slot) =>
      leases.add({
        name: slots === 1 ? name : `${name}#${slot}`,
        slot,
        connect: async (held) => adapter.connect?.(host, held),
        onHeld: () => outbound.wake(),
        failed,
        released: () => {
          if (this.#held() === null) states.set(name, { state: "standby" });
        },
      }),
    );
  }

  /** Finishes the sends in flight; the connections stay open. */
  async close(): Promise<void> {
    this.#stop.abort(new Error("draining"));
    this.#deps.outboxPoll.remove(this.name);
    this.#indicators?.close();
    await this.#running;
    await this.#previews?.close();
    await this.#outbound?.close();
    this.#pauses.close();
  }

  /** Finishes the sends in flight, closes the connections and releases their leases. */
  async remove(): Promise<void> {
    await this.close();
    await Promise.all(this.#leases.map((lease) => this.#deps.leases.remove(lease)));
    this.#deps.files.remove(this.adapter);
    this.#deps.states.forget(this.name);
  }

  /** A lease of the account that this replica holds. */
  #held(): LeaseRef | null {
    return this.#leases.find((lease) => lease.held !== null)?.held ?? null;
  }

  #fenced(held: LeaseRef): void {
    for (const lease of this.#leases) lease.fenced(held);
  }

  /** The lease that sends need; null while it is not held, undefined when they need none. */
  #sendingLease(): LeaseRef | null | undefined {
    if (!this.adapter.ownedConnection || this.adapter.sendsWithoutConnection === true) return undefined;
    return this.#held();
  }

  #previewsOf({ preview }: PeoplePolicy): Previews | undefined {
    const { bus, log, owner, showsAnswers } = this.#deps;
    const adapter = this.#sending;
    if (adapter.capabilities.preview === undefined || preview === false || !showsAnswers) return undefined;
    const lease = () => this.#sendingLease();
    return new Previews({ bus, log, owner, adapter, lease, wake: () => this.#outbound?.wake() });
  }

  /** What a conversation shows while a turn runs; undefined: nothing. */
  #indicatorsOf({ acknowledge = false }: PeoplePolicy): TurnIndicators | undefined {
    const adapter = this.#sending;
    const previews = this.#previews;
    if (!adapter.capabilities.typing && !acknowledge && previews === undefined) return undefined;
    return new TurnIndicators(adapter, { previews, acknowledge });
  }

  #hostOf(people: PeoplePolicy): ChannelHost {
    const { bus, inbound, log, files, states } = this.#deps;
    const { channel, account, capabilities } = this.adapter;
    const policy: AccessPolicy = {
      channel,
      account,
      people,
      commandPrefix: capabilities.commandPrefix,
      fetchFiles: (inboxId, pending) => files.start({ channel, account, inboxId, files: pending }),
      indicators: this.#indicators,
    };
    const advance = ({ lease, cursor }: Position) => {
      for (const each of this.#leases) each.advance(lease, cursor);
    };
    const fenced = async <T>(work: Promise<T>, position: Position | undefined): Promise<T> => {
      try {
        return await work;
      } catch (error) {
        if (position !== undefined && WireError.is(error, "FENCED")) this.#fenced(position.lease);
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
        if (result === "ignored") {
          saveLater(position);
          return;
        }
        saved(position);
        advance(position);
      },
      pauseMs: (conversation) => this.#pauses.waitMs(conversation),
      commands: slashCommands,
      checkpoint,
      report: (state) => states.set(this.name, state),
      log: log.child({ channel, account }),
    };
  }
}

/** The account state after a failed connection. */
function failureOf(error: unknown): AccountState {
  const reason = errorMessage(error);
  return error instanceof AccountRejectedError
    ? { state: "disabled", reason: `${reason}; retried every 5 minutes` }
    : { state: "failing", reason };
}
