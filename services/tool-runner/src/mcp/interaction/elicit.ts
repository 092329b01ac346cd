// Puts an MCP server's elicitation to the person of the call in their conversation: a form field by field, or a link. It never
// answers for the person: without an answer the server receives a decline or cancel.
import type { ElicitRequestParams, ElicitResult } from "@modelcontextprotocol/client";
import type { PersonPrompt, Reply } from "../../tool/requests.ts";
import { parseControlWord, readAnswer, promptFor, parseYesNo } from "./answers.ts";
import { isRequired, parseForm, type Field, type FieldValue } from "./fields.ts";

export interface Elicited {
  result: ElicitResult;
  /** The outcome, for the model. */
  outcome: string;
}

/** Invalid answers to one field after which the form is cancelled. */
const maxWrong = 4;
/** Maximum characters of the server's message. */
const maxMessage = 1_500;

type Ask = (text: string, options: readonly string[]) => Promise<Reply>;

/** Rejects with the signal's reason when the call ends. */
export async function elicit(
  server: string,
  params: ElicitRequestParams,
  person: PersonPrompt,
  signal: AbortSignal,
): Promise<Elicited> {
  const ask: Ask = (text, options) => person.ask(text, options, signal);
  const message = plainText(params.message).slice(0, maxMessage).toWellFormed();
  const asks = `The MCP server "${server}", which I am using for this task, asks you:\n${message}`;
  if (params.mode === "url") return openLink(server, params.url, asks, ask);
  const form = parseForm(params.requestedSchema);
  if ("problem" in form) return declined(`declined without asking the user: ${form.problem}`);
  return form.fields.length === 0 ? confirm(asks, ask) : fill(form.fields, asks, ask);
}

/** Asks until `read` accepts an answer: with a result, or with a message that replaces the question. Cancels after too many attempts. */
async function askUntil<T>(
  ask: Ask,
  question: string,
  options: readonly string[],
  read: (text: string) => T | Elicited | string,
): Promise<T | Elicited> {
  let text = question;
  for (let wrong = 0; wrong < maxWrong; wrong++) {
    const reply = await ask(text, options);
    if (reply.kind === "nobody") return declined(`declined: no person can answer, ${reply.reason}`);
    if (reply.kind === "silent") return { result: { action: "cancel" }, outcome: "nobody answered in time" };
    const answer = read(reply.text);
    if (typeof answer !== "string") return answer;
    text = answer;
  }
  return cancelled;
}

/** A question without fields: the person accepts or declines. */
function confirm(asks: string, ask: Ask): Promise<Elicited> {
  return askUntil<Elicited>(ask, `${asks}\n\nAnswer yes or no, or "cancel" to end the question.`, [], (text) => {
    const word = parseControlWord(text);
    if (word === "cancel") return cancelled;
    const agreed = word === "decline" ? false : parseYesNo(text);
    if (agreed === undefined) return 'Please answer yes or no, or "cancel" to end the question.';
    return agreed
      ? { result: { action: "accept", content: {} }, outcome: "the user accepted" }
      : declined("the user declined");
  });
}

async function openLink(server: string, url: string, asks: string, ask: Ask): Promise<Elicited> {
  const link = URL.canParse(url) ? new URL(url) : null;
  if (link === null || (link.protocol !== "https:" && link.protocol !== "http:")) {
    return declined("declined without asking the user: the link is not a web address");
  }
  const where = `It requests that you open this page of ${link.host}:\n${link.href}`;
  const question = `${asks}\n\n${where}\n\nI have not opened it. Answer yes when you have opened it, or no to decline. Enter secrets only there, never here.`;
  return askUntil<Elicited>(ask, question, [], (text) => {
    const word = parseControlWord(text);
    if (word === "cancel") return cancelled;
    const agreed = word === "done" ? true : word === "decline" ? false : parseYesNo(text);
    if (agreed === undefined) return "Please answer yes when you have opened the page, or no to decline.";
    return agreed
      ? { result: { action: "accept" }, outcome: `the user opened a page of ${link.host} for ${server}` }
      : declined("the user declined to open the link");
  });
}

async function fill(fields: readonly Field[], asks: string, ask: Ask): Promise<Elicited> {
  const content: Record<string, FieldValue> = {};
  for (const [index, field] of fields.entries()) {
    const mayEnd = !fields.slice(index).some(isRequired);
    const number = fields.length === 1 ? "" : `${index + 1} of ${fields.length}: `;
    const question = number + fieldText(field, mayEnd && index < fields.length - 1);
    const first = `${asks}\n\n${question}\n\nAnswer "decline" to refuse, or "cancel" to end the question. Do not enter passwords here.`;
    const filled = await askField(field, index === 0 ? first : question, mayEnd, ask);
    if ("result" in filled) return filled;
    if (filled.value !== undefined) content[field.key] = filled.value;
    if (filled.rest) {
      for (const left of fields.slice(index)) if (left.default !== undefined) content[left.key] = left.default;
      break;
    }
  }
  const given = Object.entries(content).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const outcome = `the user answered ${given.length === 0 ? "no field" : given.join(", ").slice(0, 2_000)}`;
  return { result: { action: "accept", content }, outcome };
}

/** The value of one field, undefined if skipped; or the outcome that ends the form. */
function askField(
  field: Field,
  question: string,
  mayEnd: boolean,
  ask: Ask,
): Promise<{ value: FieldValue | undefined; rest: boolean } | Elicited> {
  const { kind } = field;
  const options = kind.type === "choice" || kind.type === "choices" ? kind.choices.map(({ label }) => label) : [];
  return askUntil(ask, question, options.slice(0, 50), (text) => {
    const answer = readAnswer(field, text, mayEnd);
    switch (answer.kind) {
      case "value":
        return { value: answer.value, rest: false };
      case "skip":
        return { value: field.default, rest: answer.rest };
      case "decline":
        return declined("the user declined");
      case "cancel":
        return cancelled;
      default:
        return `${answer.problem} ${field.label}?`;
    }
  });
}

function fieldText(field: Field, mayEnd: boolean): string {
  const { label, about, default: preset } = field;
  const named = about === "" || about === label ? label : `${label} – ${about}`;
  const left = preset === undefined ? "omits it" : `uses ${defaultText(field)}`;
  return [
    named,
    promptFor(field),
    isRequired(field) ? "" : `"skip" ${left}${mayEnd ? ', "done" skips all remaining fields' : ""}.`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function defaultText({ kind, default: preset }: Field): string {
  if (typeof preset === "boolean") return preset ? "yes" : "no";
  const values = [preset].flat().map(String);
  if (kind.type !== "choice" && kind.type !== "choices") return values.join(", ");
  return values.map((value) => kind.choices.find((choice) => choice.value === value)?.label ?? value).join(", ");
}

const cancelled: Elicited = { result: { action: "cancel" }, outcome: "the user cancelled the question" };

function declined(outcome: string): Elicited {
  return { result: { action: "decline" }, outcome };
}

/** Removes control and format characters, which could disguise the text. */
function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, "").trim();
}
