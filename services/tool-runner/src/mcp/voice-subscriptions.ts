// Subscribes to the resources of one server that change with new utterances of a voice session, on the connection in current use.
// A failed subscription is not an error: the server is polled as well.
import type { Client } from "@modelcontextprotocol/client";
import { errorText } from "./errors.ts";

/** Wall time limit of one subscription request. */
const timeoutMs = 10_000;
/** Delay before a failed subscription is retried on the same connection. */
const retryMs = 30_000;
/** A session that was not polled for this long has ended, or is polled through another tool-runner. */
const forgetMs = 15 * 60_000;

interface Resource {
  /** The time of the last poll of each of its sessions, on the monotonic clock. */
  sessions: Map<string, number>;
  tried: { client: Client; atMs: number } | undefined;
  /** Ends the current subscription. */
  end: (() => Promise<unknown>) | undefined;
  /** The failure to subscribe was already reported. */
  told: boolean;
}

export interface VoiceSubscriptionsDeps {
  /** `[voice] resource`. */
  template: string | undefined;
  /** Called when a session is subscribed; its earlier utterances were not announced. */
  subscribed: (sttSessionId: string) => void;
  /** Called once for each resource that cannot be subscribed to. */
  refused: (problem: string) => void;
  nowMs?: () => number;
}

export class VoiceSubscriptions {
  readonly #deps: VoiceSubscriptionsDeps;
  readonly #nowMs: () => number;
  readonly #resources = new Map<string, Resource>();

  constructor(deps: VoiceSubscriptionsDeps) {
    this.#deps = deps;
    this.#nowMs = deps.nowMs ?? (() => performance.now());
  }

  /** Call after a session was polled over this connection; `named`: the resource that the server returned. */
  follow(client: Client, sttSessionId: string, named: string | undefined): void {
    const nowMs = this.#nowMs();
    const known = [...this.#resources].find(([, { sessions }]) => sessions.has(sttSessionId))?.[0];
    const uri = named ?? known ?? resourceOf(this.#deps.template, sttSessionId);
    if (uri !== known) this.forget(sttSessionId);
    this.#forgetOld(nowMs);
    if (uri === undefined) return;
    const resource = this.#resources.get(uri) ?? { sessions: new Map(), tried: undefined, end: undefined, told: false };
    this.#resources.set(uri, resource);
    resource.sessions.set(sttSessionId, nowMs);
    if (client.getServerCapabilities()?.resources?.subscribe !== true) return;
    const { tried, end } = resource;
    if (tried?.client === client && (end !== undefined || nowMs - tried.atMs < retryMs)) return;
    // The previous subscription ended with its connection.
    resource.end = undefined;
    resource.tried = { client, atMs: nowMs };
    void this.#subscribe(resource, client, uri);
  }

  /** Call when the session has ended. */
  forget(sttSessionId: string): void {
    for (const [uri, { sessions }] of this.#resources) {
      if (sessions.delete(sttSessionId) && sessions.size === 0) this.#drop(uri);
    }
  }

  /** The session of a changed resource or sub-resource; null: several sessions; undefined: none. */
  sessionOf(changed: string): string | null | undefined {
    const found =
      [...this.#resources].find(([uri]) => uri === changed) ??
      [...this.#resources].find(([uri]) => changed.startsWith(uri));
    if (found === undefined) return undefined;
    const [first, ...others] = found[1].sessions.keys();
    return first === undefined || others.length > 0 ? null : first;
  }

  async #subscribe(resource: Resource, client: Client, uri: string): Promise<void> {
    const { subscribed, refused } = this.#deps;
    try {
      const end = await subscribe(client, uri, () => {
        // The next poll of one of its sessions subscribes again.
        if (resource.end === end) [resource.end, resource.tried] = [undefined, undefined];
      });
      if (this.#resources.get(uri) !== resource) await end().catch(() => undefined);
      else if (resource.tried?.client === client) {
        resource.end = end;
        for (const sttSessionId of resource.sessions.keys()) subscribed(sttSessionId);
      }
    } catch (error) {
      if (resource.told) return;
      resource.told = true;
      refused(errorText(error));
    }
  }

  #forgetOld(nowMs: number): void {
    for (const [uri, { sessions }] of this.#resources) {
      for (const [id, askedMs] of sessions) if (nowMs - askedMs > forgetMs) sessions.delete(id);
      if (sessions.size === 0) this.#drop(uri);
    }
  }

  #drop(uri: string): void {
    const end = this.#resources.get(uri)?.end;
    this.#resources.delete(uri);
    if (end !== undefined) void end().catch(() => undefined);
  }
}

/** The session id is percent-encoded, as in URI templates. */
function resourceOf(template: string | undefined, sttSessionId: string): string | undefined {
  return template?.replaceAll("{session_id}", () => encodeURIComponent(sttSessionId));
}

/** Resolves with a function that ends the subscription; `lost` is called when the server ends it. */
async function subscribe(client: Client, uri: string, lost: () => void): Promise<() => Promise<unknown>> {
  if (client.getProtocolEra() !== "modern") {
    await client.subscribeResource({ uri }, { timeout: timeoutMs });
    return () => client.unsubscribeResource({ uri }, { timeout: timeoutMs });
  }
  const subscription = await client.listen({ resourceSubscriptions: [uri] }, { timeout: timeoutMs });
  if (subscription.honoredFilter.resourceSubscriptions?.includes(uri) !== true) {
    await subscription.close();
    throw new Error("the server did not accept the subscription to the resource");
  }
  void subscription.closed.then(lost);
  return () => subscription.close();
}
