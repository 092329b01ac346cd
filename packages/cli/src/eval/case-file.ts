// Case files of `parley eval`: YAML documents, each with the turns of a conversation and what is expected of them. Pure.

import { permissionModeNames } from "@parley/projections";
import { parseAllDocuments } from "yaml";
import { z } from "zod";

import { CliError, firstIssue } from "../io/io.ts";

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u").source !== "";
  } catch {
    return false;
  }
}

const pattern = z.string().refine(isPattern, { error: "is not a regular expression" });

/** One expectation: a grader and its value. */
const GraderSchema = z.union([
  /** The answer is exactly this text. */
  z.strictObject({ match: z.string() }),
  /** The answer contains this text. */
  z.strictObject({ contains: z.string().min(1) }),
  /** The answer matches this regular expression. */
  z.strictObject({ regex: pattern }),
  /** The tool was called, by its own name or another of its names. */
  z.strictObject({ tool_used: z.string().min(1) }),
  /** Exactly these tools were called, in this order. */
  z.strictObject({ tool_sequence: z.array(z.string().min(1)) }),
  /** The turn cost at most this much. */
  z.strictObject({ max_cost_usd: z.number().min(0) }),
  /** The answer took at most this long. */
  z.strictObject({ max_seconds: z.number().positive() }),
]);
export type Grader = z.infer<typeof GraderSchema>;

const TurnSchema = z.union([
  /** Sends a message. */
  z.strictObject({ say: z.string().min(1), expect: z.array(GraderSchema).default([]) }),
  /** Grades a turn that has run before, by its id, without running anything. */
  z.strictObject({ recorded: z.uuid(), expect: z.array(GraderSchema).min(1) }),
]);

const CaseSchema = z.strictObject({
  name: z.string().min(1),
  /** Default: the model of the cluster. */
  model: z.string().min(1).optional(),
  /** Sent with the first message. */
  instructions: z.string().min(1).optional(),
  permission_mode: z.enum(permissionModeNames as [string, ...string[]]).optional(),
  turns: z.array(TurnSchema).min(1),
});
export type EvalCase = z.infer<typeof CaseSchema>;

/** The cases of a file. Throws CliError that names the file and the field. */
export function readCases(file: string, text: string): EvalCase[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents) || documents.length === 0) throw new CliError(`${file} contains no case.`);
  return documents.map((document, at) => {
    const where = documents.length === 1 ? file : `${file}, document ${at + 1}`;
    const [problem] = document.errors;
    if (problem !== undefined) throw new CliError(`${where} is not valid YAML: ${problem.message}`);
    const parsed = CaseSchema.safeParse(document.toJS());
    if (!parsed.success)
      throw new CliError(`${where}: ${firstIssue(parsed.error)}`, { fix: "docs/evals.md describes the fields." });
    return parsed.data;
  });
}
