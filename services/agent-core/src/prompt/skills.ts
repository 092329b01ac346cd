// Parses skills (folders with a SKILL.md that begins with a YAML head) and renders the part of the prompt that lists them. Pure.
// An invalid head yields a problem that names the file; it never stops a turn.
import type { ContextSettings, SkillProblem } from "@parley/contracts";
import { parse } from "yaml";
import { z } from "zod";
import { isBuiltIn } from "./built-in-skills.ts";
import { excerpt, missingFrom } from "./excerpt.ts";
import type { PromptDocument, PromptDocuments } from "./documents.ts";

export interface Skill {
  name: string;
  description: string;
  /** When to use the skill, if its head defines it. */
  whenToUse: string | undefined;
  /** The path for the tool `read`. */
  location: string;
  /** Whether the prompt contains the full body. */
  always: boolean;
  requires: { bins: readonly string[]; env: readonly string[] };
  /** Tools that the author wants the skill to use without approval. */
  allowedTools: readonly string[];
  /** The text after the head. */
  body: string;
  /** Descriptions of unmet requirements; the skill is usable if empty. */
  missing: readonly string[];
}

const Names = z.array(z.string().min(1)).default([]);
const Head = z.looseObject({
  name: z.string().trim().min(1).max(64),
  description: z.string().trim().min(1),
  when_to_use: z.string().trim().min(1).optional(),
  always: z.boolean().default(false),
  requires: z.looseObject({ bins: Names, env: Names }).prefault({}),
  "allowed-tools": z
    .union([z.array(z.string()), z.string().transform((text) => text.split(/[\s,]+/))])
    .default([])
    .transform((names) => names.filter((name) => name !== "")),
});

const skillPath = /^skills\/[^/]+\/SKILL\.md$/;

/**
 * The skills among the documents, sorted by name, and a problem for each invalid one. Of skills with the same name the workspace's
 * takes precedence, then the first by path.
 */
export function readSkills(
  documents: PromptDocuments,
  builtIn: readonly PromptDocument[] = [],
): { skills: Skill[]; problems: SkillProblem[] } {
  const skills = new Map<string, Skill>();
  const problems: SkillProblem[] = [];
  const own = [...documents.values()].filter(({ path }) => skillPath.test(path));
  for (const document of [...own.sort(byPath), ...builtIn.toSorted(byPath)]) {
    const read = readSkill(document);
    if (typeof read === "string") problems.push({ path: document.path, reason: read });
    else if (!skills.has(read.name)) skills.set(read.name, read);
    else if (own.includes(document))
      problems.push({
        path: document.path,
        reason: `not loaded: ${skills.get(read.name)?.location ?? ""} has the same name, ${read.name}`,
      });
  }
  return { skills: [...skills.values()].sort((a, b) => (a.name < b.name ? -1 : 1)), problems };
}

/** The folders below skills/ that contain no SKILL.md, by the paths of all documents. */
export function foldersWithoutSkill(paths: readonly string[]): SkillProblem[] {
  const complete = new Set(paths.filter((path) => skillPath.test(path)).map(folderOf));
  const folders = new Set(paths.filter((path) => path.startsWith("skills/")).map(folderOf));
  return [...folders]
    .filter((folder) => !complete.has(folder))
    .sort()
    .map((path) => ({ path, reason: "not loaded: the folder has no SKILL.md" }));
}

/** `skills/<name>` of a path below it. */
function folderOf(path: string): string {
  return path.split("/").slice(0, 2).join("/");
}

