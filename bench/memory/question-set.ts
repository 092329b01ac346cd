// A generated question set, modelled on the public ones: conversations over many days, small talk, facts that are mentioned
// once, similar facts about the other person as distractors, and paraphrased questions. The output is deterministic.
import type { Sample } from "./locomo.ts";

/** Mulberry32: a small generator with the same output on every platform. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const people = [
  "Amara",
  "Bastian",
  "Celeste",
  "Dimitri",
  "Elif",
  "Farid",
  "Greta",
  "Hugo",
  "Ines",
  "Jonas",
  "Kira",
  "Luca",
];
const animals = ["beagle", "parrot", "tortoise", "kitten", "pony", "rabbit", "goldfish", "hamster"];
const names = ["Biscuit", "Pepper", "Mango", "Shadow", "Clover", "Ziggy", "Maple", "Nimbus"];
const places = ["Lisbon", "Kyoto", "Oslo", "Marrakesh", "Quito", "Tallinn", "Hobart", "Valencia", "Porto", "Bergen"];
const dishes = ["ramen", "paella", "dumplings", "lasagna", "pho", "goulash", "tagine", "ceviche"];
const instruments = ["cello", "banjo", "clarinet", "harp", "accordion", "trumpet", "ukulele", "oboe"];
const crafts = [
  "pottery",
  "quilting",
  "woodcarving",
  "origami",
  "calligraphy",
  "embroidery",
  "blacksmithing",
  "weaving",
];
const authors = ["Le Guin", "Borges", "Morrison", "Calvino", "Atwood", "Achebe", "Woolf", "Murakami"];
const jobs = ["nurse", "welder", "librarian", "geologist", "translator", "beekeeper", "pilot", "carpenter"];
const relatives = ["sister", "brother", "cousin", "grandmother", "uncle", "nephew"];

interface Kind {
  values: readonly string[];
  /** The statement; `$` is replaced by the value, `@` by a second value. */
  said: readonly string[];
  /** The question; `#` is replaced by the speaker. */
  asked: readonly string[];
  second?: readonly string[];
}

const kinds: readonly Kind[] = [
  {
    values: animals,
    second: names,
    said: [
      "We finally adopted a $ last weekend and the kids named it @!",
      "Big news: a $ moved in with us, we call it @.",
    ],
    asked: ["What pet did # adopt, a $ or something else?", "What is the name of the $ that lives with #?"],
  },
  {
    values: places,
    said: ["I just booked flights to $, leaving in the spring.", "I'm back from $ and I already miss the food there."],
    asked: ["When did # travel to $?", "Which trip did # book: was it flights to $?"],
  },
  {
    values: dishes,
    said: [
      "I tried cooking $ from scratch and nearly burned the kitchen down.",
      "My $ turned out great tonight, everyone wanted more.",
    ],
    asked: ["How did it go when # cooked $?", "What happened in the kitchen of # with the $?"],
  },
  {
    values: instruments,
    said: ["I've started taking $ lessons on Tuesdays.", "The neighbours complain about me practicing the $ so late."],
    asked: ["Which day does # have lessons to learn the $?", "Who complained about # and the $?"],
  },
  {
    values: crafts,
    said: ["I signed up for a $ workshop at the community center.", "Doing $ calms me down after a long day at work."],
    asked: ["Where is the $ workshop that # signed up for?", "What does # do to calm down, is it $?"],
  },
  {
    values: authors,
    said: ["I stayed up until three finishing a novel by $.", "Our book club is reading $ this month and I love it."],
    asked: ["Which novel by $ did # finish?", "What does the book club of # read of $?"],
  },
  {
    values: relatives,
    second: jobs,
    said: ["My $ got a new job as a @ and could not be happier.", "Did I tell you that my $ trains to become a @?"],
    asked: ["What does the $ of # do for a living?", "Which job does the $ of # train for?"],
  },
];

const smallTalk = [
  "How was your day? What did you do, and what is going on with the kids this week?",
  "That sounds lovely, I am so happy for you! What did the family say, what did the kids do?",
  "Wow, I can't wait to hear more. When did it happen, and where did you go afterwards?",
  "Same here, this week was a long one at work. What a job, what a day, what a week.",
  "Thanks for asking! The food was good, the people were kind, and the trip home was long.",
  "I know the feeling. Which one do you like more? Which one does your family like?",
  "You always know what to say. Talk soon, and say hi to everyone from me!",
  "Ha, that reminds me of the time we got lost on the way home from that trip.",
  "I really need a day off. Maybe next month, when work calms down and the kids are back at school.",
  "Do you remember what we talked about last time? I finally did it, and it felt great!",
];

const sessionsPerSample = 14;
const factsPerSession = 4;

/** `samples` pairs of people with fourteen days each; each fact has one question. */
export function questionSet(samples: number, seed = 1): Sample[] {
  const next = random(seed);
  const pick = <T>(list: readonly T[]): T => {
    const chosen = list[Math.floor(next() * list.length)];
    if (chosen === undefined) throw new Error("nothing to pick from");
    return chosen;
  };
  return Array.from({ length: samples }, (_, index) => {
    const first = pick(people);
    const pair = [first, pick(people.filter((name) => name !== first))] as const;
    const told = new Set<string>();
    const questions: Sample["questions"] = [];
    const sessions = Array.from({ length: sessionsPerSample }, (__, day) => {
      const turns: Sample["sessions"][number]["turns"] = [];
      const say = (speaker: string, text: string) => {
        const id = `D${day + 1}:${turns.length + 1}`;
        turns.push({ id, speaker, text });
        return id;
      };
      for (let fact = 0; fact < factsPerSession; fact++) {
        const [speaker, listener] = next() < 0.5 ? pair : [pair[1], pair[0]];
        for (let chat = Math.floor(next() * 3); chat >= 0; chat--)
          say(chat % 2 === 0 ? listener : speaker, pick(smallTalk));
        const kind = pick(kinds);
        const value = pick(kind.values);
        if (told.has(`${speaker} ${value}`)) continue;
        told.add(`${speaker} ${value}`);
        const second = kind.second === undefined ? "" : pick(kind.second);
        const which = Math.floor(next() * kind.said.length);
        const filled = (text: string) => text.replaceAll("$", value).replaceAll("@", second);
        const before = next() < 0.3 ? `${pick(smallTalk)} ` : "";
        const id = say(speaker, before + filled(kind.said[which] ?? ""));
        questions.push({ text: filled(kind.asked[which] ?? "").replaceAll("#", speaker), evidence: [id] });
        say(listener, pick(smallTalk));
      }
      return { number: day + 1, at: new Date(Date.UTC(2026, 0, 1 + day * 9)), turns };
    });
    return { id: `made-${index + 1}`, sessions, questions };
  });
}
