// Draws one entry of the transcript. Pure.

import { Markdown } from "@earendil-works/pi-tui";
import { pluralize } from "@parley/kit";

import { milliseconds, stripControl, timeOfDay } from "../tables/format.ts";
import { describeCall, exitCodeOf, truncationOf } from "./call-view.ts";
import { cut, folded, wrapped } from "./lines.ts";
import type { ApprovalEntry, Entry, QuestionEntry, RecapEntry, ToolEntry } from "./state.ts";
import type { Theme } from "./theme.ts";

export interface Drawing {
  readonly theme: Theme;
  /** Columns. */
  readonly width: number;
  /** Nothing is folded. */
  readonly isExpanded: boolean;
}

const foldKey = "Ctrl-O shows all";

/** The lines of an entry, each of at most the width. */
export function linesOf(entry: Entry, drawing: Drawing): string[] {
  const { paint } = drawing.theme;
  const { width } = drawing;
  switch (entry.kind) {
    case "said": {
      const mark = entry.by === "you" ? "› " : entry.by === "voice" ? "heard › " : "elsewhere › ";
      const text = wrapped(stripControl(entry.text), width, mark).map((line) => paint("cyan", line));
      const files = entry.files.map((name) => paint("dim", cut(`  attached ${stripControl(name)}`, width)));
      return [...text, ...files];
    }
    case "answer":
      return markdownLines(entry.text, drawing);
    case "thinking":
      return thinkingLines(entry.text, drawing);
    case "tool":
      return toolLines(entry, drawing);
    case "approval":
      return approvalLines(entry, drawing);
    case "question":
      return questionLines(entry, drawing);
    case "note": {
      const colour = { plain: "dim", warning: "yellow", error: "red" } as const;
      return wrapped(entry.text, width, "· ").map((line) => paint(colour[entry.tone], line));
    }
    case "output":
      return wrapped(entry.text, width);
    case "recap":
      return recapLines(entry, drawing);
    default:
      return entry satisfies never;
  }
}

function markdownLines(text: string, { theme, width }: Drawing): string[] {
  return new Markdown(text, 0, 0, theme.markdown, undefined, { renderLatex: false }).render(width);
}

/** Of one text of a recap. */
const shownRecapLines = 5;

function recapLines({ lastUsed, texts }: RecapEntry, drawing: Drawing): string[] {
  const { paint } = drawing.theme;
  const width = drawing.width - 2;
  const lines = texts.flatMap(({ by, text }) =>
    folded(
      by === "agent" ? markdownLines(text, { ...drawing, width }) : wrapped(text, width, "› "),
      { head: shownRecapLines, tail: 0 },
      (hidden) => paint("dim", `… ${pluralize(hidden, "more line")}`),
    ),
  );
  return [paint("dim", `continued from ${lastUsed}`), ...lines].map((line) => `${paint("dim", "│")} ${line}`);
}

function thinkingLines(text: string, { theme: { paint }, width, isExpanded }: Drawing): string[] {
  const lines = wrapped(text.trim(), width, "  ").map((line) => paint(["dim", "italic"], line));
  const shown = isExpanded ? lines : folded(lines, { head: 0, tail: 3 }, (hidden) => foldNote(hidden, paint));
  return [paint("dim", "thinking"), ...shown];
}

function foldNote(hidden: number, paint: Theme["paint"]): string {
  return paint("dim", `  … ${pluralize(hidden, "more line")}; ${foldKey}`);
}

/** Of what a running command prints. */
const shownProgressLines = 5;

function lastLines(text: string, count: number): string[] {
  return text
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "")
    .slice(-count);
}

