// The text that people see in one turn, as an append-only text. The output mode selects the model's text, the texts of the tool
// `message`, or both. Pure.
import type { OutputMode, ParleySettings, SessionEvent } from "@parley/contracts";
import { AnswerText } from "./answer-text.ts";
import { jsonOr } from "./sdk-blocks.ts";
import type { ToolCallUpdate } from "./tool-calls.ts";

export type OutputRule = ParleySettings["output"];

/** The names under which the model may call the tool `message`. */
const messageTools = new Set(["message", "send_message"]);

export class VisibleText {
  readonly #rule: OutputRule;
  readonly #text = new AnswerText();
  readonly #texts: string[] = [];
  #any = false;

  constructor(rule: OutputRule) {
    this.#rule = rule;
  }

  /** Returns the text that an event adds. `calls`: the tool call updates of the same event. */
  event(event: SessionEvent, calls: readonly ToolCallUpdate[]): string {
    switch (event.type) {
      case "turn.started":
        this.#text.restart();
        return "";
      case "text.delta":
        return this.#streams ? this.#emit(this.#text.delta(event.step, event.attempt, event.text)) : "";
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

  #called(call: ToolCallUpdate): string {
    if (call.news !== "finished" || call.isError || !messageTools.has(call.tool)) return "";
    const text = messageText(call.input);
    if (text === "") return "";
    this.#texts.push(text);
    return this.#emit(this.#any ? `\n\n${text}` : text);
  }

  #end(text: string, ended: boolean): string {
    if (this.#mode === "final_text") return this.#emit(this.#text.finish(text));
    if (this.#texts.includes(text)) return "";
    if (this.#mode === "both") return this.#emit(this.#text.finish(text));
    // Texts of the loop are always shown; the model's answer only when the tool has sent nothing.
    if (ended && (this.#texts.length > 0 || this.#rule.unspoken === "log")) return "";
    return this.#emit(this.#any && text !== "" ? `\n\n${text}` : text);
  }

  #emit(text: string): string {
    this.#any ||= text !== "";
    return text;
  }
}

/** The text of a `message` call to this conversation; empty when it goes to another one. */
function messageText(input: string): string {
  const value = jsonOr(input);
  if (typeof value !== "object" || value === null) return "";
  if ("to" in value || "chat_id" in value) return "";
  const text = "text" in value ? value.text : "content" in value ? value.content : undefined;
  return typeof text === "string" ? text.trim() : "";
}
