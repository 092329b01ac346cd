// Vector formats: on the bus, in the database, and for comparison.

/** Decodes little-endian 32-bit floats in base64; incomplete trailing bytes are ignored. */
export function vectorOf(values: string): Float32Array {
  const bytes = Buffer.from(values, "base64");
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatLE(index * 4);
  return vector;
}

/** Database format: big-endian, like PostgreSQL's own binary floats. */
export function packed(vector: Float32Array): Buffer {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatBE(value, index * 4);
  return bytes;
}

export function unpacked(bytes: Buffer): Float32Array {
  const vector = new Float32Array(Math.floor(bytes.length / 4));
  for (let index = 0; index < vector.length; index++) vector[index] = bytes.readFloatBE(index * 4);
  return vector;
}

/** Normalizes to length 1; a zero vector is returned unchanged and is orthogonal to everything. */
export function pointing(vector: Float32Array): Float32Array {
  let squares = 0;
  for (const value of vector) squares += value * value;
  const length = Math.sqrt(squares);
  return length === 0 ? vector : vector.map((value) => value / length);
}

/** One bit per component, set if negative, like `parley.signs` for stored vectors. */
export function signsOf(vector: Float32Array): string {
  return Array.from(vector, (value) => (value < 0 || Object.is(value, -0) ? "1" : "0")).join("");
}
