// All accounts of channels on this replica: those of parley.toml, and those that the store lists as added. It starts and stops them as the
// list changes, and answers what operations ask about them.
import { setTimeout as delay } from "node:timers/promises";
import type { Bus, Served } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { accountChanged, errorMessage, store, type ParleySettings, type PeoplePolicy } from "@parley/contracts";
import { omitUndefined } from "@parley/kit";
import type { ChannelAdapter } from "../channels/channel.ts";
import type { AccountStates } from "../delivery/account-states.ts";
import { OperationError, type AccountRef, type ChannelDirectory, type NewAccount } from "../operations/operation.ts";
import { ServiceUnavailableError } from "../operations/session-service.ts";
import type { Accounts } from "./accounts.ts";
import { createAdapter } from "./adapters.ts";
import type { ChannelAccount } from "./hosted-account.ts";
import { accountChanges, fileAccounts, mergeAccounts, type AccountSpec } from "./merge.ts";
import { prepareAccount, ownSecretsOf, secretVariablesOf } from "./new-account.ts";
import type { ChannelSecrets } from "./secrets.ts";

export interface DirectoryDeps {
  bus: Bus;
  log: Logger;
  settings: ParleySettings;
  secrets: ChannelSecrets;
  states: AccountStates;
}

/** How often the list is read without a hint. */
const refreshEveryMs = 5_000;

interface Entry {
  spec: AccountSpec;
  people: PeoplePolicy | null;
  adapter: ChannelAdapter | null;
  /** Why there is no adapter. */
  problem: string | null;
}

export class AccountDirectory implements ChannelDirectory {
  readonly #deps: DirectoryDeps;
  #file: readonly AccountSpec[];
  readonly #entries = new Map<string, Entry>();
  readonly #stop = new AbortController();
  #accounts: Accounts | undefined;
  #hint: Served | undefined;
  #running: Promise<void> = Promise.resolve();
  #changes: Promise<void> = Promise.resolve();
  /** The accounts that the store listed last; undefined: it has not answered yet. */
  #added: readonly store.AddedAccount[] | undefined;

  constructor(deps: DirectoryDeps) {
    this.#deps = deps;
    this.#file = fileAccounts(deps.settings);
  }

