// Connections from this machine to pods: `kubectl port-forward` for as long as a pod is there. They pass the API server and the kubelet, so no
// network policy applies to them.
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Kubectl } from "./kubectl.ts";

export interface Forward {
  /** The local port of each port of the pod. */
  ports: ReadonlyMap<number, number>;
  /** Resolves when the connection to the pod has ended. */
  ended: Promise<void>;
  close(): Promise<void>;
}

const openMs = 20_000;

/** The local ports in the output of `kubectl port-forward`, by the port of the pod. */
export function forwardedPorts(output: string): Map<number, number> {
  const found = [...output.matchAll(/Forwarding from 127\.0\.0\.1:(\d+) -> (\d+)/g)];
  return new Map(found.map(([, local, remote]) => [Number(remote), Number(local)]));
}

/** Rejects with kubectl's reason. */
async function openForward(kubectl: Kubectl, pod: string, remotePorts: readonly number[]): Promise<Forward> {
  const args = ["port-forward", `pod/${pod}`, "--address", "127.0.0.1", ...remotePorts.map((port) => `:${port}`)];
  const child: ChildProcess = kubectl.start(args);
  const ended = once(child, "exit").then(() => undefined);
  let [output, errors] = ["", ""];
  child.stderr?.on("data", (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-2_000)));
  const close = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  const open = new Promise<Map<number, number>>((resolve) => {
    child.stdout?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      const ports = forwardedPorts(output);
      if (remotePorts.every((port) => ports.has(port))) resolve(ports);
    });
  });
  const timeout = new AbortController();
  const late = delay(openMs, undefined, { signal: timeout.signal }).then(
    () => undefined,
    () => undefined,
  );
  const ports = await Promise.race([open, ended, late]);
  timeout.abort();
  if (ports === undefined) {
    await close();
    throw new Error(`kubectl port-forward to ${pod}: ${errors.trim() || "it opened no port"}`);
  }
  // A broken connection inside a forward is reported, and the next one may work.
  return { ports, ended, close };
}

/** Keeps a forward to each of the pods that `wanted` returns, until it is closed. */
export class Forwards {
  readonly #kubectl: Kubectl;
  readonly #ports: readonly number[];
  readonly #open = new Map<string, Forward>();
  readonly #opening = new Set<string>();

  constructor(kubectl: Kubectl, ports: readonly number[]) {
    this.#kubectl = kubectl;
    this.#ports = ports;
  }

  /** Opens what is missing and closes what is no longer wanted. A pod that cannot be reached yet is tried again with the next call. */
  async follow(pods: readonly string[]): Promise<void> {
    const wanted = new Set(pods);
    for (const [pod, forward] of this.#open) if (!wanted.has(pod)) await this.#end(pod, forward);
    const missing = pods.filter((pod) => !this.#open.has(pod) && !this.#opening.has(pod));
    await Promise.all(missing.map((pod) => this.#begin(pod)));
  }

  /** The forwards that are open now, by pod. */
  current(): ReadonlyMap<string, Forward> {
    return this.#open;
  }

  async close(): Promise<void> {
    for (const [pod, forward] of this.#open) await this.#end(pod, forward);
  }

  async #begin(pod: string): Promise<void> {
    this.#opening.add(pod);
    const forward = await openForward(this.#kubectl, pod, this.#ports).catch(() => undefined);
    this.#opening.delete(pod);
    if (forward === undefined) return;
    this.#open.set(pod, forward);
    void this.#forget(pod, forward);
  }

  /** A pod whose forward has ended is connected again by the next call of `follow`. */
  async #forget(pod: string, forward: Forward): Promise<void> {
    await forward.ended;
    if (this.#open.get(pod) === forward) this.#open.delete(pod);
  }

  async #end(pod: string, forward: Forward): Promise<void> {
    this.#open.delete(pod);
    await forward.close();
  }
}