function toolLines(entry: ToolEntry, { theme: { paint }, width, isExpanded }: Drawing): string[] {
  const { title, diff } = describeCall(entry.input);
  const exitCode = exitCodeOf(entry.output);
  const hasFailed = entry.state === "failed" || (exitCode !== null && exitCode !== 0);
  const mark = { running: paint("yellow", "●"), denied: paint("red", "⊘") };
  const done = hasFailed ? paint("red", "✗") : paint("green", "✓");
  const facts = [
    entry.state === "denied" ? "denied" : "",
    exitCode !== null && exitCode !== 0 ? `exit ${exitCode}` : "",
    entry.durationMs === null ? "" : milliseconds(entry.durationMs),
    // Its restrictions are in the result.
    entry.isolation?.split(" (", 1)[0] ?? "",
  ].filter((fact) => fact !== "");
  const tail = facts.length === 0 ? "" : `  ${facts.join(" · ")}`;
  const head = entry.state === "running" || entry.state === "denied" ? mark[entry.state] : done;
  const room = width - entry.tool.length - tail.length - 3;
  const lines = [`${head} ${paint("bold", entry.tool)} ${cut(title, Math.max(8, room))}${paint("dim", tail)}`];
  const progress = lastLines(entry.progress, shownProgressLines).map((line) => paint("dim", cut(`  ${line}`, width)));
  const isBlock = title.includes("\n");
  const more = isExpanded && isBlock ? wrapped(title, width, "  ").map((line) => paint("dim", line)) : [];
  const change = diffLines(diff, { paint, width, isExpanded });
  const truncated = truncationOf(entry.output);
  const notice =
    truncated === null ? [] : [paint("yellow", cut(`  the model sees part of the result: ${truncated}`, width))];
  return [
    ...lines.map((line) => cutStyled(line, width)),
    ...more,
    ...change,
    ...progress,
    ...outputOf(entry, hasFailed, diff.length > 0, { paint, width, isExpanded }),
    ...notice,
  ];
}

interface Style {
  readonly paint: Theme["paint"];
  readonly width: number;
  readonly isExpanded: boolean;
}

function outputOf(entry: ToolEntry, hasFailed: boolean, isChange: boolean, style: Style): string[] {
  const { paint, width, isExpanded } = style;
  const text = isExpanded ? entry.output.trim() : withoutSummary(entry.output);
  // The difference shows more than a confirmation.
  if (entry.state === "running" || text === "" || (isChange && !hasFailed && !isExpanded)) return [];
  const lines = isExpanded ? wrapped(text, width, "  ") : text.split("\n").map((line) => cut(`  ${line}`, width));
  const painted = lines.map((line) => paint("dim", line));
  return isExpanded ? painted : folded(painted, { head: 3, tail: 2 }, (hidden) => foldNote(hidden, paint));
}

/** The result of a command without its last line, which the title shows. */
function withoutSummary(output: string): string {
  return output.replace(/\n?\[exit code [^\n]*\]\s*$/, "").trim();
}

function diffLines(diff: readonly string[], { paint, width, isExpanded }: Style): string[] {
  const painted = diff.map((line) => {
    const text = cut(`  ${line}`, width);
    if (line.startsWith("+")) return paint("green", text);
    return line.startsWith("-") ? paint("red", text) : paint("dim", text);
  });
  return isExpanded ? painted : folded(painted, { head: 12, tail: 3 }, (hidden) => foldNote(hidden, paint));
}

function approvalLines(entry: ApprovalEntry, drawing: Drawing): string[] {
  const { theme, width, isExpanded } = drawing;
  const { paint } = theme;
  const { tool, decision } = entry;
  const { title, diff } = describeCall(entry.input);
  if (decision !== null) {
    const mark = decision.allowed ? paint("green", "✓") : paint("red", "✗");
    const verb = decision.allowed ? "approved" : "denied";
    return [
      cutStyled(
        `${mark} ${tool} ${paint("dim", cut(title, Math.max(8, width - tool.length - 40)))} ${verb} by ${decision.by}`,
        width,
      ),
      ...(decision.message === "" ? [] : wrapped(decision.message, width, "  ")),
    ];
  }
  // A summary begins with the tool's own name.
  const summary = entry.summary.startsWith(tool)
    ? entry.summary.slice(tool.length).replace(/^:?\s+/, "")
    : entry.summary;
  const what = title === "" || diff.length > 0 ? summary : title;
  const until = new Date(entry.expiresAt);
  const deadline = Number.isNaN(until.getTime()) ? "" : ` Denied if not answered by ${timeOfDay(until)}.`;
  return [
    cutStyled(`${paint("yellow", "?")} ${paint("bold", tool)} needs approval (${entry.approvalId})`, width),
    ...wrapped(what, width, "  "),
    ...diffLines(diff, { paint, width, isExpanded }),
    ...wrapped(`${entry.reason}${deadline}`, width, "  ").map((line) => paint("dim", line)),
  ];
}

function questionLines({ question, options, isOpen }: QuestionEntry, { theme: { paint }, width }: Drawing): string[] {
  const questionText = wrapped(question, width, "? ").map((line) => paint(isOpen ? "yellow" : "dim", line));
  return [
    ...questionText,
    ...options.flatMap((option, index) => wrapped(stripControl(option), width, `  ${index + 1}. `)),
  ];
}

/** Cuts a line that contains styles. */
function cutStyled(line: string, width: number): string {
  return cut(line, width);
}
