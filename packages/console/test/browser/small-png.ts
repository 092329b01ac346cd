// A PNG with at most 256 colours, about half the size of the browser's own.
import { crc32, deflateSync } from "node:zlib";
import type { Browser } from "playwright-core";

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const maxColours = 256;

/** Replaces rare colours by the nearest frequent one. The browser decodes `png`. */
export async function smallPng(browser: Browser, png: Buffer): Promise<Buffer> {
  const { width, height, base64 } = await pixelsOf(browser, png);
  const rgba = Buffer.from(base64, "base64");
  const counts = new Map<number, number>();
  for (let at = 0; at < rgba.length; at += 4) {
    const colour = rgba.readUIntBE(at, 3);
    counts.set(colour, (counts.get(colour) ?? 0) + 1);
  }
  const palette = [...counts]
    .toSorted(([, a], [, b]) => b - a)
    .slice(0, maxColours)
    .map(([colour]) => colour);
  const indexes = new Map(palette.map((colour, index) => [colour, index]));
  const lines = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = rgba.readUIntBE(4 * (y * width + x), 3);
      const index = indexes.get(colour) ?? nearest(palette, colour);
      indexes.set(colour, index);
      lines[y * (width + 1) + 1 + x] = index;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  // 8 bits for each pixel, which is an index of the palette.
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.alloc(3 * palette.length);
  for (const [index, colour] of palette.entries()) colours.writeUIntBE(colour, 3 * index, 3);
  const chunks = [
    chunk("IHDR", header),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(lines, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat([signature, ...chunks]);
}

async function pixelsOf(browser: Browser, png: Buffer): Promise<{ width: number; height: number; base64: string }> {
  const page = await browser.newPage();
  try {
    return await page.evaluate(async (source) => {
      const image = new Image();
      image.src = `data:image/png;base64,${source}`;
      await image.decode();
      const { width, height } = image;
      const context = new OffscreenCanvas(width, height).getContext("2d");
      if (context === null) throw new Error("there is no canvas");
      context.drawImage(image, 0, 0);
      const { data } = context.getImageData(0, 0, width, height);
      let text = "";
      for (let at = 0; at < data.length; at += 32_768) text += String.fromCharCode(...data.subarray(at, at + 32_768));
      return { width, height, base64: btoa(text) };
    }, png.toString("base64"));
  } finally {
    await page.close();
  }
}

function nearest(palette: readonly number[], colour: number): number {
  const far = (other: number) =>
    ((other >> 16) - (colour >> 16)) ** 2 +
    (((other >> 8) & 255) - ((colour >> 8) & 255)) ** 2 +
    ((other & 255) - (colour & 255)) ** 2;
  let best = 0;
  for (const [index, other] of palette.entries()) if (far(other) < far(palette[best] ?? 0)) best = index;
  return best;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}
