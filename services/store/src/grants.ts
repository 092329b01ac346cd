// Checks the grants of tool-runner requests: the signature with the key of the epoch, the expiry, and that the call is still open. It
// does not depend on the handlers.
import { createHash, timingSafeEqual, type KeyObject } from "node:crypto";
import { grantKeyOf, grantSignature } from "@parley/chassis";
import { splitGrant, WireError, type Grant } from "@parley/contracts";
import { withClient, type Database, type PoolClient } from "./db/database.ts";

/** Maximum cached keys and verified grants; the oldest entry is evicted first. */
const maxKept = 1_000;

export class Grants {
  readonly #database: Database;
  /** By epoch. The key of an epoch never changes. */
  readonly #keys = new Map<number, KeyObject>();
  /** By token: a call sends several requests with the same token. */
  readonly #verified = new Map<string, Grant>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Returns the rights of a call. Throws FORBIDDEN for an invalid grant. */
  async check(token: string): Promise<Grant> {
    const grant = this.#verified.get(token) ?? (await this.#verify(token));
    if (grant.expiresAt <= Date.now()) throw forbidden("it is expired");
    keep(this.#verified, token, grant);
    return grant;
  }

  async #verify(token: string): Promise<Grant> {
    const parts = splitGrant(token);
    if (parts === null) throw forbidden("it is malformed");
    const { grant, signed, signature } = parts;
    const key = await this.#keyOf(grant.epoch);
    if (key === undefined) throw forbidden(`no key of epoch ${grant.epoch} is known`);
    const expected = grantSignature(key, signed);
    if (signature.length !== expected.length || !timingSafeEqual(signature, expected))
      throw forbidden("its signature does not match");
    return grant;
  }

  async #keyOf(epoch: number): Promise<KeyObject | undefined> {
    const known = this.#keys.get(epoch);
    if (known !== undefined) return known;
    const { rows } = await withClient(this.#database, (client) =>
      client.query<{ grant_key: string }>("SELECT grant_key FROM parley.leader_keys WHERE epoch = $1", [epoch]),
    );
    if (rows[0] === undefined) return undefined;
    const key = grantKeyOf(rows[0].grant_key);
    keep(this.#keys, epoch, key);
    return key;
  }
}

function keep<K, V>(map: Map<K, V>, key: K, value: V): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > maxKept && oldest !== undefined) map.delete(oldest);
}

/** Throws FORBIDDEN when the call lacks this right to documents. */
export function requireDocuments(grant: Grant, right: "read" | "write"): void {
  if (grant.documents !== "write" && grant.documents !== right)
    throw forbidden(`a call of ${grant.tool} may not ${right} documents`);
  if (right === "write" && grant.audience !== "owner")
    throw forbidden("documents can be changed only in the owner's conversations");
}

/** Throws CONFLICT when the call has ended: its grant is no longer usable. A pure call may begin while its step is being committed. */
export async function requireOpenCall(
  client: PoolClient,
  { turnId, n, class: toolClass }: Pick<Grant, "turnId" | "n" | "class">,
): Promise<void> {
  const { rowCount } = await client.query({
    name: "call-open",
    text: `SELECT FROM parley.steps WHERE turn_id = $1 AND n = $2 AND kind = 'tool' AND result IS NULL
           UNION ALL
           SELECT FROM parley.turns WHERE $3 AND id = $1 AND state = 'running'
             AND NOT EXISTS (SELECT FROM parley.steps WHERE turn_id = $1 AND n >= $2)`,
    values: [turnId, n, toolClass === "pure"],
  });
  if (rowCount === 0) throw new WireError("CONFLICT", `the call ${n} of turn ${turnId} has ended`);
}

/** An operation id (UUID version 8) scoped to this call, so that no other call can choose the same id. */
export function operationOf({ turnId, n }: Grant, opId: string): string {
  const hex = createHash("sha256").update(`${turnId} ${n} ${opId}`).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

export function forbidden(reason: string): WireError {
  return new WireError("FORBIDDEN", `the grant of this call does not allow it: ${reason}`);
}
