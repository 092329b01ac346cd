// The channel accounts of this replica. Accounts are added and removed while it runs.
import { FileFetcher } from "../ingress/file-fetcher.ts";
import { OutboxPoll } from "../delivery/outbox-poll.ts";
import { HostedAccount, type ChannelAccount, type HostedAccountDeps } from "./hosted-account.ts";

export interface AccountDeps extends Omit<HostedAccountDeps, "files" | "outboxPoll" | "unsettled"> {
  /** The largest file that is fetched. */
  maxFileBytes: number;
}

export class Accounts {
  readonly #deps: HostedAccountDeps;
  readonly #files: FileFetcher;
  readonly #outboxPoll: OutboxPoll;
  readonly #hosted = new Map<string, HostedAccount>();
  #state: "new" | "open" | "closed" = "new";

  constructor({ maxFileBytes, ...deps }: AccountDeps) {
    this.#files = new FileFetcher({ bus: deps.bus, log: deps.log, maxBytes: maxFileBytes });
    this.#outboxPoll = new OutboxPoll(deps.bus);
    this.#deps = { ...deps, files: this.#files, outboxPoll: this.#outboxPoll, unsettled: new Map() };
  }

  /** The names of the leases that this replica holds. */
  get leasesHeld(): string[] {
    return [...this.#hosted.values()].flatMap((each) => each.leasesHeld);
  }

  /** The account `channel:account`; undefined: this replica has no adapter for it. */
  find(name: string): HostedAccount | undefined {
    return this.#hosted.get(name);
  }

  /** Adds an account, which starts to connect and send as soon as the accounts are open. */
  add(account: ChannelAccount): void {
    if (this.#state === "closed") return;
    const hosted = new HostedAccount(this.#deps, account);
    this.#hosted.set(hosted.name, hosted);
    this.#deps.events.opened(account.adapter.channel);
    if (this.#state === "open") hosted.open();
  }

  /** Removes the account `channel:account`: its sends in flight finish, its connection closes and its lease is released. */
  async remove(name: string): Promise<void> {
    const hosted = this.#hosted.get(name);
    this.#hosted.delete(name);
    await hosted?.remove();
  }

  /** Starts connecting and sending. */
  open(): void {
    this.#state = "open";
    this.#files.open();
    this.#outboxPoll.open();
    for (const hosted of this.#hosted.values()) hosted.open();
  }

  /** Finishes the sends in flight; the connections are closed by the pool of leases. */
  async close(): Promise<void> {
    this.#state = "closed";
    await this.#outboxPoll.close();
    await Promise.all([...this.#hosted.values()].map((hosted) => hosted.close()));
    await this.#files.close();
  }
}
