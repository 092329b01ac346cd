// The resources of one server that change when a voice session hears something, subscribed to on whichever connection the server is asked
// over now. What cannot be subscribed to is nobody's failure: the server is asked by the clock as well.
import type { Client } from "@modelcontextprotocol/client";
import { errorText } from "./errors.ts";

/** Wall time of one subscription. */
const timeoutMs = 10_000;
/** A subscription that failed is tried again on the same connection so long after the last try. */
const retryMs = 30_000;
/** A session nobody asked about for so long is over, or is asked about through another tool-runner. */
const forgetMs = 15 * 60_000;

interface Resource {
  /** When each session that it stands for was asked about last, on the monotonic clock. */
  sessions: Map<string, number>;
  tried: { client: Client; atMs: number } | undefined;
  /** Ends the subscription there is. */
  end: (() => Promise<unknown>) | undefined;
  /** It was said that it cannot be subscribed to. */
  told: boolean;
}

export interface VoiceSubscriptionsDeps {
  /** `[voice] resource`. */
  template: string | undefined;
  /** It is known from now on when this session hears something: what it heard before was not announced. */
  subscribed: (sttSessionId: string) => void;
  /** A resource cannot be subscribed to; said once of each. */
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

  /** A session was asked about over this connection; `named`: the resource the server gave it just now. */
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
    // A subscription ends with its connection.
    resource.end = undefined;
    resource.tried = { client, atMs: nowMs };
    void this.#subscribe(resource, client, uri);
  }

  /** The session is over. */
  forget(sttSessionId: string): void {
    for (const [uri, { sessions }] of this.#resources) {
      if (sessions.delete(sttSessionId) && sessions.size === 0) this.#drop(uri);
    }
  }

  /** Whose news it is that a resource, or a part of one, has changed; null: any session's; undefined: nobody's. */
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
        // Its next session that is asked about subscribes again.
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

/** Percent-encoded, as URI templates have it. */
function resourceOf(template: string | undefined, sttSessionId: string): string | undefined {
  return template?.replaceAll("{session_id}", () => encodeURIComponent(sttSessionId));
}

/** Resolves with what ends the subscription; `lost`: the server has ended it. */
async function subscribe(client: Client, uri: string, lost: () => void): Promise<() => Promise<unknown>> {
  if (client.getProtocolEra() !== "modern") {
    await client.subscribeResource({ uri }, { timeout: timeoutMs });
    return () => client.unsubscribeResource({ uri }, { timeout: timeoutMs });
  }
  const subscription = await client.listen({ resourceSubscriptions: [uri] }, { timeout: timeoutMs });
  if (subscription.honoredFilter.resourceSubscriptions?.includes(uri) !== true) {
    await subscription.close();
    throw new Error("it does not tell when the resource changes");
  }
  void subscription.closed.then(lost);
  return () => subscription.close();
}
