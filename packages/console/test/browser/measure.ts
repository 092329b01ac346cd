// Measures the console in a real browser, for `npm run bench -- --only console`: how soon it is painted and takes input, whether a long
// session scrolls smoothly, and whether a fast answer is shown at the pace of the screen. The environment names the gateway and two
// sessions: a long one, and an empty one whose model streams `stream: N`. It prints the rows of the report as JSON.
import type { Browser, Page } from "playwright-core";
import { findChromium, signInLink, startBrowser } from "./support.ts";

/** As in bench/row.ts. */
interface Row {
  what: string;
  measured: string;
  target: string;
  isMet: boolean | undefined;
}

const {
  BENCH_URL: url = "",
  BENCH_TOKEN: token = "",
  BENCH_LONG: longId = "",
  BENCH_EMPTY: emptyId = "",
} = process.env;

const visits = 7;
const maxPaintMs = 300;
const maxInteractiveMs = 500;
const maxFrameMs = 50;
const idleFrames = 600;
/** A wheel: a part of the screen each frame, in steps of so many CSS pixels. */
const wheelPx = 120;
const wheelSteps = 300;
const plainParagraphs = 1_000;
const streamedTokens = 1_000;
const minFramesPerSecond = 55;

/** Times between two frames while something happens, in milliseconds. */
interface Frames {
  frameMs: number[];
}

async function signedIn(browser: Browser): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  await page.goto(await signInLink(url, token));
  await page.locator(".content").waitFor();
  return page;
}

async function openings(page: Page): Promise<Row[]> {
  const times: { paintMs: number; interactiveMs: number }[] = [];
  for (let visit = 0; visit <= visits; visit++) {
    await page.reload();
    await page.waitForFunction(
      () =>
        performance.getEntriesByName("first-contentful-paint").length > 0 &&
        performance.getEntriesByName("parley-interactive").length > 0,
    );
    times.push(
      await page.evaluate(() => ({
        paintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN,
        interactiveMs: performance.getEntriesByName("parley-interactive")[0]?.startTime ?? Number.NaN,
      })),
    );
  }
  // The first visit fills the browser's cache.
  const kept = times.slice(1);
  const row = (what: string, values: number[], maxMs: number): Row => ({
    what: `console: ${what}, p50 of ${visits} visits`,
    measured: `${percentile(values, 0.5).toFixed(0)} ms (worst ${Math.max(...values).toFixed(0)} ms)`,
    target: `≤ ${maxMs} ms`,
    isMet: percentile(values, 0.5) <= maxMs,
  });
  return [
    row(
      "first paint",
      kept.map(({ paintMs }) => paintMs),
      maxPaintMs,
    ),
    row(
      "interactive",
      kept.map(({ interactiveMs }) => interactiveMs),
      maxInteractiveMs,
    ),
  ];
}

