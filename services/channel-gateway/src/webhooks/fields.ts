// Reads fields of JSON of others: a missing field or another type is just absent. Pure.
import { elideMiddle, oneLine } from "@parley/kit";

/** JSON of which nothing is known. */
export class Fields {
  readonly #value: unknown;

  constructor(value: unknown) {
    this.#value = value;
  }

  /** The value at a path such as `issue.title`. */
  at(path: string): Fields {
    let value: unknown = this.#value;
    for (const key of path.split(".")) {
      value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    }
    return new Fields(value);
  }

  /** The first of the paths that has a text or number, on one line; empty without. */
  line(...paths: string[]): string {
    for (const path of paths) {
      const value = this.at(path).#value;
      if (typeof value === "string" && value.trim() !== "") return oneLine(value, maxLine);
      if (typeof value === "number" || typeof value === "boolean") return String(value);
    }
    return "";
  }

  /** A longer text with its lines, without its middle if it is too long; empty without. */
  text(...paths: string[]): string {
    for (const path of paths) {
      const value = this.at(path).#value;
      if (typeof value === "string" && value.trim() !== "") return elideMiddle(value.trim(), maxText);
    }
    return "";
  }

  /** The items of a list; empty without. */
  list(path: string): Fields[] {
    const value = this.at(path).#value;
    return Array.isArray(value) ? value.map((item) => new Fields(item)) : [];
  }

  /** The names and values of an object, on one line each. */
  entries(path: string): [string, string][] {
    const value = this.at(path).#value;
    if (!isObject(value)) return [];
    return Object.keys(value).map((key) => [oneLine(key, maxLine), this.at(path).line(key)]);
  }

  get exists(): boolean {
    return isObject(this.#value);
  }
}

const maxLine = 300;
const maxText = 4_000;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Lines without the empty ones. */
export function lines(...all: readonly (string | readonly string[])[]): string {
  return all
    .flat()
    .filter((line) => line !== "")
    .join("\n");
}

/** Words with single spaces, without the empty ones. */
export function words(...all: readonly string[]): string {
  return all.filter((word) => word !== "").join(" ");
}

/** `label: value`; empty without a value. */
export function labelled(label: string, value: string): string {
  return value === "" ? "" : `${label}: ${value}`;
}

/** `word value`; empty without a value. */
export function after(word: string, value: string): string {
  return value === "" ? "" : `${word} ${value}`;
}

/** The first items of a list as lines, and how many follow. */
export function someOf(items: readonly string[], most = 20): string[] {
  return items.length <= most ? [...items] : [...items.slice(0, most), `… and ${items.length - most} more`];
}
