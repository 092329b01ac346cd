// Renders a transcript for a terminal or a plain stream. Pure except for the cursor position that it tracks.

import type { Piece } from "./transcript.ts";
import type { Paint } from "../io/io.ts";
import { milliseconds, oneLine, summarizeInput, stripControl, timeOfDay } from "../tables/format.ts";

export interface Screen {
  readonly paint: Paint;
  /** Characters per line. */
  width(): number;
  /** Lines may be overwritten. */
  readonly canRewrite: boolean;
}

const minInputWidth = 12;

export class TranscriptRenderer {
  readonly #screen: Screen;
  /** The type of the last piece, and whether its line is still open. */
  #last: Piece["type"] | null = null;
  #open = false;
  /** The call on the last line. */
  #lastCall: string | null = null;

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  draw(piece: Piece): string {
    const { paint } = this.#screen;
    const rewrite = piece.type === "tool_finished" && this.#lastCall === piece.callId && this.#screen.canRewrite;
    this.#lastCall = null;
    switch (piece.type) {
      case "text":
        return this.#flowing(piece.type, stripControl(piece.text), (text) => text);
      case "thinking":
        return this.#flowing(piece.type, stripControl(piece.text), (text) => paint(["dim", "italic"], text));
      case "restart":
        return this.#line(piece.type, paint("dim", "(restarted)"));
      case "retry": {
        const when = piece.delayMs < 50 ? "at once" : `in ${milliseconds(piece.delayMs)}`;
        const reason = oneLine(piece.reason, Math.max(40, this.#screen.width() - 30));
        return this.#line(piece.type, paint("yellow", `↻ ${reason}; attempt ${piece.attempt} ${when}`));
      }
      case "tool_started":
        this.#lastCall = piece.callId;
        return this.#line(piece.type, paint("dim", this.#fit(`… ${piece.tool} ${summarizeInput(piece.input)}`)));
      case "tool_finished":
        return this.#line(piece.type, this.#finished(piece), rewrite);
      case "question":
        return this.#line(piece.type, this.#question(piece));
      case "answered": {
        const mark = piece.allowed ? paint("green", "✓") : paint("red", "✗");
        const verb = piece.allowed ? "approved" : "denied";
        return this.#line(piece.type, `${mark} ${piece.tool} ${verb} by ${oneLine(piece.by, 60)}`);
      }
      case "aside":
        return this.#line(
          piece.type,
          paint(piece.tone === "warning" ? "yellow" : "dim", `· ${stripControl(piece.text)}`),
        );
      case "said":
        return this.#line(piece.type, paint("cyan", `› ${stripControl(piece.text)}`));
      case "notice":
        return this.#line(piece.type, stripControl(piece.text));
      case "end":
        return this.endLine();
      default:
        return piece satisfies never;
    }
  }

  /** Ends a line that is still open. */
  endLine(): string {
    const end = this.#open ? "\n" : "";
    this.#open = false;
    this.#last = null;
    return end;
  }

  #line(type: Piece["type"], text: string, rewrite = false): string {
    const before = rewrite ? "\u001B[1A\r\u001B[2K" : this.#open ? "\n" : "";
    this.#open = false;
    this.#last = type;
    return `${before}${text}\n`;
  }

  #flowing(type: "text" | "thinking", text: string, colour: (text: string) => string): string {
    const begins = this.#last !== type;
    const shown = begins ? text.replace(/^\n+/, "") : text;
    if (shown === "") return "";
    const before = begins && this.#open ? "\n" : "";
    this.#last = type;
    this.#open = !shown.endsWith("\n");
    return before + colour(shown);
  }

  #finished(piece: Extract<Piece, { type: "tool_finished" }>): string {
    const { paint } = this.#screen;
    const mark = piece.isError ? paint("red", "✗") : paint("green", "✓");
    const took = piece.durationMs === null ? "" : `  ${milliseconds(piece.durationMs)}`;
    const room = Math.max(40, this.#screen.width() - 1) - `✓ ${piece.tool} ${took}  `.length;
    const result = oneLine(piece.content, Math.max(minInputWidth, Math.floor(room / 2)));
    const input = oneLine(summarizeInput(piece.input), Math.max(minInputWidth, room - result.length));
    return `${mark} ${piece.tool} ${paint("dim", input)}${took}${paint("dim", `  ${result}`)}`;
  }

  #question({ approvalId, tool, summary, reason, expiresAt }: Extract<Piece, { type: "question" }>): string {
    const { paint } = this.#screen;
    const until = new Date(expiresAt);
    // A summary begins with the tool's own name.
    const rest = summary.startsWith(tool) ? summary.slice(tool.length) : `  ${summary}`;
    return [
      `${paint("yellow", "?")} ${paint("bold", tool)}${stripControl(rest).replaceAll("\n", "\n  ")}`,
      paint(
        "dim",
        `  ${oneLine(reason, 500)}${Number.isNaN(until.getTime()) ? "" : ` Denied if not answered by ${timeOfDay(until)}.`}`,
      ),
      paint(
        "dim",
        `  y = approve · a = approve, also similar calls · n = deny, also with a reason: n not now   (${approvalId})`,
      ),
    ].join("\n");
  }

  #fit(text: string): string {
    return oneLine(text, Math.max(40, this.#screen.width() - 1));
  }
}
