// Splits the bytes of a socket into lines, with a length limit. Independent of their meaning.

/** 8,191 bytes for tags and 512 bytes for the rest of a line. */
const longestLineBytes = 8_191 + 512;

/** Returns a function that takes bytes and returns the complete lines. A line above the limit is dropped. */
export function lineReader(): (bytes: Uint8Array) => string[] {
  const decoder = new TextDecoder("utf-8");
  let kept: Uint8Array[] = [];
  let size = 0;
  return (bytes) => {
    const lines: string[] = [];
    let from = 0;
    while (from < bytes.length) {
      const end = bytes.indexOf(10, from);
      const part = bytes.subarray(from, end === -1 ? bytes.length : end);
      size += part.length;
      if (size > longestLineBytes) kept = [];
      else kept.push(part);
      if (end === -1) break;
      if (size <= longestLineBytes) {
        const line = decoder.decode(Buffer.concat(kept)).replace(/\r+$/, "");
        if (line !== "") lines.push(line);
      }
      kept = [];
      size = 0;
      from = end + 1;
    }
    return lines;
  };
}
