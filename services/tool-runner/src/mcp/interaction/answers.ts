// Parses a person's answer to a form field of an MCP server: a value, a control word for the form, or an invalid answer. Pure.
import { z } from "zod";
import { isRequired, type Field, type FieldKind, type FieldValue } from "./fields.ts";

export type Answer =
  | { kind: "value"; value: FieldValue }
  /** Skips this field; `rest`: and all following fields. */
  | { kind: "skip"; rest: boolean }
  | { kind: "decline" | "cancel" }
  /** `problem` is a message for the person. */
  | { kind: "wrong"; problem: string };

const yes = new Set(["yes", "y", "true", "ok", "okay", "sure", "1"]);
const no = new Set(["no", "n", "false", "2"]);

/** RFC 3986, which servers check: `z.url` alone also accepts `A:` and characters that an address has only encoded. */
const uriPattern =
  /^[a-z][a-z\d+.-]*:(?:\/\/(?:[\w\-.~!$&'()*+,;=:%]*@)?\[[\da-f:.]+\])?(?:[\w\-.~!$&'()*+,;=:@/]|%[\da-f]{2})+(?:\?(?:[\w\-.~!$&'()*+,;=:@/?]|%[\da-f]{2})*)?(?:#(?:[\w\-.~!$&'()*+,;=:@/?]|%[\da-f]{2})*)?$/i;

const formats: Readonly<Record<string, { schema: z.ZodType; name: string }>> = {
  email: { schema: z.email(), name: "an e-mail address" },
  uri: { schema: z.url().regex(uriPattern), name: "an address such as https://example.com" },
  date: { schema: z.iso.date(), name: "a date such as 2026-01-31" },
  "date-time": { schema: z.iso.datetime({ offset: true }), name: "a time such as 2026-01-31T12:00:00Z" },
};

/** `mayEnd`: no following field is required. */
export function readAnswer(field: Field, text: string, mayEnd: boolean): Answer {
  const answer = text.trim();
  const word = parseControlWord(answer);
  if (word === "decline" || word === "cancel") return { kind: word };
  if (word === "skip" || word === "done") {
    if (isRequired(field)) return { kind: "wrong", problem: "This field is required." };
    if (word === "done" && !mayEnd) return { kind: "wrong", problem: "A later field is required." };
    return { kind: "skip", rest: word === "done" };
  }
  return valueOf(field.kind, answer);
}

export type ControlWord = "decline" | "cancel" | "skip" | "done";

/** The control word in the text, if any; in quotes it is an ordinary answer. */
export function parseControlWord(text: string): ControlWord | undefined {
  const word = text.trim().toLowerCase().replace(/[.!]$/, "");
  return word === "decline" || word === "cancel" || word === "skip" || word === "done" ? word : undefined;
}

/** True, false, or neither. */
export function parseYesNo(text: string): boolean | undefined {
  const word = text.trim().toLowerCase().replace(/[.!]$/, "");
  if (yes.has(word)) return true;
  return no.has(word) ? false : undefined;
}

function valueOf(kind: FieldKind, answer: string): Answer {
  switch (kind.type) {
    case "boolean": {
      const value = parseYesNo(answer);
      return value === undefined ? wrong("Please answer yes or no.") : { kind: "value", value };
    }
    case "number":
      return numberOf(kind, answer);
    case "choice": {
      const value = chosen(kind.choices, answer);
      return value === undefined ? wrong("Please choose one of the options.") : { kind: "value", value };
    }
    case "choices": {
      const values = answer.split(/[,;\n]/).flatMap((each) => (each.trim() === "" ? [] : [chosen(kind.choices, each)]));
      const known = [...new Set(values.filter((value) => value !== undefined))];
      if (known.length !== new Set(values).size) return wrong("Please choose from the options, separated by commas.");
      if (known.length < kind.min) return wrong(`Please choose at least ${kind.min}.`);
      if (known.length > kind.max) return wrong(`Please choose at most ${kind.max}.`);
      return { kind: "value", value: known };
    }
    case "text":
      return textOf(kind, unquoted(answer));
    default:
      return kind satisfies never;
  }
}

function numberOf({ whole, min, max }: Extract<FieldKind, { type: "number" }>, answer: string): Answer {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(answer) ? Number(answer) : Number.NaN;
  if (!Number.isFinite(value)) return wrong("Please answer with a number, such as 3.5 or 12.");
  if (whole && !Number.isSafeInteger(value)) return wrong("Please answer with a whole number.");
  if (value < min) return wrong(`It must be at least ${min}.`);
  if (value > max) return wrong(`It must be at most ${max}.`);
  return { kind: "value", value };
}

function textOf({ format, min, max }: Extract<FieldKind, { type: "text" }>, answer: string): Answer {
  // JSON Schema counts code points.
  const length = Array.from(answer).length;
  if (length < min) return wrong(`It must have at least ${min} characters.`);
  if (length > max) return wrong(`It must have at most ${max} characters.`);
  const known = format === undefined ? undefined : formats[format];
  if (known !== undefined && !known.schema.safeParse(answer).success) return wrong(`It must be ${known.name}.`);
  return { kind: "value", value: answer };
}

/** Finds a choice by its number, label or value. */
function chosen(choices: readonly { value: string; label: string }[], text: string): string | undefined {
  const answer = text.trim().toLowerCase();
  const exact = choices.find(({ value, label }) => label.toLowerCase() === answer || value.toLowerCase() === answer);
  return (exact ?? (/^\d+$/.test(answer) ? choices[Number(answer) - 1] : undefined))?.value;
}

/** Removes the quotes around a control word that is meant as an answer. */
function unquoted(answer: string): string {
  const inner = /^"(.*)"$/s.exec(answer)?.[1];
  return inner !== undefined && parseControlWord(inner) !== undefined ? inner : answer;
}

function wrong(problem: string): Answer {
  return { kind: "wrong", problem };
}

/** Describes the expected answer, for the person. */
export function promptFor({ kind }: Field): string {
  switch (kind.type) {
    case "boolean":
      return "Answer yes or no.";
    case "choice":
      return "Choose one.";
    case "choices":
      return `Choose ${kind.min === 0 ? "up to" : `${kind.min} to`} ${kind.max}, separated by commas.`;
    case "number": {
      const range = [
        Number.isFinite(kind.min) ? `at least ${kind.min}` : "",
        Number.isFinite(kind.max) ? `at most ${kind.max}` : "",
      ].filter((each) => each !== "");
      const bounds = range.length === 0 ? "" : `, ${range.join(", ")}`;
      return `Answer with a ${kind.whole ? "whole " : ""}number${bounds}.`;
    }
    case "text":
      return kind.format === undefined || formats[kind.format] === undefined
        ? ""
        : `Answer with ${formats[kind.format]?.name}.`;
    default:
      return kind satisfies never;
  }
}