  /** Starts the accounts of parley.toml, or `replacement` instead. */
  async start(accounts: Accounts, replacement?: readonly ChannelAccount[]): Promise<void> {
    this.#accounts = accounts;
    if (replacement === undefined) return this.#apply(this.#file);
    this.#file = replacement.map(({ adapter: { channel, account }, people }) => ({
      name: `${channel}:${account}`,
      channel,
      account,
      origin: "file",
      revision: "file",
      settings: people,
    }));
    for (const [index, { adapter, people }] of replacement.entries()) {
      const spec = this.#file[index];
      if (spec !== undefined) this.#entries.set(spec.name, { spec, people, adapter, problem: null });
      accounts.add({ adapter, people });
    }
  }

  /** Starts to follow the accounts that are added, changed and removed. */
  open(): void {
    this.#hint = this.#deps.bus.subscribe(accountChanged, {}, () => void this.#refresh().catch(() => undefined));
    this.#running = this.#follow();
  }

  /** Stops following; the accounts stay open. */
  async close(): Promise<void> {
    this.#hint?.close();
    this.#stop.abort(new Error("draining"));
    await this.#running;
    await this.#changes.catch(() => undefined);
  }

  list(): { channel: string; account: string; origin: "file" | "added" }[] {
    return [...this.#entries.values()].map(({ spec: { channel, account, origin } }) => ({ channel, account, origin }));
  }

  peopleOf(ref: AccountRef): PeoplePolicy | null {
    return this.#find(ref)?.people ?? null;
  }

  require(ref: AccountRef): void {
    const entry = this.#find(ref);
    const name = `${ref.channel}:${ref.account}`;
    if (entry === undefined) {
      if (this.#added === undefined && this.#hint !== undefined)
        throw new ServiceUnavailableError("the accounts have not been read from the store yet; try again in a moment");
      throw new OperationError(
        "no_such_account",
        `account ${name} is not configured; add it with \`npx parley channels add\`, or as [channels.${ref.channel}.${ref.account}] in parley.toml`,
      );
    }
    if (entry.problem !== null)
      throw new OperationError("account_disabled", `the account ${name} is disabled: ${entry.problem}`);
  }

  /** Why an account has no adapter: it is not configured, or disabled; null: it has one, or the list has not been read yet. */
  absence(ref: AccountRef): "unknown" | "disabled" | "not_read" | null {
    const entry = this.#find(ref);
    if (entry !== undefined) return entry.adapter === null ? "disabled" : null;
    return this.#added === undefined ? "not_read" : "unknown";
  }

  hasConnection(ref: AccountRef): boolean {
    return this.#find(ref)?.adapter?.connect !== undefined;
  }

  async check(ref: AccountRef, signal: AbortSignal): Promise<{ as: string } | null> {
    return (await this.#find(ref)?.adapter?.check?.(signal)) ?? null;
  }

  async add(input: NewAccount, by: string): Promise<{ as: string | null; replaced: boolean }> {
    const { channel, account } = input;
    const before = this.#find(input)?.spec;
    if (before?.origin === "file") throw inFile(before);
    const { settings, as, toStore } = await prepareAccount(this.#deps, input);
    for (const [variable, value] of toStore) await this.#deps.secrets.write(variable, value);
    await this.#deps.bus.request(store.accountPut, { channel, account, settings, identity: as, by });
    this.#deps.log.info({ channel, account, by }, "account added");
    await this.#refresh();
    return { as, replaced: before !== undefined };
  }

  async remove(ref: AccountRef, by: string): Promise<void> {
    const { channel, account } = ref;
    const before = this.#find(ref)?.spec;
    if (before?.origin === "file") throw inFile(before);
    if (before === undefined) return this.require(ref);
    await this.#deps.bus.request(store.accountRemove, { channel, account });
    this.#deps.log.info({ channel, account, by }, "account removed");
    await this.#refresh();
    const used = new Set([...this.#entries.values()].flatMap(({ spec }) => ownSecretsOf(spec)));
    for (const variable of ownSecretsOf(before)) {
      if (!used.has(variable)) await this.#deps.secrets.remove(variable);
    }
  }

  #find({ channel, account }: AccountRef): Entry | undefined {
    return this.#entries.get(`${channel}:${account}`);
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      // While the store is unavailable the accounts stay as they are.
      await this.#refresh().catch(() => undefined);
      await delay(refreshEveryMs, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Reads the list after every change that was stored before the call. Rejects while the store is unavailable. */
  #refresh(): Promise<void> {
    const read = async (): Promise<void> => {
      const { signal } = this.#stop;
      const { accounts } = await this.#deps.bus.request(store.accountList, {}, { signal });
      if (signal.aborted) return;
      this.#added = accounts;
      await this.#apply(mergeAccounts(this.#file, accounts));
    };
    const next = this.#changes.then(read, read);
    this.#changes = next;
    return next;
  }

  async #apply(listed: readonly AccountSpec[]): Promise<void> {
    const current = [...this.#entries.values()].map(({ spec }) => spec);
    const wanted = await Promise.all(listed.map((spec) => this.#withSecretsVersion(spec)));
    const { remove, add } = accountChanges(current, wanted);
    for (const { name, channel, account, revision } of add) {
      if (current.some((before) => before.name === name && before.revision === revision))
        this.#deps.log.info({ channel, account }, "account secrets changed: reconnecting");
    }
    await Promise.all(remove.map((name) => this.#drop(name)));
    await Promise.all(add.map((spec) => this.#create(spec)));
  }

  async #withSecretsVersion(spec: AccountSpec): Promise<AccountSpec> {
    const secretsVersion = await this.#deps.secrets.versionOf(secretVariablesOf(spec));
    return { ...spec, ...omitUndefined({ secretsVersion }) };
  }

  async #drop(name: string): Promise<void> {
    this.#entries.delete(name);
    await this.#accounts?.remove(name);
    this.#deps.states.forget(name);
  }

  /** An account that fails is disabled with its reason and does not affect the others. */
  async #create(spec: AccountSpec): Promise<void> {
    const { name, channel, account, settings } = spec;
    try {
      if ("problem" in settings) throw new Error(`[channels.${channel}.${account}] ${settings.problem}`);
      const adapter = await createAdapter(spec, settings, (variable) => this.#deps.secrets.read(variable));
      this.#entries.set(name, { spec, people: settings, adapter, problem: null });
      this.#accounts?.add({ adapter, people: settings });
    } catch (error) {
      const reason = errorMessage(error);
      this.#entries.set(name, { spec, people: null, adapter: null, problem: reason });
      this.#deps.states.set(name, { state: "disabled", reason });
    }
  }
}

function inFile({ name, channel, account }: AccountSpec): OperationError {
  return new OperationError(
    "conflict",
    `the account ${name} is in parley.toml: change [channels.${channel}.${account}] there and restart`,
  );
}
