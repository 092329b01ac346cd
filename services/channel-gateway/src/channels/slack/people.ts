// Names of people by their id. Slack's events contain only ids; a name is shown and never decides anything.
import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { Call } from "./api.ts";

const maxNames = 2_000;
const rememberMs = 60 * 60_000;
/** A missing name must not delay a message that Slack wants acknowledged within 3 s. */
const lookUpMs = 1_000;
const maxLookUps = 10;

const UserInfo = z.object({
  user: z.object({
    name: z.string().optional(),
    real_name: z.string().optional(),
    profile: z.object({ display_name: z.string().optional() }).optional(),
  }),
});

export class People {
  readonly #call: Call;
  /** An empty text: Slack does not tell the name. */
  readonly #names = new LRUCache<string, string>({ max: maxNames, ttl: rememberMs });
  /** The app has no scope for names. */
  #refused = false;

  constructor(call: Call) {
    this.#call = call;
  }

  nameOf = (id: string): string | undefined => this.#names.get(id) || undefined;

  /** Looks up the names that are not known yet. Never rejects. */
  async load(ids: readonly string[]): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => !this.#names.has(id)).slice(0, maxLookUps);
    await Promise.all(unknown.map((id) => this.#lookUp(id)));
  }

  async #lookUp(id: string): Promise<void> {
    if (this.#refused) return;
    const answer = await this.#call("users.info", { user: id }, UserInfo, AbortSignal.timeout(lookUpMs));
    if (answer.kind === "ok") {
      const { name, real_name: realName, profile } = answer.result.user;
      this.#names.set(id, profile?.display_name || realName || name || "");
    } else if (answer.kind === "refused") {
      this.#refused = answer.code === "missing_scope";
      if (answer.code === "user_not_found" || answer.code === "user_not_visible") this.#names.set(id, "");
    }
  }
}