/** The skill, or a text that describes why it is not loaded. */
function readSkill({ path, content, untrusted }: PromptDocument): Skill | string {
  // The prompt would present its description as trusted, and its body is an instruction.
  if (untrusted.length > 0)
    return `not loaded: it contains lines written after reading untrusted content. A person can mark it as trusted: parley docs vouch ${shellWord(path)}`;
  const parts = /^---[ \t]*\r?\n([\s\S]*?)\r?\n?---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(content.replace(/^\uFEFF/, ""));
  if (parts === null) return "not loaded: it does not begin with a YAML head between two lines of ---";
  let head: unknown;
  try {
    head = parse(parts[1] ?? "", { maxAliasCount: 10 });
  } catch (error) {
    return `not loaded: its head is not valid YAML: ${error instanceof Error ? (error.message.split("\n")[0] ?? "") : "unreadable"}`;
  }
  const parsed = Head.safeParse(head);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    const field = issue === undefined || issue.path.length === 0 ? "its head" : issue.path.join(".");
    return `not loaded: ${field}: ${issue?.message ?? "invalid"}`;
  }
  const { name, description, when_to_use: whenToUse, always, requires } = parsed.data;
  return {
    name: oneLine(name),
    description: oneLine(description),
    whenToUse: whenToUse === undefined ? undefined : oneLine(whenToUse),
    location: path,
    always,
    requires: { bins: requires.bins, env: requires.env },
    allowedTools: parsed.data["allowed-tools"],
    body: (parts[2] ?? "").trim(),
    missing: [],
  };
}

/** The skills with their unmet requirements. */
export function withMissing(
  skills: readonly Skill[],
  missing: { bins: ReadonlySet<string>; env: ReadonlySet<string> },
): Skill[] {
  return skills.map((skill) => ({
    ...skill,
    missing: [
      ...skill.requires.bins.filter((name) => missing.bins.has(name)).map((name) => `the program ${name}`),
      ...skill.requires.env.filter((name) => missing.env.has(name)).map((name) => `the variable ${name}`),
    ],
  }));
}

/** The list of skills, and the full body of each skill marked `always`; empty if there are none. */
export function renderSkills(
  skills: readonly Skill[],
  limits: ContextSettings,
  room: { canRead: boolean; canLoad?: boolean; bodyChars: number },
): string {
  const whole = skills.filter(isWhole);
  const { canRead, canLoad = false } = room;
  const listed = listSkills(
    skills.filter((skill) => !isWhole(skill) && (canLoad || (canRead && !isBuiltIn(skill.location)))),
    limits,
    canLoad,
  );
  let { bodyChars } = room;
  const bodies = whole.map((skill) => {
    const max = Math.min(limits.max_document_chars, bodyChars);
    const text = excerpt(skill.body, max, (missing) =>
      missingFrom(skill.location, missing, skill.body.length, room.canRead),
    );
    bodyChars = Math.max(0, bodyChars - text.length);
    return `### Skill: ${skill.name}\n\n${text}`;
  });
  return [listed, ...bodies].filter((text) => text !== "").join("\n\n");
}

function isWhole({ always, missing, body }: Skill): boolean {
  return always && missing.length === 0 && body !== "";
}

function listSkills(skills: readonly Skill[], limits: ContextSettings, canLoad: boolean): string {
  if (skills.length === 0) return "";
  const lines: string[] = [];
  let chars = 0;
  for (const skill of skills.slice(0, limits.max_skills)) {
    const line = skillLine(skill);
    chars += line.length + 1;
    if (chars > limits.max_skills_chars) break;
    lines.push(line);
  }
  const more = skills.length - lines.length;
  if (more > 0) lines.push(`[${more} more skills are not listed. List all of them with ls({"path":"skills"}).]`);
  return `Skills are instructions for certain kinds of work. If one fits the request, ${canLoad ? "load it with skill" : "read its file"} before you begin. If several fit, choose the most specific one and read one at a time. If none fits, read none.\n\n${lines.join("\n")}`;
}

const maxLineChars = 1_024;

/** One skill as one line of the list. */
export function skillLine({ name, description, whenToUse, location, missing }: Skill): string {
  const lacks = missing.length === 0 ? "" : ` (unavailable: requires ${missing.join(", ")})`;
  const text = `${description}${whenToUse === undefined ? "" : ` Use it when: ${whenToUse}`}`;
  const short = text.length <= maxLineChars ? text : `${text.slice(0, maxLineChars - 1).toWellFormed()}…`;
  return `- ${name}${lacks}: ${short} (${location})`;
}

/** A path quoted as one argument of a shell command that a person copies. */
function shellWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", String.raw`'\''`)}'`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function byPath(a: PromptDocument, b: PromptDocument): number {
  return a.path < b.path ? -1 : 1;
}
