// Parses a server's elicitation schema into form fields. Pure. The schema is untrusted: a form that is not flat, has values that are
// not plain, or requests a secret is refused.
import { oneLine } from "@parley/kit";
import { z } from "zod";

/** Maximum UTF-16 units of a label and of a description. */
const maxLineChars = 300;

export type FieldValue = string | number | boolean | string[];

interface Choice {
  value: string;
  label: string;
}

export type FieldKind =
  | { type: "text"; format: string | undefined; min: number; max: number }
  | { type: "number"; whole: boolean; min: number; max: number }
  | { type: "boolean" }
  | { type: "choice"; choices: readonly Choice[] }
  | { type: "choices"; choices: readonly Choice[]; min: number; max: number };

export interface Field {
  /** The field's key in the answer. */
  key: string;
  label: string;
  /** May be empty. */
  about: string;
  required: boolean;
  kind: FieldKind;
  default: FieldValue | undefined;
}

/** Maximum number of fields: more are not practical in a conversation. */
const maxFields = 30;

const labelled = z.array(z.object({ const: z.string(), title: z.string().optional() })).min(1);
const common = { title: z.string().optional(), description: z.string().optional() };
const count = z.number().int().nonnegative();

const Property = z.union([
  z
    .object({ ...common, type: z.literal("string"), enum: z.array(z.string()).min(1), default: z.string().optional() })
    .extend({ enumNames: z.array(z.string()).optional() }),
  z.object({ ...common, type: z.literal("string"), oneOf: labelled, default: z.string().optional() }),
  z.object({
    ...common,
    type: z.literal("string"),
    format: z.string().optional(),
    minLength: count.optional(),
    maxLength: count.optional(),
    default: z.string().optional(),
  }),
  z.object({
    ...common,
    type: z.enum(["number", "integer"]),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    default: z.number().optional(),
  }),
  z.object({ ...common, type: z.literal("boolean"), default: z.boolean().optional() }),
  z.object({
    ...common,
    type: z.literal("array"),
    minItems: count.optional(),
    maxItems: count.optional(),
    items: z.union([
      z.object({ type: z.literal("string"), enum: z.array(z.string()).min(1) }),
      z.object({ anyOf: labelled }),
    ]),
    default: z.array(z.string()).optional(),
  }),
]);
type Property = z.infer<typeof Property>;

const Form = z.object({
  properties: z.record(z.string(), z.unknown()).default({}),
  required: z.array(z.string()).default([]),
});

const secretWords =
  /\b(pass ?(words?|wd|phrase|code)|secrets?|api ?keys?|private ?keys?|(access|auth|bearer|refresh) ?tokens?|credentials?|cvv|cvc|pin)\b/i;

/** The fields, required ones first; or the reason why the form is refused. */
export function parseForm(schema: unknown): { fields: Field[] } | { problem: string } {
  const form = Form.safeParse(schema);
  if (!form.success) return { problem: "the requested schema is not a form" };
  const entries = Object.entries(form.data.properties);
  if (entries.length > maxFields) return { problem: `the form has ${entries.length} fields, more than ${maxFields}` };
  const fields: Field[] = [];
  for (const [key, value] of entries) {
    const property = Property.safeParse(value);
    if (!property.success) return { problem: `\`${key}\` is not a plain value` };
    const field = fieldOf(key, property.data, form.data.required.includes(key));
    if (asksForSecret(field)) return { problem: `\`${key}\` looks like a secret, which a form must not request` };
    fields.push(field);
  }
  return { fields: [...fields.filter(isRequired), ...fields.filter((field) => !isRequired(field))] };
}

export function isRequired({ required, default: preset }: Field): boolean {
  return required && preset === undefined;
}

/** Checks only key and label: a description may state that no secret is needed. */
function asksForSecret({ key, label, kind }: Field): boolean {
  const words = `${key} ${label}`.replaceAll(/([a-z])([A-Z])/g, "$1 $2").replaceAll(/[_-]+/g, " ");
  return secretWords.test(words) || (kind.type === "text" && kind.format === "password");
}

function fieldOf(key: string, property: Property, required: boolean): Field {
  const { title, description } = property;
  const field = {
    key,
    label: oneLine(title ?? key, maxLineChars),
    about: oneLine(description ?? "", maxLineChars),
    required,
  };
  const kind = kindOf(property);
  return { ...field, kind, default: fits(kind, property.default) ? property.default : undefined };
}

function kindOf(property: Property): FieldKind {
  if (property.type === "boolean") return { type: "boolean" };
  if (property.type === "array") {
    const choices = "enum" in property.items ? plain(property.items.enum) : named(property.items.anyOf);
    return { type: "choices", choices, min: property.minItems ?? 0, max: property.maxItems ?? choices.length };
  }
  if (property.type !== "string") {
    const { minimum: min = -Infinity, maximum: max = Infinity } = property;
    return { type: "number", whole: property.type === "integer", min, max };
  }
  if ("enum" in property) return { type: "choice", choices: plain(property.enum, property.enumNames) };
  if ("oneOf" in property) return { type: "choice", choices: named(property.oneOf) };
  const { format, minLength: min = 0, maxLength: max = Infinity } = property;
  return { type: "text", format, min, max };
}

/** False for a default that is not a valid choice; such a default is ignored. */
function fits(kind: FieldKind, value: FieldValue | undefined): boolean {
  if (kind.type === "choice") return kind.choices.some((choice) => choice.value === value);
  if (kind.type !== "choices") return true;
  return Array.isArray(value) && value.every((each) => kind.choices.some((choice) => choice.value === each));
}

function plain(values: readonly string[], names: readonly string[] = []): Choice[] {
  return values.map((value, index) => ({ value, label: oneLine(names[index] ?? value, maxLineChars) }));
}

function named(values: z.infer<typeof labelled>): Choice[] {
  return values.map((value) => ({ value: value.const, label: oneLine(value.title ?? value.const, maxLineChars) }));
}
