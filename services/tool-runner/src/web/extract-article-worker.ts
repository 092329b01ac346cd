// Thread that extracts the text of one page and ends.
import { parentPort, workerData } from "node:worker_threads";
import { z } from "zod";
import { readHtml } from "./extract-article.ts";

const Job = z.object({ html: z.string(), url: z.string(), as: z.enum(["markdown", "text"]) });

parentPort?.postMessage(readHtml(Job.parse(workerData)));
