// What a migration may contain so that replicas of the version before keep working while it runs and afterwards. The rules read the text,
// not PostgreSQL's grammar: write one clause a line.
import { parseMigration } from "../../src/db/migration-file.ts";

interface Rule {
  pattern: RegExp;
  remedy: string;
}

/** A contraction is allowed in a file of its own that names the version which no longer needs the old shape. */
const contracting: readonly Rule[] = [
  { pattern: /\bDROP (COLUMN|TABLE|TYPE|VIEW|FUNCTION|SCHEMA)\b/i, remedy: "the version before still uses it" },
  { pattern: /\bRENAME\b/i, remedy: "add the new name, and remove the old one a version later" },
  { pattern: /\bALTER (COLUMN )?\w+ (SET DATA )?TYPE\b/i, remedy: "it rewrites the table; add a column" },
  { pattern: /\bSET NOT NULL\b/i, remedy: "the version before still writes NULL" },
];

const expanding: readonly Rule[] = [
  {
    pattern: /\bADD COLUMN\b(?![^,;]*\bDEFAULT\b)[^,;]*\bNOT NULL\b/i,
    remedy: "the version before does not write it; add a DEFAULT or allow NULL",
  },
  {
    pattern: /\bADD CONSTRAINT\b(?![^;]*\bNOT VALID\b)[^;]*\b(CHECK|FOREIGN KEY)\b/i,
    remedy: "it blocks writers while all rows are checked; add it NOT VALID, and VALIDATE CONSTRAINT in a later file",
  },
];

const contraction = /^-- migration: contract since \d+\.\d+\.\d+$/m;

/** The problems of a migration file; empty if there is none. */
export function migrationProblems(text: string): string[] {
  const { mode, statements } = parseMigration(text);
  // The body of a function runs when it is called, not while the migration does.
  const sql = statements
    .join(";\n")
    .replaceAll(/--.*$/gm, "")
    .replaceAll(/\bAS \$\$.*?\$\$/gis, "");
  const rules = contraction.test(text) ? expanding : [...contracting, ...expanding];
  const problems = rules.flatMap(({ pattern, remedy }) => {
    const found = pattern.exec(sql)?.[0];
    return found === undefined ? [] : `${found.replaceAll(/\s+/g, " ")}: ${remedy}`;
  });
  if (mode !== "transaction") return problems;
  const created = new Set([...sql.matchAll(/\bCREATE TABLE (?:IF NOT EXISTS )?(\S+)/gi)].map((match) => match[1]));
  for (const [, table = ""] of sql.matchAll(/\bCREATE (?:UNIQUE )?INDEX\b[^;]*?\bON (?:ONLY )?([\w.]+)/gi)) {
    if (!created.has(table))
      problems.push(`CREATE INDEX ON ${table}: it blocks writers; use a file with "-- migration: concurrent"`);
  }
  for (const [, table = ""] of sql.matchAll(
    /\b(?:UPDATE|DELETE FROM) (?:ONLY )?([\w.]+)\b(?!\s*(?:OR|CASCADE|SET NULL))/gi,
  )) {
    if (table.includes(".") && !created.has(table))
      problems.push(`${table} is rewritten in one transaction; use a file with "-- migration: batches"`);
  }
  return problems;
}
