// A server's question, put to the person of the call in their own conversation: a form field by field, a link as a link. Nothing is said in
// the person's place: without an answer the server is told that there is none.
import type { ElicitRequestParams, ElicitResult } from "@modelcontextprotocol/client";
import type { Person, Reply } from "../../serving/person.ts";
import { controlWord, readAnswer, wantedText, yesOrNo } from "./answers.ts";
import { mustBeAnswered, readForm, type Field, type FieldValue } from "./fields.ts";

export interface Elicited {
  result: ElicitResult;
  /** What came of it, for the model. */
  outcome: string;
}

/** Answers to one field that may not fit before the form is given up. */
const maxWrong = 4;
/** Of the server's own words. */
const maxMessage = 1_500;

type Ask = (text: string, options?: readonly string[]) => Promise<Reply>;

/** Rejects with the signal's reason, when the call is over. */
export async function elicit(
  server: string,
  params: ElicitRequestParams,
  person: Person,
  signal: AbortSignal,
): Promise<Elicited> {
  const ask: Ask = (text, options = []) => person.ask(text, options, signal);
  const said = plainText(params.message).slice(0, maxMessage).toWellFormed();
  const asks = `The MCP server "${server}", which I am using for this, asks you:\n${said}`;
  if (params.mode === "url") return openLink(server, params.url, asks, ask);
  const form = readForm(params.requestedSchema);
  if ("problem" in form) return declined(`declined without asking: ${form.problem}`);
  return form.fields.length === 0 ? confirm(asks, ask) : fill(form.fields, asks, ask);
}

/** A question without fields: a yes or a no. */
async function confirm(asks: string, ask: Ask): Promise<Elicited> {
  let text = `${asks}\n\nAnswer yes or no. "cancel" stops asking.`;
  for (let wrong = 0; wrong < maxWrong; wrong++) {
    const reply = await ask(text);
    if (reply.kind !== "said") return unanswered(reply);
    const word = controlWord(reply.text);
    if (word === "cancel") return cancelled;
    const agreed = word === "decline" ? false : yesOrNo(reply.text);
    if (agreed === false) return declined("the user said no");
    if (agreed === true) return { result: { action: "accept", content: {} }, outcome: "the user said yes" };
    text = 'Please answer yes or no; "cancel" stops asking.';
  }
  return cancelled;
}

async function openLink(server: string, url: string, asks: string, ask: Ask): Promise<Elicited> {
  const link = URL.canParse(url) ? new URL(url) : null;
  if (link === null || (link.protocol !== "https:" && link.protocol !== "http:")) {
    return declined("declined without asking: what it wants to have opened is no web address");
  }
  const where = `It wants you to open this page of ${link.host}:\n${link.href}`;
  let text = `${asks}\n\n${where}\n\nI have not looked at it. Answer yes when you have opened it, or no to decline. Enter secrets only there, never here.`;
  for (let wrong = 0; wrong < maxWrong; wrong++) {
    const reply = await ask(text);
    if (reply.kind !== "said") return unanswered(reply);
    const word = controlWord(reply.text);
    if (word === "cancel") return cancelled;
    const agreed = word === "done" ? true : word === "decline" ? false : yesOrNo(reply.text);
    if (agreed === false) return declined("the user did not want to open the link");
    if (agreed === true) {
      return { result: { action: "accept" }, outcome: `the user opened a page of ${link.host} for ${server}` };
    }
    text = "Please answer yes when you have opened the page, or no to decline.";
  }
  return cancelled;
}

async function fill(fields: readonly Field[], asks: string, ask: Ask): Promise<Elicited> {
  const content: Record<string, FieldValue> = {};
  for (const [index, field] of fields.entries()) {
    const mayEnd = !fields.slice(index).some(mustBeAnswered);
    const number = fields.length === 1 ? "" : `${index + 1} of ${fields.length}: `;
    const question = number + fieldText(field, mayEnd && index < fields.length - 1);
    const first = `${asks}\n\n${question}\n\n"decline" says no to the server, "cancel" stops asking. Give no passwords here.`;
    const filled = await askField(field, index === 0 ? first : question, mayEnd, ask);
    if ("result" in filled) return filled;
    if (filled.value !== undefined) content[field.key] = filled.value;
    if (filled.rest) {
      for (const left of fields.slice(index)) if (left.default !== undefined) content[left.key] = left.default;
      break;
    }
  }
  const given = Object.entries(content).map(([key, value]) => `${key}: ${JSON.stringify(value)}`);
  const outcome = `the user answered ${given.length === 0 ? "nothing of it" : given.join(", ").slice(0, 2_000)}`;
  return { result: { action: "accept", content }, outcome };
}

/** The value of one field, undefined where it is left out; or the end of the whole form. */
async function askField(
  field: Field,
  question: string,
  mayEnd: boolean,
  ask: Ask,
): Promise<{ value: FieldValue | undefined; rest: boolean } | Elicited> {
  const { kind } = field;
  const options = kind.type === "choice" || kind.type === "choices" ? kind.choices.map(({ label }) => label) : [];
  let text = question;
  for (let wrong = 0; wrong < maxWrong; wrong++) {
    const reply = await ask(text, options.slice(0, 50));
    if (reply.kind !== "said") return unanswered(reply);
    const answer = readAnswer(field, reply.text, mayEnd);
    switch (answer.kind) {
      case "value":
        return { value: answer.value, rest: false };
      case "skip":
        return { value: field.default, rest: answer.rest };
      case "decline":
        return declined("the user said no");
      case "cancel":
        return cancelled;
      default:
        text = `${answer.problem} ${field.label}?`;
    }
  }
  return cancelled;
}

function fieldText(field: Field, mayEnd: boolean): string {
  const { label, about, default: preset } = field;
  const named = about === "" || about === label ? label : `${label} – ${about}`;
  const left = preset === undefined ? "leaves it out" : `takes ${defaultText(field)}`;
  return [
    named,
    wantedText(field),
    mustBeAnswered(field) ? "" : `"skip" ${left}${mayEnd ? ', "done" does so with all that is left' : ""}.`,
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

const cancelled: Elicited = { result: { action: "cancel" }, outcome: "the user did not want to answer now" };

function declined(outcome: string): Elicited {
  return { result: { action: "decline" }, outcome };
}

function unanswered(reply: Exclude<Reply, { kind: "said" }>): Elicited {
  if (reply.kind === "nobody") return declined(`declined: nobody can be asked, ${reply.reason}`);
  return { result: { action: "cancel" }, outcome: "nobody has answered in time" };
}

/** Without what could make it look like something else. */
function plainText(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n]|\p{Cf}/gu, "").trim();
}
