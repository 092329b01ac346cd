// Streams one answer: node chat.mjs <text>
import OpenAI from "openai";

const { PARLEY_URL = "http://127.0.0.1:8787", PARLEY_TOKEN } = process.env;
const openai = new OpenAI({ baseURL: `${PARLEY_URL}/v1`, apiKey: PARLEY_TOKEN });

const stream = await openai.chat.completions.create({
  model: "parley",
  // Names the conversation: the next call with this name continues it.
  user: "example",
  messages: [{ role: "user", content: process.argv.slice(2).join(" ") || "Hello" }],
  stream: true,
});
for await (const part of stream) process.stdout.write(part.choices[0]?.delta.content ?? "");
process.stdout.write("\n");
