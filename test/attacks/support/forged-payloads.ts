// Payloads that a thief forms from the published contracts: every field, filled with stolen ids where the name of the field fits one.
import { randomUUID } from "node:crypto";
import type { RequestContract } from "@parley/contracts";
import { z } from "zod";

/** What a thief knows of one session, in the worst case. */
export interface StolenIds {
  sessionId: string;
  turnId: string;
  n: number;
  callId: string;
  messageId: string;
  sha256: string;
  epoch: number;
  processId: string;
  contactId: string;
  grant: string;
}

interface Schema {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  items?: Schema;
  prefixItems?: Schema[];
  format?: string;
  minimum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  minItems?: number;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

/** Distinct payloads for a request; most satisfy the contract, so that they reach the code behind it. */
export function forgedPayloads(contract: RequestContract, ids: StolenIds, choices: number): unknown[] {
  const schema = z.toJSONSchema(contract.input, { io: "input", unrepresentable: "any" }) as Schema;
  const made = Array.from({ length: choices }, (_, choice) => new Forger(schema, ids, choice).value(schema, ""));
  const distinct = new Map(made.map((payload) => [JSON.stringify({ ...(payload as object), opId: "" }), payload]));
  return [...distinct.values()];
}

class Forger {
  readonly #root: Schema;
  readonly #ids: StolenIds;
  /** Which of alternatives is taken. */
  readonly #choice: number;

  constructor(root: Schema, ids: StolenIds, choice: number) {
    this.#root = root;
    this.#ids = ids;
    this.#choice = choice;
  }

  value(schema: Schema, name: string): unknown {
    if (schema.$ref !== undefined) {
      const target = schema.$ref === "#" ? this.#root : this.#root.$defs?.[schema.$ref.replace("#/$defs/", "")];
      return target === undefined ? null : this.value(target, name);
    }
    if (schema.const !== undefined) return schema.const;
    if (schema.enum !== undefined) return pick(schema.enum, this.#choice);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return this.value(pick(alternatives, this.#choice), name);
    if (schema.allOf !== undefined)
      return Object.assign({}, ...schema.allOf.map((each) => this.value(each, name) as object));
    const type = Array.isArray(schema.type) ? pick(schema.type, this.#choice) : schema.type;
    switch (type) {
      case "object":
        return Object.fromEntries(
          Object.entries(schema.properties ?? {}).map(([field, inner]) => [field, this.value(inner, field)]),
        );
      case "array":
        if (schema.prefixItems !== undefined) return schema.prefixItems.map((each) => this.value(each, name));
        return schema.items === undefined ? [] : [this.value(schema.items, name.replace(/s$/, ""))];
      case "integer":
      case "number":
        return this.#number(schema, name);
      case "boolean":
        return this.#choice % 2 === 0;
      case "null":
        return null;
      default:
        return this.#text(schema, name);
    }
  }

  #number(schema: Schema, name: string): number {
    if (name === "epoch") return this.#ids.epoch;
    if (name === "n") return this.#ids.n;
    return Math.max(schema.minimum ?? 1, (schema.exclusiveMinimum ?? 0) + 1, 1);
  }

  #text(schema: Schema, name: string): string {
    const ids = this.#ids;
    if (name === "opId") return randomUUID();
    if (/grant/i.test(name)) return ids.grant;
    if (name === "data") return Buffer.from("forged").toString("base64");
    if (/sha256|hash/i.test(name)) return ids.sha256;
    if (/session/i.test(name)) return ids.sessionId;
    if (/turn/i.test(name)) return ids.turnId;
    if (/message|inbox|outbox/i.test(name)) return ids.messageId;
    if (/call/i.test(name)) return ids.callId;
    if (/process/i.test(name)) return ids.processId;
    if (/contact|principal|person/i.test(name)) return ids.contactId;
    if (/path|document/i.test(name)) return pick(["MEMORY.md", "SOUL.md", "USER.md"], this.#choice);
    if (/author|trust|role/i.test(name)) return "owner";
    if (/channel/i.test(name)) return "telegram";
    if (/account/i.test(name)) return "main";
    if (/conversation/i.test(name)) return ids.contactId;
    if (/secret|claim|key$/i.test(name)) return "s".repeat(43);
    if (schema.format === "uuid") return ids.turnId;
    if (schema.format === "date-time") return new Date().toISOString();
    if (schema.format === "uri") return "http://127.0.0.1:9/";
    return "x".repeat(Math.max(1, schema.minLength ?? 1));
  }
}

function pick<T>(values: readonly T[], choice: number): T {
  const value = values[choice % values.length];
  if (value === undefined && values.length === 0) throw new Error("nothing to choose from");
  return value as T;
}
