// Views of one vocabulary: what happens in a session (packages/contracts, events.ts) in the words of other protocols. Pure.
export { AnswerText } from "./answer-text.ts";
