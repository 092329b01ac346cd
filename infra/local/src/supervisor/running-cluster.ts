// The processes of a running cluster: records them in state.json in the data folder, and stops them in order.

import { join } from "node:path";

import type { ServiceName } from "@parley/contracts";

import { LocalError } from "../errors.ts";
import { type ClusterState, type Home, readStateFile, removeState, stateFile, writeState } from "../home.ts";
import type { FileLock } from "../lock.ts";
import { endProcess } from "../processes.ts";
import type { LogSink } from "../servers/process.ts";
import type { BackingServices } from "./backing-services.ts";
import { WriteFailureReporter } from "./log-file.ts";
import { Replica, type ReplicaHandle, type ReplicaOptions } from "./replica.ts";

const stopOrder: readonly ServiceName[] = ["channel-gateway", "agent-core", "tool-runner", "store"];
/** A little longer than a service's own drain timeout. */
const drainMs = 25_000;
/** The delay before another attempt to write state.json. */
const saveRetryMs = 1_000;
const fastServerGraceMs = 2_000;

export class RunningCluster {
  readonly replicas: ReplicaHandle[] = [];
  backing: BackingServices | null = null;
  /** The content of state.json except the replicas. Once it is set, the file is written at every change. */
  stateFields: Omit<ClusterState, "replicas"> | null = null;
  readonly #home: Home;
  readonly #lock: FileLock;
  readonly #print: LogSink;
  /** For writes of files that the cluster can do without: their failures are reported, not thrown. */
  readonly writeFailures: WriteFailureReporter;
  #stopping = false;
  #retry: NodeJS.Timeout | undefined;

  /** `warn` receives warnings that must always be shown, `print` receives progress. */
  constructor(home: Home, lock: FileLock, print: LogSink, warn: LogSink) {
    this.writeFailures = new WriteFailureReporter(home.path, warn);
    this.#home = home;
    this.#lock = lock;
    this.#print = print;
  }

  /**
   * Starts another replica: with `start`, or as a process if `start` is missing or returns undefined. Does not wait: `firstReady` of the
   * replica resolves when it is ready and rejects when its start fails.
   */
  add(
    options: Omit<ReplicaOptions, "onChange" | "onUnexpectedExit" | "onWaiting" | "writeFailures">,
    start?: (options: ReplicaOptions) => ReplicaHandle | undefined,
  ): void {
    const onUnexpectedExit = (replica: string, how: string, delayMs: number): void => {
      this.#print(`${replica} exited (${how}); restarting${delayMs === 0 ? "" : ` in ${delayMs} ms`}`);
    };
    const onWaiting = (replica: string, subject: string, reason: string): void => {
      this.#print(`${replica} waits for ${subject}: ${reason}`);
    };
    const { writeFailures } = this;
    const replicaOptions = { ...options, writeFailures, onChange: () => this.#save(), onUnexpectedExit, onWaiting };
    this.replicas.push(start?.(replicaOptions) ?? new Replica(replicaOptions));
    this.#save();
  }

  /** Throws LocalError `bad_option` if there is no such replica. */
  replica(service: ServiceName, number: number): ReplicaHandle {
    const found = this.replicas.find((replica) => replica.service === service && replica.number === number);
    if (found === undefined) throw new LocalError("bad_option", `There is no replica ${service}-${number}.`);
    return found;
  }

  /** Drains and stops one replica permanently. */
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
      if (group.some((replica) => replica.state().process !== null)) this.#print(`stopping ${service}`);
      await Promise.all(group.map((replica) => replica.stop(drainMs)));
    }
    if (this.backing !== null) this.#print("stopping the servers");
    await this.#stopServers();
  }

  /** Kills everything without a drain. */
  async stopNow(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.replicas.map((replica) => replica.stop(0)));
    await this.#stopServers(fastServerGraceMs);
  }

  async #stopServers(graceMs?: number): Promise<void> {
    await this.backing?.stop(graceMs);
    if (this.stateFields !== null) removeState(this.#home);
    this.stateFields = null;
    this.#lock.release();
  }

  #save(): void {
    clearTimeout(this.#retry);
    if (this.#stopping || this.stateFields === null) return;
    const path = join(this.#home.path, stateFile);
    try {
      writeState(this.#home, { ...this.stateFields, replicas: this.replicas.map((replica) => replica.state()) });
      this.writeFailures.succeeded(path);
    } catch (error) {
      this.writeFailures.failed(path, error);
      this.#retry = setTimeout(() => this.#save(), saveRetryMs).unref();
    }
  }
}

/** Kills the services of a killed supervisor: they still use the gateway's port, and their servers have ended with the supervisor. */
export async function killOrphanedReplicas(home: Home): Promise<void> {
  const left = readStateFile(home.path)?.replicas ?? [];
  const processes = left.map((replica) => replica.process).filter((process) => process !== null);
  await Promise.all(processes.map((process) => endProcess(process, "SIGKILL", 1_000)));
}
