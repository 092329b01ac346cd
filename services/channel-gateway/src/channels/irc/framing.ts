// Bytes from a socket → lines. It bounds what one line may hold and knows nothing of what lines mean.

/** Tags may take 8,191 bytes, the rest of a line 512. */
const longestLineBytes = 8_191 + 512;

/** Returns a function that is fed bytes and gives back the lines that are complete. A line above the limit is dropped whole. */
export function lineReader(): (bytes: Uint8Array) => string[] {
  const decoder = new TextDecoder("utf-8");
  let kept: Uint8Array[] = [];
  let size = 0;
  let tooLong = false;
  return (bytes) => {
    const lines: string[] = [];
    let from = 0;
    while (from < bytes.length) {
      const end = bytes.indexOf(10, from);
      const part = bytes.subarray(from, end === -1 ? bytes.length : end);
      size += part.length;
      if (size > longestLineBytes) {
        tooLong = true;
        kept = [];
      }
      if (!tooLong) kept.push(part);
      if (end === -1) break;
      if (!tooLong) {
        const line = decoder.decode(Buffer.concat(kept)).replace(/\r+$/, "");
        if (line !== "") lines.push(line);
      }
      kept = [];
      size = 0;
      tooLong = false;
      from = end + 1;
    }
    return lines;
  };
}