/** Records the frames of the page from now on. */
async function record(page: Page): Promise<() => Promise<number[]>> {
  await page.evaluate(() => {
    const frames: Frames = { frameMs: [] };
    Object.assign(globalThis, { frames });
    let before = performance.now();
    const next = (now: number) => {
      frames.frameMs.push(now - before);
      before = now;
      if ((globalThis as unknown as { frames: Frames | null }).frames === frames) requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
  return () =>
    page.evaluate(() => {
      const holder = globalThis as unknown as { frames: Frames | null };
      const { frameMs } = holder.frames ?? { frameMs: [] };
      holder.frames = null;
      // The first frame began before the recording.
      return frameMs.slice(1);
    });
}

async function scrolling(page: Page): Promise<Row[]> {
  await page.goto(`${url}/#/chat/${longId}`);
  const older = page.getByRole("button", { name: "Show earlier messages" });
  await older.waitFor();
  const begin = performance.now();
  const reading = await traced(page, () =>
    page.evaluate(async () => {
      const box = document.querySelector(".scroll");
      if (box === null) throw new Error("there is no scrolling area");
      while (document.querySelector(".older") !== null) {
        box.scrollTop = 0;
        await new Promise(requestAnimationFrame);
      }
    }),
  );
  const readMs = performance.now() - begin;
  const rows: Row[] = [frameRow(`console: reading back a long session, ${(readMs / 1_000).toFixed(1)} s`, reading)];
  // As the scroll bar does: far jumps; and as a wheel does.
  rows.push(frameRow("console: jumping through it", await scrolled(page, 40, 1 / 40)));
  const wheel = await scrolled(page, wheelSteps, 0);
  const plain = await scrolledPlainText(page);
  rows.push({
    ...frameRow("console: baseline, plain text scrolled in the same way", plain),
    target: "",
    isMet: undefined,
  });
  rows.push(frameRow("console: scrolling it", wheel, plain));
  return rows;
}

/** Scrolls down and up again, in each frame by the share of the whole height, at least as a wheel does. */
async function scrolled(page: Page, steps: number, share: number): Promise<Traced> {
  return traced(page, () =>
    page.evaluate(
      async (way) => {
        const box = document.querySelector(".scroll");
        if (box === null) throw new Error("there is no scrolling area");
        for (const direction of [1, -1]) {
          for (let step = 0; step < way.steps; step++) {
            box.scrollTop += direction * Math.max(way.wheelPx, box.scrollHeight * way.share);
            await new Promise(requestAnimationFrame);
          }
        }
      },
      { steps, share, wheelPx },
    ),
  );
}

/** What the machine and the browser do to frames: a page of paragraphs without a script is scrolled. */
async function scrolledPlainText(page: Page): Promise<Traced> {
  const plain = await page.context().newPage();
  const text = "Which of the archives are older than two days? I list the folder, and one archive is too old.";
  const paragraphs = `<p>${text}</p>`.repeat(plainParagraphs);
  await plain.setContent(
    `<body><div class="scroll" style="height: 780px; overflow-y: auto">${paragraphs}</div></body>`,
  );
  const traces = await scrolled(plain, wheelSteps, 0);
  await plain.close();
  return traces;
}

interface Traced {
  /** The times between two frames, in milliseconds. */
  frames: number[];
  /** The most processor time that a thread of the page or of its drawing used between two frames. Other programs hardly change it. */
  busiestFrameMs: number;
  /** The thread of that frame. */
  busiestThread: string;
}

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  /** Microseconds. */
  ts: number;
  /** Microseconds of processor time. */
  tdur?: number;
  args?: { name?: unknown };
}

/** The threads that run the page (script, style, layout, garbage collection), and those that draw it. */
const pageThreads = new Set(["CrRendererMain", "Compositor", "CrGpuMain", "VizCompositorThread"]);
const isOfPage = (thread: string) => pageThreads.has(thread) || thread.startsWith("ThreadPool");

async function traced(page: Page, work: () => Promise<void>): Promise<Traced> {
  const browser = page.context().browser();
  if (browser === null) throw new Error("the page has no browser");
  await browser.startTracing(page, { categories: ["toplevel", "devtools.timeline"] });
  const stop = await record(page);
  await work();
  const frames = await stop();
  const { traceEvents } = JSON.parse(String(await browser.stopTracing())) as { traceEvents: TraceEvent[] };
  return { frames, ...busiestFrame(traceEvents) };
}

/** The frame in which one thread used the most processor time; frames begin where the page's main thread fires them. */
function busiestFrame(events: readonly TraceEvent[]): Omit<Traced, "frames"> {
  const idOf = ({ pid, tid }: TraceEvent) => `${pid} ${tid}`;
  const names = new Map(
    events.flatMap((event) =>
      event.name === "thread_name" && typeof event.args?.name === "string" && isOfPage(event.args.name)
        ? [[idOf(event), event.args.name] as const]
        : [],
    ),
  );
  let busiest = { busiestFrameMs: 0, busiestThread: "" };
  const usedMs = new Map<string, number>();
  for (const event of events.filter((each) => names.has(idOf(each))).toSorted((a, b) => a.ts - b.ts)) {
    if (event.name === "FireAnimationFrame") usedMs.clear();
    if (!event.name.endsWith("RunTask") || event.tdur === undefined) continue;
    const ms = (usedMs.get(idOf(event)) ?? 0) + event.tdur / 1_000;
    usedMs.set(idOf(event), ms);
    if (ms > busiest.busiestFrameMs) busiest = { busiestFrameMs: ms, busiestThread: names.get(idOf(event)) ?? "" };
  }
  return busiest;
}

/** What the machine itself does to frames: the page has nothing to do, only its frames are counted. */
async function idle(page: Page): Promise<Row[]> {
  const traces = await traced(page, () =>
    page.evaluate(async (frames) => {
      for (let frame = 0; frame < frames; frame++) await new Promise(requestAnimationFrame);
    }, idleFrames),
  );
  return [{ ...frameRow("console: baseline, a page that does nothing", traces), target: "", isMet: undefined }];
}

function slowOf({ frames }: Traced): number {
  return frames.filter((ms) => ms > maxFrameMs).length;
}

/**
 * Met: the page's work fits in each frame; and no frame is slow, unless plain text (`plain`) has slow ones too: then other programs use the
 * processor, and the times between frames say nothing.
 */
function frameRow(what: string, traces: Traced, plain?: Traced): Row {
  const { frames, busiestFrameMs, busiestThread } = traces;
  const worst = `worst frame ${Math.max(...frames).toFixed(0)} ms`;
  const isQuiet = plain !== undefined && slowOf(plain) === 0;
  return {
    what,
    measured: `at most ${busiestFrameMs.toFixed(0)} ms of CPU in a frame (${busiestThread}); ${worst}, ${slowOf(traces)} of ${frames.length} over ${maxFrameMs} ms`,
    target: `≤ ${maxFrameMs} ms ${isQuiet ? "" : "of CPU "}in each frame`,
    isMet: busiestFrameMs <= maxFrameMs && (!isQuiet || slowOf(traces) === 0),
  };
}

async function streaming(page: Page): Promise<Row[]> {
  await page.goto(`${url}/#/chat/${emptyId}`);
  await page.locator(".composer textarea").fill(`stream: ${streamedTokens}`);
  await page.locator(".composer textarea").press("Enter");
  await page.locator(".message.live", { hasText: "token20 " }).waitFor();
  const { frames, busiestFrameMs } = await traced(page, () =>
    page.locator(".message.assistant", { hasText: `token${streamedTokens}.` }).waitFor({ timeout: 120_000 }),
  );
  const perSecond = secondsOf(frames);
  const median = percentile(perSecond, 0.5);
  return [
    {
      what: "console: frames while 100 tokens a second arrive, p50",
      measured: `${median.toFixed(0)} a second (worst second ${Math.min(...perSecond)}, worst frame ${Math.max(...frames).toFixed(0)} ms; at most ${busiestFrameMs.toFixed(0)} ms of CPU in a frame)`,
      target: `≥ ${minFramesPerSecond} a second`,
      isMet: median >= minFramesPerSecond,
    },
  ];
}

/** The number of frames of each whole second. */
function secondsOf(frameMs: readonly number[]): number[] {
  const counts: number[] = [];
  let elapsedMs = 0;
  for (const ms of frameMs) {
    elapsedMs += ms;
    const second = Math.floor(elapsedMs / 1_000);
    while (counts.length <= second) counts.push(0);
    counts[second] = (counts[second] ?? 0) + 1;
  }
  return counts.length > 1 ? counts.slice(0, -1) : counts;
}

/** The value below which `share` of the samples lie. */
function percentile(samples: readonly number[], share: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

const browser = await startBrowser(findChromium() ?? "chromium");
try {
  const page = await signedIn(browser);
  const rows: Row[] = [];
  for (const measure of [openings, idle, scrolling, streaming]) {
    rows.push(...(await measure(page)));
  }
  process.stdout.write(`${JSON.stringify(rows)}\n`);
} finally {
  await browser.close();
}
