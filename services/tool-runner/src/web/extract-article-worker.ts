// Thread that extracts the text of one page and ends.
import { parentPort } from "node:worker_threads";
import { z } from "zod";
import { readHtml } from "./extract-article.ts";

const Job = z.object({ html: z.string(), url: z.string(), as: z.enum(["markdown", "text"]) });

parentPort?.once("message", (job: unknown) => parentPort?.postMessage(readHtml(Job.parse(job))));
