// Operations of a program on the calls of its own tools.
import { z } from "zod";
import { programCallAnswer, programCallTake } from "../store/program-calls.ts";
import { operation } from "./operation.ts";

const { turnId: turn, callId: call, by, holdMs } = programCallTake.input.shape;
const { content, isError } = programCallAnswer.input.shape;

export const programCallsTake = operation({
  name: "programCalls.take",
  summary: "Take a call of a tool that the program itself runs, or renew the hold of it",
  role: "owner",
  input: z.strictObject({
    turn,
    call,
    /** The process of the program. */
    by,
    holdMs,
  }),
  output: programCallTake.output,
  http: {
    method: "POST",
    path: "/api/turns/:turn/calls/:call/take",
    answers: { 200: "The arguments; null: the call is not offered, is settled, or another process has it" },
  },
});

export const programCallsAnswer = operation({
  name: "programCalls.answer",
  summary: "Answer a call that this process of the program has taken; the first answer counts",
  role: "owner",
  input: z.strictObject({ turn, call, by, content, isError }),
  output: programCallAnswer.output,
  http: {
    method: "POST",
    path: "/api/turns/:turn/calls/:call/answer",
    answers: { 200: "`over`: the call has another result, or another process has taken it" },
  },
});
