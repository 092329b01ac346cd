// What prompts are made from beside the settings: documents and skills, with what the machine of the tools lacks for them.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { toolRequirements } from "@parley/contracts";
import { DocumentCache, type CacheOptions } from "./document-cache.ts";
import type { PromptDocuments } from "./documents.ts";
import { readSkills, withMissing, type Skill } from "./skills.ts";

/** How long an answer about programs and variables holds. */
const requirementsMs = 60_000;
const requirementsTimeoutMs = 2_000;

interface Missing {
  bins: ReadonlySet<string>;
  env: ReadonlySet<string>;
}

const nothingMissing: Missing = { bins: new Set(), env: new Set() };

export class PromptSources {
  readonly documents: DocumentCache;
  readonly #bus: Bus;
  readonly #log: Logger;
  #read: { documents: PromptDocuments; skills: Skill[] } | undefined;
  #missing: { question: string; answer: Missing; at: number } | undefined;

  constructor(bus: Bus, log: Logger, options: CacheOptions) {
    this.#bus = bus;
    this.#log = log;
    this.documents = new DocumentCache(bus, log, options);
  }

  close(): void {
    this.documents.close();
  }

  /** Throws WireError only while the store has never answered. */
  async current(): Promise<{ documents: PromptDocuments; skills: Skill[] }> {
    const documents = await this.documents.current();
    const skills = this.#skillsOf(documents);
    return { documents, skills: withMissing(skills, await this.#missingFor(skills)) };
  }

  /** Read once for each state of the documents, so that a warning is said once. */
  #skillsOf(documents: PromptDocuments): Skill[] {
    if (this.#read?.documents !== documents) {
      const { skills, warnings } = readSkills(documents);
      for (const warning of warnings) this.#log.warn({ warning }, "a skill is not used");
      this.#read = { documents, skills };
    }
    return this.#read.skills;
  }

  /** While no tool-runner answers, nothing is called missing. */
  async #missingFor(skills: readonly Skill[]): Promise<Missing> {
    const bins = [...new Set(skills.flatMap(({ requires }) => requires.bins))].sort();
    const env = [...new Set(skills.flatMap(({ requires }) => requires.env))].sort();
    if (bins.length === 0 && env.length === 0) return nothingMissing;
    const question = JSON.stringify([bins, env]);
    const known = this.#missing?.question === question ? this.#missing : undefined;
    if (known !== undefined && performance.now() - known.at < requirementsMs) return known.answer;
    try {
      const { missingBins, missingEnv } = await this.#bus.request(
        toolRequirements,
        { bins, env },
        { timeoutMs: requirementsTimeoutMs },
      );
      const answer = { bins: new Set(missingBins), env: new Set(missingEnv) };
      this.#missing = { question, answer, at: performance.now() };
      return answer;
    } catch (error) {
      this.#log.warn({ err: error }, "no tool-runner says what skills lack");
      return known?.answer ?? nothingMissing;
    }
  }
}
