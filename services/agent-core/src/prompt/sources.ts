// Provides the documents and skills for prompts, with the skill requirements that no tool-runner meets.
import type { Bus } from "@parley/bus";
import type { Logger } from "@parley/chassis";
import { controlSkills, toolRequirements, type OutputOf } from "@parley/contracts";
import { DocumentCache, type CacheOptions } from "./document-cache.ts";
import type { PromptDocument, PromptDocuments } from "./documents.ts";
import type { LeaderStore } from "../store-client/leader-store.ts";
import { isBuiltIn } from "./built-in-skills.ts";
import { foldersWithoutSkill, readSkills, withMissing, type Skill } from "./skills.ts";

/** How long a response about programs and variables is cached. */
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
  readonly #builtInSkills: readonly PromptDocument[];
  readonly #control: { close(): void };
  #read: { documents: PromptDocuments; skills: Skill[] } | undefined;
  #missing: { question: string; answer: Missing; at: number } | undefined;

  /** Serves the list of skills until it is closed. `builtInSkills`: skills that those of the workspace take precedence over. */
  constructor(
    bus: Bus,
    leaderStore: LeaderStore,
    log: Logger,
    { builtInSkills = [], ...options }: CacheOptions & { builtInSkills?: readonly PromptDocument[] },
  ) {
    this.#builtInSkills = builtInSkills;
    this.#bus = bus;
    this.#log = log;
    this.documents = new DocumentCache(bus, leaderStore, log, options);
    this.#control = bus.serve(controlSkills, () => this.#listSkills());
  }

  close(): void {
    this.#control.close();
    this.documents.close();
  }

  /** Throws WireError only before the first successful load from the store. */
  async current(): Promise<{ documents: PromptDocuments; skills: Skill[] }> {
    const documents = await this.documents.current();
    const skills = this.#skillsOf(documents);
    return { documents, skills: withMissing(skills, await this.#missingFor(skills)) };
  }

  /** The skills in the newest documents, and why others are not loaded. Throws WireError if the store is unavailable. */
  async #listSkills(): Promise<OutputOf<typeof controlSkills>> {
    await this.documents.refresh();
    const read = readSkills(await this.documents.current(), this.#builtInSkills);
    const skills = withMissing(read.skills, await this.#missingFor(read.skills));
    return {
      skills: skills.map(({ name, description, location: path, always, missing }) => {
        return { name, description, path, builtIn: isBuiltIn(path), always, missing: [...missing] };
      }),
      problems: [...read.problems, ...foldersWithoutSkill(this.documents.paths())],
    };
  }

  /** Parses each state of the documents once, so that each warning is logged once. */
  #skillsOf(documents: PromptDocuments): Skill[] {
    if (this.#read?.documents !== documents) {
      const { skills, problems } = readSkills(documents, this.#builtInSkills);
      for (const { path, reason } of problems) this.#log.warn({ reason: `${path}: ${reason}` }, "skill not loaded");
      this.#read = { documents, skills };
    }
    return this.#read.skills;
  }

  /** Reports nothing as missing while no tool-runner responds. */
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
      this.#log.warn({ err: error }, "skill requirements unavailable: no tool-runner responded");
      return known?.answer ?? nothingMissing;
    }
  }
}
