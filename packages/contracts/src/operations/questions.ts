// Operations on questions of the agent that wait for a person's answer.
import { z } from "zod";
import { questionList } from "../store/questions.ts";
import { count } from "./fields.ts";
import { operation } from "./operation.ts";

export const questionsList = operation({
  name: "questions.list",
  summary: "Questions of the agent in all sessions that wait for an answer, newest first",
  role: "owner",
  input: z.strictObject({ limit: count(1, 100).default(50) }),
  output: questionList.output,
  http: {
    method: "GET",
    path: "/api/questions",
    answers: { 200: "The questions; a message to the session is the answer" },
  },
});
