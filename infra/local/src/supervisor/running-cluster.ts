// The started parts of a cluster: their state file in the home, and the order of the shutdown.

import { join } from "node:path";

import type { ServiceName } from "@parley/contracts";

import { LocalError } from "../errors.ts";
import { type ClusterState, type Home, readAnyState, removeState, stateFile, writeState } from "../home.ts";
import type { FileLock } from "../lock.ts";
import { endProcess } from "../processes.ts";
import type { LogSink } from "../servers/process.ts";
import type { Backing } from "./backing.ts";
import { WriteTrouble } from "./log-file.ts";
import { Replica, type ReplicaHandle, type ReplicaOptions } from "./replica.ts";

const stopOrder: readonly ServiceName[] = ["channel-gateway", "agent-core", "tool-runner", "store"];
/** A little longer than a service's own drain timeout. */
const drainMs = 25_000;
/** The delay before another attempt to write state.json. */
const saveRetryMs = 1_000;
const fastServerStopMs = 2_000;

export class Started {
  readonly replicas: ReplicaHandle[] = [];
  backing: Backing | null = null;
  /** The content of state.json without the replicas; once it is set, every change is written. */
  about: Omit<ClusterState, "replicas"> | null = null;
  readonly #home: Home;
  readonly #lock: FileLock;
  readonly #say: LogSink;
  /** For all writes that may fail without harm. */
  readonly trouble: WriteTrouble;
  #stopping = false;
  #retry: NodeJS.Timeout | undefined;

  /** `warn` receives warnings that must always be shown, `say` receives progress. */
  constructor(home: Home, lock: FileLock, say: LogSink, warn: LogSink) {
    this.trouble = new WriteTrouble(home.path, warn);
    this.#home = home;
    this.#lock = lock;
    this.#say = say;
  }

  /** Starts another replica: with `start`, or as a process if `start` is missing or returns undefined; its `firstReady` settles with the outcome. */
  add(
    options: Omit<ReplicaOptions, "onChange" | "onUnexpectedExit" | "onWaiting" | "trouble">,
    start?: (options: ReplicaOptions) => ReplicaHandle | undefined,
  ): void {
    const onUnexpectedExit = (replica: string, how: string, delayMs: number): void => {
      this.#say(`${replica} exited (${how}); restarting${delayMs === 0 ? "" : ` in ${delayMs} ms`}`);
    };
    const onWaiting = (replica: string, subject: string, reason: string): void => {
      this.#say(`${replica} waits for ${subject}: ${reason}`);
    };
    const { trouble } = this;
    const all = { ...options, trouble, onChange: () => this.#save(), onUnexpectedExit, onWaiting };
    this.replicas.push(start?.(all) ?? new Replica(all));
    this.#save();
  }

  replica(service: ServiceName, number: number): ReplicaHandle {
    const found = this.replicas.find((replica) => replica.service === service && replica.number === number);
    if (found === undefined) throw new LocalError("bad_option", `There is no replica ${service}-${number}.`);
    return found;
  }

  /** Drains and stops one replica for good. */
  async remove(replica: ReplicaHandle): Promise<void> {
    await replica.stop(drainMs);
    this.replicas.splice(this.replicas.indexOf(replica), 1);
    this.#save();
  }

  /** Drains and stops everything in order. Safe to call twice; `stopNow` may interrupt it. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const service of stopOrder) {
      const group = this.replicas.filter((replica) => replica.service === service);
      if (group.some((replica) => replica.state().process !== null)) this.#say(`stopping ${service}`);
      await Promise.all(group.map((replica) => replica.stop(drainMs)));
    }
    if (this.backing !== null) this.#say("stopping the servers");
    await this.#end();
  }

  /** Kills everything without a drain. */
  async stopNow(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.replicas.map((replica) => replica.stop(0)));
    await this.#end(fastServerStopMs);
  }

  async #end(graceMs?: number): Promise<void> {
    await this.backing?.stop(graceMs);
    if (this.about !== null) removeState(this.#home);
    this.about = null;
    this.#lock.release();
  }

  #save(): void {
    clearTimeout(this.#retry);
    if (this.#stopping || this.about === null) return;
    const path = join(this.#home.path, stateFile);
    try {
      writeState(this.#home, { ...this.about, replicas: this.replicas.map((replica) => replica.state()) });
      this.trouble.succeeded(path);
    } catch (error) {
      this.trouble.failed(path, error);
      this.#retry = setTimeout(() => this.#save(), saveRetryMs).unref();
    }
  }
}

/** Kills the services of a killed supervisor: they hold the gateway's port, and their servers have ended. */
export async function endLeftOvers(home: Home): Promise<void> {
  const left = readAnyState(home.path)?.replicas ?? [];
  const processes = left.map((replica) => replica.process).filter((process) => process !== null);
  await Promise.all(processes.map((process) => endProcess(process, "SIGKILL", 1_000)));
}
