// The channel accounts of this replica: each adapter with its access policy, its lease if it needs one, and its delivery.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { errorMessage, WireError, type PeoplePolicy } from "@parley/contracts";
import type { AccountState, AccountStates } from "../delivery/account-states.ts";
import { AccountRejectedError, type ChannelAdapter, type ChannelHost } from "../channels/channel.ts";
import type { GatewayEvents } from "../events.ts";
import type { AccessPolicy } from "../ingress/authorize.ts";
import type { InboundHandler } from "../ingress/inbound.ts";
import { Lease } from "../delivery/leases.ts";
import { Outbound } from "../delivery/outbound.ts";
import { Typing } from "../delivery/typing.ts";

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
}

export interface HostedAdapter {
  adapter: ChannelAdapter;
  host: ChannelHost;
}

export class Accounts {
  readonly hosted: readonly HostedAdapter[];
  readonly #deps: AccountDeps;
  readonly #leases = new Map<ChannelAdapter, Lease>();
  readonly #outbound: Outbound[] = [];
  readonly #typing: Typing[] = [];

  constructor(deps: AccountDeps, accounts: readonly ChannelAccount[]) {
    this.#deps = deps;
    for (const { adapter } of accounts) {
      deps.states.set(nameOf(adapter), { state: adapter.connect === undefined ? "listening" : "standby" });
    }
    this.hosted = accounts.map((account) => ({ adapter: account.adapter, host: this.#hostOf(account) }));
  }

  /** The names of the leases that this replica holds. */
  get leasesHeld(): string[] {
    return [...this.#leases.values()].filter((lease) => lease.held !== null).map((lease) => lease.name);
  }

  /** Starts connecting and sending. */
  open(): void {
    const { bus, log, events, owner } = this.#deps;
    for (const { adapter, host } of this.hosted) {
      const outbound = new Outbound({ bus, log, events, owner }, adapter, {
        held: () => this.#leases.get(adapter)?.held ?? null,
        fenced: (lease) => this.#leases.get(adapter)?.fenced(lease),
      });
      this.#outbound.push(outbound);
      if (adapter.connect === undefined) continue;
      const lease = new Lease(
        {
          bus,
          log,
          events,
          owner: `${owner.replica}/${owner.incarnation}`,
          heldCount: () => this.leasesHeld.length,
          failed: (error) => this.#deps.states.set(nameOf(adapter), failureOf(error)),
          released: () => this.#deps.states.set(nameOf(adapter), { state: "standby" }),
        },
        adapter,
        async (held) => adapter.connect?.(host, held),
        () => outbound.wake(),
      );
      this.#leases.set(adapter, lease);
    }
  }

  /** Finishes the sends in flight, then closes the connections and releases their leases. */
  async close(): Promise<void> {
    for (const typing of this.#typing) typing.close();
    await Promise.all(this.#outbound.map((each) => each.close()));
    await Promise.all([...this.#leases.values()].map((each) => each.close()));
  }

  #hostOf({ adapter, people }: ChannelAccount): ChannelHost {
    const { inbound, log } = this.#deps;
    const { channel, account } = adapter;
    const policy: AccessPolicy = { channel, account, people };
    if (adapter.capabilities.typing) {
      policy.typing = new Typing(adapter);
      this.#typing.push(policy.typing);
    }
    return {
      accept: async (draft, position) => {
        try {
          const result = await inbound.accept(policy, draft, position);
          if (position !== undefined && result !== "ignored") {
            this.#leases.get(adapter)?.advance(position.lease, position.cursor);
          }
          return result;
        } catch (error) {
          if (position !== undefined && WireError.is(error, "FENCED")) {
            this.#leases.get(adapter)?.fenced(position.lease);
          }
          throw error;
        }
      },
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
