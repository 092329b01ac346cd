// What people are told in one turn, as a text that only ever grows: the model's text, what the tool `message` says, or both, as the output
// mode has it. Pure.
import type { OutputMode, ParleySettings, SessionEvent } from "@parley/contracts";
import { AnswerText } from "./answer-text.ts";
import { jsonOr } from "./sdk-blocks.ts";
import type { ToolNews } from "./tool-calls.ts";

export type OutputRule = ParleySettings["output"];

/** The names under which the model may call the tool that speaks. */
const messageTools = new Set(["message", "send_message"]);

export class SpokenText {
  readonly #rule: OutputRule;
  readonly #text = new AnswerText();
  readonly #said: string[] = [];
  #any = false;

  constructor(rule: OutputRule) {
    this.#rule = rule;
  }

  /** What an event adds. `calls` is what it says about tools. */
  event(event: SessionEvent, calls: readonly ToolNews[]): string {
    switch (event.type) {
      case "turn.started":
        this.#text.restart();
        return "";
      case "text.delta":
        return this.#streams ? this.#tell(this.#text.delta(event.step, event.attempt, event.text)) : "";
      case "turn.finished":
        return this.#end(event.text, event.exitReason === "end_turn" || event.exitReason === "stop_sequence");
      default:
        return this.#mode === "final_text" ? "" : calls.map((call) => this.#called(call)).join("");
    }
  }

  get #mode(): OutputMode {
    return this.#rule.mode;
  }

  get #streams(): boolean {
    return this.#mode !== "message_tool";
  }

  #called(call: ToolNews): string {
    if (call.news !== "finished" || call.isError || !messageTools.has(call.tool)) return "";
    const text = saidHere(call.input);
    if (text === "") return "";
    this.#said.push(text);
    return this.#tell(this.#any ? `\n\n${text}` : text);
  }

  #end(text: string, ended: boolean): string {
    if (this.#mode === "final_text") return this.#tell(this.#text.finish(text));
    if (this.#said.includes(text)) return "";
    if (this.#mode === "both") return this.#tell(this.#text.finish(text));
    // What the loop itself has to say is always told; an answer only where nothing was said.
    if (ended && (this.#said.length > 0 || this.#rule.unspoken === "log")) return "";
    return this.#tell(this.#any && text !== "" ? `\n\n${text}` : text);
  }

  #tell(text: string): string {
    this.#any ||= text !== "";
    return text;
  }
}

/** The text of a call of `message`, where it goes to this conversation; else nothing. */
function saidHere(input: string): string {
  const value = jsonOr(input);
  if (typeof value !== "object" || value === null) return "";
  if ("to" in value || "chat_id" in value) return "";
  const text = "text" in value ? value.text : "content" in value ? value.content : undefined;
  return typeof text === "string" ? text.trim() : "";
}
